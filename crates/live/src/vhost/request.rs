//! What a chain of descriptors asks for: virtio-blk, no I/O.
//!
//! ```text
//!   for us to read:   header: type, priority, sector ─ data of a write, or ranges
//!   for us to write:  data of a read ─ status, one byte
//! ```
//!
//! Where one descriptor ends and the next begins says nothing. A chain without a whole header or without a
//! status byte cannot be answered at all ([`Unanswerable`]); anything else that is wrong is answered with a
//! status.
//!
//! Source: Virtual I/O Device (VIRTIO) 1.2, section 5.2.6; for the priority, which it leaves reserved, the
//! kernel's `include/uapi/linux/virtio_blk.h` and `include/uapi/linux/ioprio.h`.

use crate::guest_data::Part;
use crate::numbers::table;
use fairhead_core::units::{Class, IoPrio};

/// The unit of addresses and lengths.
pub(super) const SECTOR: u64 = 512;

/// The most bytes of one request, or of one of its ranges.
pub(super) const BYTES_MAX: u64 = 32 << 20;

/// The most ranges of a discard or zeroing.
pub(super) const RANGES_MAX: usize = 16;

/// The bytes of a header, of a range, and of the device's name.
const HEADER: usize = 16;
const RANGE: usize = 16;
pub(super) const ID: usize = 20;

table! {
    /// The types of requests.
    pub(super) mod kind: u32 {
        IN = 0,
        OUT = 1,
        FLUSH = 4,
        GET_ID = 8,
        DISCARD = 11,
        WRITE_ZEROES = 13,
    }
}

/// The answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Status {
    Ok = 0,
    IoError = 1,
    Unsupported = 2,
}

/// Why there can be no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unanswerable(pub(super) &'static str);

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    Flush,
    /// The device's name.
    Id,
    Discard,
    Zero,
}

/// Part of the disk, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Range {
    pub(super) offset: u64,
    pub(super) len: u32,
    /// Whether its space may be given back.
    pub(super) may_discard: bool,
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    /// What is asked for; or what is wrong with it.
    pub(super) asks: Result<Kind, Status>,
    /// The priority of who asked in the guest; `None` if it has none.
    pub(super) prio: Option<IoPrio>,
    /// Where on the disk: one for a read or write.
    pub(super) ranges: Vec<Range>,
    /// The data, without header and status.
    pub(super) data: Vec<Part>,
    /// Where the answer goes.
    pub(super) status: Part,
}

/// Facts of a device that decide what can be asked of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// The bytes of the disk: whole sectors.
    pub(super) size: u64,
    pub(super) is_read_only: bool,
}

impl Request {
    /// Reads the request of a chain, whose parts are in `readable` and `writable`.
    ///
    /// # Errors
    /// If it cannot be answered.
    ///
    /// # Safety
    /// The parts are mapped.
    pub(super) unsafe fn parse(
        readable: &[Part],
        writable: &[Part],
        limits: Limits,
    ) -> Result<Self, Unanswerable> {
        let mut header = [0; HEADER];
        // SAFETY: as the caller says.
        if unsafe { crate::guest_data::gather(readable, &mut header) } < HEADER {
            return Err(Unanswerable("a request without a whole header"));
        }
        let [t0, t1, t2, t3, p0, p1, p2, p3, sector @ ..] = header;
        let (asked, sector) = (u32::from_le_bytes([t0, t1, t2, t3]), u64::from_le_bytes(sector));
        let (inner, status) =
            split_last(writable).ok_or(Unanswerable("a request without a place for the status"))?;
        let output = behind(readable, HEADER);
        let prio = priority(u32::from_le_bytes([p0, p1, p2, p3]));
        let mut request =
            Self { asks: Err(Status::Unsupported), prio, ranges: Vec::new(), data: Vec::new(), status };
        request.asks = match asked {
            kind::IN => request.transfer(Kind::Read, inner, sector, limits),
            kind::OUT => request.transfer(Kind::Write, output, sector, limits),
            kind::FLUSH => Ok(Kind::Flush),
            kind::GET_ID => {
                request.data = inner;
                Ok(Kind::Id)
            }
            // SAFETY: as the caller says.
            kind::DISCARD => unsafe { request.ranges_of(Kind::Discard, &output, limits) },
            // SAFETY: as the caller says.
            kind::WRITE_ZEROES => unsafe { request.ranges_of(Kind::Zero, &output, limits) },
            _ => Err(Status::Unsupported),
        };
        Ok(request)
    }

    fn transfer(&mut self, kind: Kind, data: Vec<Part>, sector: u64, limits: Limits) -> Result<Kind, Status> {
        let len = bytes_of(&data);
        let offset = checked(sector, len, limits)?;
        if len == 0
            || len > BYTES_MAX
            || !len.is_multiple_of(SECTOR)
            || kind == Kind::Write && limits.is_read_only
        {
            return Err(Status::IoError);
        }
        self.ranges = vec![Range { offset, len: len as u32, may_discard: false }];
        self.data = data;
        Ok(kind)
    }

