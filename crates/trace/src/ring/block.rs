//! Events of the block layer, decoded by their `format` files.

use super::format::{EventFormat, Field};
use crate::event::{Action, ends_write, kind, of_letters};
use crate::fields::on_a_disk;
use crate::record::{Flags, Op, printable};
use fairhead_core::units::{Class, IoPrio};
use std::collections::BTreeMap;

/// The events that a [`Decoder`] understands, by the kernel's name, and the action that each is. Devices
/// without requests (dm, md) complete bios.
pub const EVENTS: [(&str, Action); 8] = [
    ("block_bio_queue", Action::Queue),
    ("block_bio_backmerge", Action::BackMerge),
    ("block_bio_frontmerge", Action::FrontMerge),
    ("block_rq_insert", Action::Insert),
    ("block_rq_issue", Action::Issue),
    ("block_rq_complete", Action::Complete),
    ("block_bio_complete", Action::Complete),
    ("block_rq_requeue", Action::Requeue),
];

/// The name of a process, as the kernel has it: up to 15 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Comm([u8; 16]);

impl Comm {
    /// Returns the name, with what is no UTF-8 and what a terminal would obey replaced: any process may name
    /// itself.
    #[must_use]
    pub fn text(&self) -> String {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        printable(&String::from_utf8_lossy(&self.0[..end])).into_owned()
    }

    fn of(bytes: &[u8]) -> Self {
        let mut name = [0; 16];
        let n = bytes.len().min(15);
        name[..n].copy_from_slice(&bytes[..n]);
        Self(name)
    }
}

/// One event of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockEvent {
    /// The time in nanoseconds of the instance's clock (`mono`: since the machine started).
    pub at_ns: u64,
    /// What happened.
    pub action: Action,
    /// The device, as major and minor number. That of a partition for [`Action::Queue`] of a partition's
    /// bio; its sectors are the disk's all the same.
    pub device: (u32, u32),
    /// The operation.
    pub op: Op,
    /// Further properties: sync, metadata and so on.
    pub flags: Flags,
    /// The first sector of the disk, of 512 bytes; 0 for a flush.
    pub sector: u64,
    /// The number of sectors; 0 for a flush, and for the second completion of a write that had to be stable
    /// (FUA), where the kernel flushed behind it.
    pub sectors: u32,
    /// The number of the thread that ran when it happened. For [`Action::Queue`] that is who wanted the
    /// request; for the others it may be anybody: issuing is often left to a kernel thread (`kworker`), and
    /// completions interrupt any process that runs.
    pub pid: u32,
    /// The name of that thread; empty for completions and requeues, which do not have it.
    pub comm: Comm,
    /// The I/O priority of the request. `None` where the kernel does not tell: in events of bios, before
    /// kernel 6.10, and for a request without one.
    pub prio: Option<IoPrio>,
    /// The error of a completion, as a negative error number; 0 for success and for other actions.
    pub error: i32,
}

/// Where the fields of one event are.
#[derive(Debug)]
struct Known {
    action: Action,
    pid: Field,
    dev: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    comm: Option<Field>,
    prio: Option<Field>,
    error: Option<Field>,
}

/// Decodes the raw events of a page.
///
/// ```no_run
/// # fn pages() -> Vec<Vec<u8>> { Vec::new() }
/// use fairhead_trace::ring::{Decoder, EventFormat, Layout, Page};
/// let of = |path: &str| std::fs::read_to_string(format!("/sys/kernel/tracing/events/{path}")).unwrap();
/// let layout = Layout::parse(&of("header_page")).unwrap();
/// let formats = vec![EventFormat::parse(&of("block/block_rq_issue/format")).unwrap()];
/// let decoder = Decoder::new(&formats).unwrap();
/// for bytes in pages() {
///     for raw in Page::new(&bytes, &layout).unwrap() {
///         if let Some(event) = decoder.decode(&raw.unwrap()).unwrap() {
///             println!("{} {}+{}", event.at_ns, event.sector, event.sectors);
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Decoder {
    kind: Field,
    known: BTreeMap<u16, Known>,
}

impl Decoder {
    /// Makes a decoder of these events. Formats of other events than [`EVENTS`] are passed over.
    ///
    /// # Errors
    /// If none is among [`EVENTS`], or one lacks a field. The message is one line.
    pub fn new(formats: &[EventFormat]) -> Result<Self, String> {
        let mut known = BTreeMap::new();
        let mut kind = None;
        for format in formats {
            let Some((_, action)) = EVENTS.iter().find(|(name, _)| *name == format.name) else { continue };
            let field = |name: &str| {
                let found = format.field(name).cloned();
                found.ok_or_else(|| format!("the event {} of this kernel has no field '{name}'", format.name))
            };
            kind = Some(field("common_type")?);
            let fields = Known {
                action: *action,
                pid: field("common_pid")?,
                dev: field("dev")?,
                sector: field("sector")?,
                sectors: field("nr_sector")?,
                rwbs: field("rwbs")?,
                comm: format.field("comm").cloned(),
                prio: format.field("ioprio").cloned(),
                error: format.field("error").cloned(),
            };
            known.insert(format.id, fields);
        }
        let kind = kind.ok_or("none of the kernel's block events is known")?;
        Ok(Self { kind, known })
    }