    /// The ranges of a discard or zeroing.
    ///
    /// # Safety
    /// The parts are mapped.
    unsafe fn ranges_of(&mut self, kind: Kind, data: &[Part], limits: Limits) -> Result<Kind, Status> {
        let len = bytes_of(data);
        if limits.is_read_only
            || len == 0
            || !len.is_multiple_of(RANGE as u64)
            || len > (RANGE * RANGES_MAX) as u64
        {
            return Err(Status::IoError);
        }
        let mut bytes = [0; RANGE * RANGES_MAX];
        // SAFETY: as the caller says.
        let len = unsafe { crate::guest_data::gather(data, &mut bytes) };
        for raw in bytes[..len].chunks_exact(RANGE) {
            let number =
                |from: usize| u32::from_le_bytes([raw[from], raw[from + 1], raw[from + 2], raw[from + 3]]);
            let sector = u64::from(number(0)) | u64::from(number(4)) << 32;
            let (len, flags) = (u64::from(number(8)) * SECTOR, number(12));
            // Bit 0 is "unmap", and only a zeroing has it.
            if flags & !u32::from(kind == Kind::Zero) != 0 {
                return Err(Status::Unsupported);
            }
            let offset = checked(sector, len, limits)?;
            if len > BYTES_MAX {
                return Err(Status::IoError);
            }
            if len > 0 {
                self.ranges.push(Range { offset, len: len as u32, may_discard: flags & 1 != 0 });
            }
        }
        Ok(kind)
    }

    /// The bytes of the disk that it is about.
    pub(super) fn bytes(&self) -> u64 {
        self.ranges.iter().map(|r| u64::from(r.len)).sum()
    }
}

/// The first byte of a range on the disk, if all of it is there.
fn checked(sector: u64, len: u64, limits: Limits) -> Result<u64, Status> {
    let offset = sector.checked_mul(SECTOR).ok_or(Status::IoError)?;
    let end = offset.checked_add(len).ok_or(Status::IoError)?;
    if end <= limits.size { Ok(offset) } else { Err(Status::IoError) }
}

fn bytes_of(parts: &[Part]) -> u64 {
    parts.iter().map(|p| u64::from(p.len)).sum()
}

/// What is behind the first `count` bytes.
fn behind(parts: &[Part], mut count: usize) -> Vec<Part> {
    let mut rest = Vec::with_capacity(parts.len());
    for part in parts {
        let here = count.min(part.len as usize);
        count -= here;
        if here < part.len as usize {
            // SAFETY: `here` is less than the part's length.
            rest.push(Part { start: unsafe { part.start.add(here) }, len: part.len - here as u32 });
        }
    }
    rest
}

/// The last byte, and what is before it.
fn split_last(parts: &[Part]) -> Option<(Vec<Part>, Part)> {
    let last = parts.iter().rposition(|p| p.len > 0)?;
    let mut before: Vec<Part> = parts[..=last].iter().copied().filter(|p| p.len > 0).collect();
    let end = before.last_mut()?;
    end.len -= 1;
    // SAFETY: inside the part, whose last byte this is.
    let status = Part { start: unsafe { end.start.add(end.len as usize) }, len: 1 };
    if end.len == 0 {
        before.pop();
    }
    Some((before, status))
}

/// A priority as the kernel writes it: the class in the upper bits of 16, the level in the lowest three.
fn priority(value: u32) -> Option<IoPrio> {
    let level = (value & 7) as u8;
    match value >> 13 {
        1 => Some(IoPrio::new(Class::RealTime, level)),
        2 => Some(IoPrio::new(Class::BestEffort, level)),
        3 => Some(IoPrio::new(Class::Idle, level)),
        // 0: none is set. Others do not exist.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::NonNull;

    const LIMITS: Limits = Limits { size: 1 << 20, is_read_only: false };

    fn header(kind: u32, prio: u32, sector: u64) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &prio.to_le_bytes(), &sector.to_le_bytes()].concat()
    }

    fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
        [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
    }

    /// Parts of these lengths, of memory that is long enough.
    fn cut(bytes: &mut [u8], lens: &[u32]) -> Vec<Part> {
        let mut at = 0;
        let part = |&len: &u32| {
            let start = NonNull::new(bytes[at..].as_mut_ptr()).unwrap();
            at += len as usize;
            Part { start, len }
        };
        lens.iter().map(part).collect()
    }

    fn parse_with(limits: Limits, readable: &[u8], writable: u32) -> Result<Request, Unanswerable> {
        let (mut readable, mut room) = (readable.to_vec(), vec![0; writable as usize]);
        let len = readable.len() as u32;
        let (readable, writable) = (cut(&mut readable, &[len]), cut(&mut room, &[writable]));
        // SAFETY: the memory is there until the end.
        unsafe { Request::parse(&readable, &writable, limits) }
    }

    fn parse(readable: &[u8], writable: u32) -> Request {
        parse_with(LIMITS, readable, writable).unwrap()
    }

    #[test]
    fn reads_and_writes_are_within_the_disk_and_whole_sectors() {
        let last = (1 << 20) / 512 - 1;
        let read = |sector, room| parse(&header(0, 0, sector), room).asks;
        assert_eq!(read(0, 4097), Ok(Kind::Read));
        assert_eq!(read(last, 513), Ok(Kind::Read));
        let refused = [
            (last, 1025),
            (last + 1, 513),
            (0, 512),
            (0, 1),
            (0, 514),
            (u64::MAX, 513),
            (u64::MAX / 512, 513),
        ];
        for (sector, room) in refused {
            assert_eq!(read(sector, room), Err(Status::IoError), "{sector} {room}");
        }
        let write = |len: usize| parse(&[header(1, 0, 8), vec![1; len]].concat(), 1);
        assert_eq!(write(1024).asks, Ok(Kind::Write));
        assert_eq!(write(1024).ranges, [Range { offset: 4096, len: 1024, may_discard: false }]);
        assert_eq!(write(1000).asks, Err(Status::IoError));
        let read_only = Limits { is_read_only: true, ..LIMITS };
        let refused = parse_with(read_only, &[header(1, 0, 0), vec![1; 512]].concat(), 1).unwrap();
        assert_eq!(refused.asks, Err(Status::IoError));
        assert_eq!(parse_with(read_only, &header(0, 0, 0), 513).unwrap().asks, Ok(Kind::Read));
    }

    #[test]
    fn a_request_is_the_same_however_it_is_cut() {
        let mut bytes = [header(1, 0x4003, 3), (0..1024u32).map(|i| i as u8).collect()].concat();
        let mut room = [9; 3];
        for lens in [&[16, 1024][..], &[1, 15, 512, 512], &[20, 1020], &[1040], &[16, 0, 1000, 24, 0]] {
            let readable = cut(&mut bytes, lens);
            let writable = cut(&mut room, &[1, 0]);
            // SAFETY: the memory is there until the end.
            let request = unsafe { Request::parse(&readable, &writable, LIMITS) }.unwrap();
            assert_eq!(request.asks, Ok(Kind::Write));
            assert_eq!(request.prio, Some(IoPrio::new(Class::BestEffort, 3)));
            let mut data = vec![0; 1024];
            // SAFETY: as above.
            assert_eq!(unsafe { crate::guest_data::gather(&request.data, &mut data) }, 1024);
            assert_eq!(data, bytes[16..]);
        }
    }

    #[test]
    fn what_cannot_be_answered_is_told_apart() {
        assert!(parse_with(LIMITS, &header(0, 0, 0)[..15], 513).is_err());
        assert!(parse_with(LIMITS, &header(0, 0, 0), 0).is_err());
        assert!(parse_with(LIMITS, &[], 1).is_err());
    }

    #[test]
    fn ranges_are_checked_one_by_one() {
        let ask = |kind, ranges: &[Vec<u8>]| parse(&[header(kind, 0, 0), ranges.concat()].concat(), 1);
        let two = ask(13, &[range(8, 8, 1), range(100, 1, 0)]);
        assert_eq!(two.asks, Ok(Kind::Zero));
        assert_eq!(
            two.ranges,
            [
                Range { offset: 4096, len: 4096, may_discard: true },
                Range { offset: 51200, len: 512, may_discard: false }
            ]
        );
        assert_eq!(ask(11, &[range(0, 8, 0)]).asks, Ok(Kind::Discard));
        assert_eq!(ask(11, &[range(0, 8, 1)]).asks, Err(Status::Unsupported));
        assert_eq!(ask(13, &[range(0, 8, 2)]).asks, Err(Status::Unsupported));
        for wrong in [
            range(0, 1 << 17, 0),
            range(2047, 2, 0),
            range(u64::MAX, 1, 0),
            range(0, u32::MAX, 0),
            vec![0; 8],
        ] {
            assert_eq!(ask(11, &[wrong]).asks, Err(Status::IoError));
        }
        assert_eq!(ask(11, &vec![range(0, 1, 0); 17]).asks, Err(Status::IoError));
        assert_eq!(ask(11, &[]).asks, Err(Status::IoError));
        let nothing = ask(11, &[range(0, 0, 0)]);
        assert_eq!((nothing.asks, nothing.ranges.len()), (Ok(Kind::Discard), 0));
    }

    #[test]
    fn the_rest_has_its_kind_and_priority() {
        assert_eq!(parse(&header(4, 0, 0), 1).asks, Ok(Kind::Flush));
        let id = parse(&header(8, 0x2003, 0), 21);
        assert_eq!((id.asks, id.data[0].len), (Ok(Kind::Id), 20));
        assert_eq!(id.prio, Some(IoPrio::new(Class::RealTime, 3)));
        for kind in [2, 3, 5, 6, 12, 14, u32::MAX] {
            assert_eq!(parse(&header(kind, 0, 0), 513).asks, Err(Status::Unsupported), "{kind}");
        }
        let prio = |value| parse(&header(4, value, 0), 1).prio;
        assert_eq!(prio(0x6000), Some(IoPrio::new(Class::Idle, 0)));
        assert_eq!(prio(0x4007), Some(IoPrio::new(Class::BestEffort, 7)));
        for none in [0, 7, 0x8000, u32::MAX] {
            assert_eq!(prio(none), None, "{none:x}");
        }
    }
}