    /// Decodes one event. `None` for events of other kinds, and for commands that are no request for
    /// sectors (they pass through the block layer).
    ///
    /// # Errors
    /// If the data is shorter than its format says, or the sectors are none that a disk can have. The message
    /// is one line.
    pub fn decode(&self, raw: &super::RawEvent<'_>) -> Result<Option<BlockEvent>, String> {
        let short = || format!("an event of {} bytes is shorter than its format says", raw.data.len());
        let id = self.kind.number(raw.data).ok_or_else(short)?;
        let Some(known) = u16::try_from(id).ok().and_then(|id| self.known.get(&id)) else { return Ok(None) };
        let event = known.decode(raw.at_ns, raw.data).ok_or_else(short)?;
        event.map_or(Ok(()), |e| on_a_disk(e.sector, e.sectors))?;
        Ok(event)
    }
}

impl Known {
    /// `None` if the data is too short; `Some(None)` for a command that is no request for sectors.
    fn decode(&self, at_ns: u64, data: &[u8]) -> Option<Option<BlockEvent>> {
        let word = |field: &Field| field.number(data).map(|n| (n & u64::from(u32::MAX)) as u32);
        let (pid, dev, sectors) = (word(&self.pid)?, word(&self.dev)?, word(&self.sectors)?);
        let sector = self.sector.number(data)?;
        let comm = match &self.comm {
            Some(field) => Comm::of(field.of(data)?),
            None => Comm::default(),
        };
        let prio = match &self.prio {
            Some(field) => priority(word(field)?),
            None => None,
        };
        let error = match &self.error {
            Some(field) => word(field)?.cast_signed(),
            None => 0,
        };
        let letters = self.rwbs.of(data)?;
        let end = letters.iter().position(|b| *b == 0).unwrap_or(letters.len());
        let parts = std::str::from_utf8(&letters[..end]).ok().and_then(of_letters);
        let is_end = |op| ends_write(self.action, op, sector, sectors);
        let kind = |op, flags| kind(op, flags, sectors).or(is_end(op).then_some(op));
        let request = parts.and_then(|(op, flags)| Some((kind(op, flags)?, flags)));
        Some(request.map(|(op, flags)| BlockEvent {
            at_ns,
            action: self.action,
            device: (dev >> 20, dev & 0xf_ffff),
            op,
            flags,
            // A flush alone has no sector.
            sector: if op == Op::Flush { 0 } else { sector },
            sectors,
            pid,
            comm,
            prio,
            error,
        }))
    }
}

/// Returns the priority in the kernel's encoding: three bits of class, ten of a hint, three of level.
fn priority(word: u32) -> Option<IoPrio> {
    let class = match word >> 13 & 7 {
        1 => Class::RealTime,
        2 => Class::BestEffort,
        3 => Class::Idle,
        _ => return None,
    };
    Some(IoPrio::new(class, (word & 7) as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stacked_devices_bio_completes() {
        let texts = include_str!("../../tests/golden/ring/formats.txt").split("name: ").skip(1);
        let formats: Vec<_> = texts.map(|t| EventFormat::parse(&format!("name: {t}")).unwrap()).collect();
        let decoder = Decoder::new(&formats).unwrap();
        let id = formats.iter().find(|f| f.name == "block_bio_complete").unwrap().id;
        let mut data = vec![0; 44];
        data[..2].copy_from_slice(&id.to_le_bytes());
        data[8..12].copy_from_slice(&(253_u32 << 20 | 3).to_le_bytes());
        data[32..35].copy_from_slice(b"FWS");
        let raw = super::super::RawEvent { at_ns: 7, data: &data };
        let event = decoder.decode(&raw).unwrap().unwrap();
        assert_eq!((event.action, event.op, event.device), (Action::Complete, Op::Flush, (253, 3)));
        data[16..24].copy_from_slice(&2048_u64.to_le_bytes());
        data[24..28].copy_from_slice(&8_u32.to_le_bytes());
        let raw = super::super::RawEvent { at_ns: 7, data: &data };
        let event = decoder.decode(&raw).unwrap().unwrap();
        assert_eq!((event.op, event.sector, event.sectors), (Op::Write, 2048, 8));
        // A write that completes a second time, without sectors; at sector 0 it is the end of a flush.
        data[24..28].fill(0);
        data[32..35].copy_from_slice(b"WS\0");
        let end = |data: &[u8]| decoder.decode(&super::super::RawEvent { at_ns: 7, data }).unwrap();
        assert_eq!(end(&data).map(|e| (e.op, e.sector, e.sectors)), Some((Op::Write, 2048, 0)));
        data[16..24].fill(0);
        assert_eq!(end(&data), None);
    }

    #[test]
    fn a_name_does_not_command_a_terminal() {
        assert_eq!(Comm::of(b"\x1b[2Jevil\0rest").text(), "\u{fffd}[2Jevil");
        assert_eq!(Comm::of(b"fio").text(), "fio");
    }
}
