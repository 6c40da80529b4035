//! The events of an instance: enabled, filtered, read from all processors, in order of time.

use super::TraceFsError;
use super::instance::{Instance, remove_stale};
use super::mount::TraceFs;
use fairhead_trace::Action;
use fairhead_trace::ring::{BlockEvent, Decoder, EVENTS, EventFormat, Layout, Lost, Page};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// The smallest and the largest buffer of one processor, in bytes.
const BUFFER_MIN: u64 = 64 << 10;
const BUFFER_MAX: u64 = 64 << 20;
/// The longest filter that the kernel accepts is a page; each device takes some 20 bytes.
const DEVICES_MAX: usize = 128;

/// What to record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The devices, as major and minor number. Partitions count as devices in [`Action::Queue`]. Empty: all.
    pub devices: Vec<(u32, u32)>,
    /// The actions. Default: queue, issue and complete.
    pub actions: Vec<Action>,
    /// The size of the kernel's buffers of all processors together, in bytes. Default: 32 MiB. Each processor
    /// has at least 64 KiB and at most 64 MiB.
    pub buffer_bytes: u64,
    /// The number of events of other devices at which the kernel begins to drop them (0: from the start), if
    /// there were more of them than of these devices. A filter makes the kernel copy each event once more,
    /// which costs a fast disk more than what a quiet one adds. Default: 1000.
    pub others_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        let actions = vec![Action::Queue, Action::Issue, Action::Complete];
        Self { devices: Vec::new(), actions, buffer_bytes: 32 << 20, others_max: 1000 }
    }
}

/// The events of the block layer, as they happen. [The module](super) shows its use.
#[derive(Debug)]
pub struct BlockEvents {
    // The files are closed before the instance is removed, which they would keep busy.
    buffers: Vec<File>,
    /// The names of the processors, in the order of their buffers: `cpu0`.
    cpus: Vec<String>,
    instance: Instance,
    layout: Layout,
    decoder: Decoder,
    page: Vec<u8>,
    /// The most pages that are read of one processor at a time.
    pages_max: usize,
    /// Events that are later than the last `read` began.
    ahead: Vec<BlockEvent>,
    lost: u64,
    removed: Vec<String>,
    /// The names of the enabled events.
    enabled: Vec<String>,
    others: Others,
}

/// Events of devices that were not asked for, until the kernel drops them.
#[derive(Debug)]
struct Others {
    devices: Vec<(u32, u32)>,
    /// The filter that the kernel does not have yet; empty if it has, or if there is none.
    filter: String,
    most: u64,
    count: u64,
    ours: u64,
}

impl Others {
    fn new(options: &Options) -> Result<Self, TraceFsError> {
        let (devices, filter) = (options.devices.clone(), filter(&options.devices)?);
        Ok(Self { devices, filter, most: options.others_max, count: 0, ours: 0 })
    }

    /// Counts an event. Returns whether it was asked for.
    fn admit(&mut self, device: (u32, u32)) -> bool {
        let is_ours = self.devices.is_empty() || self.devices.contains(&device);
        *(if is_ours { &mut self.ours } else { &mut self.count }) += 1;
        is_ours
    }

    /// Returns the filter, once, when the kernel should have it.
    fn filter_due(&mut self) -> Option<String> {
        let is_due = !self.filter.is_empty() && self.count >= self.most && self.count >= self.ours;
        is_due.then(|| std::mem::take(&mut self.filter))
    }
}

impl BlockEvents {
    /// Makes an instance, and begins to record.
    ///
    /// # Errors
    /// If there is no tracefs, it may not be used, or it lacks the events. One line says what would be right.
    pub fn open(options: &Options) -> Result<Self, TraceFsError> {
        let mount = TraceFs::find()?;
        let removed = remove_stale(&mount);
        let instance = Instance::new(mount)?;
        let wrong = |message| TraceFsError(format!("the kernel's trace events: {message}"));
        let layout = Layout::parse(&instance.text("events/header_page")?).map_err(wrong)?;
        instance.set("trace_clock", "mono")?;
        let cpus = processors(&instance)?;
        let each = (options.buffer_bytes / cpus.len().max(1) as u64).clamp(BUFFER_MIN, BUFFER_MAX);
        instance.set("buffer_size_kb", &(each >> 10).to_string())?;
        // A process that polls is woken when an eighth of a buffer is full. Kernels before 5.0 have no such
        // file.
        let _ = instance.set("buffer_percent", "12");
        let buffers = cpus.iter().map(|cpu| open_buffer(&instance, cpu)).collect::<Result<_, _>>()?;
        let mut others = Others::new(options)?;
        let formats = enable(&instance, options, others.filter_due().as_deref())?;
        let decoder = Decoder::new(&formats).map_err(wrong)?;
        let pages_max = usize::try_from(each).unwrap_or(0) / layout.page_bytes() + 2;
        let page = vec![0; layout.page_bytes()];
        let ahead = Vec::new();
        let enabled = formats.into_iter().map(|f| f.name).collect();
        Ok(Self {
            buffers,
            cpus,
            instance,
            layout,
            decoder,
            page,
            pages_max,
            ahead,
            lost: 0,
            removed,
            enabled,
            others,
        })
    }

    /// Returns the names of instances that killed runs had left behind, and that are removed now.
    #[must_use]
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Returns the number of events that were lost so far, as far as the pages that were read tell.
    /// [`Self::finish`] completes it. Events of other devices count until the kernel drops them
    /// ([`Options::others_max`]), as it is unknown whose a lost event was.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Waits until a buffer is an eighth full, at most as long as told. A signal ends the wait early.
    ///
    /// # Errors
    /// If the buffers cannot be waited for.
    pub fn wait(&self, at_most: Duration) -> Result<(), TraceFsError> {
        let of = |f: &File| libc::pollfd { fd: f.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<_> = self.buffers.iter().map(of).collect();
        let (count, ms) =
            (polled.len() as libc::nfds_t, i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX));
        // SAFETY: the array has that many entries and outlives the call.
        let found = unsafe { libc::poll(polled.as_mut_ptr(), count, ms) };
        let error = std::io::Error::last_os_error();
        if found >= 0 || error.kind() == ErrorKind::Interrupted {
            return Ok(());
        }
        Err(TraceFsError(format!("cannot wait for events: {error}")))
    }

    /// Appends the events up to now, in order of time, and of equal times in order of processors.
    ///
    /// # Errors
    /// If a buffer cannot be read, or a page is damaged.
    pub fn read(&mut self, events: &mut Vec<BlockEvent>) -> Result<(), TraceFsError> {
        let now = now_ns();
        self.collect()?;
        if let Some(filter) = self.others.filter_due() {
            for name in &self.enabled {
                self.instance.set(&format!("events/block/{name}/filter"), &filter)?;
            }
        }
        let until = self.ahead.partition_point(|e| e.at_ns <= now);
        events.extend(self.ahead.drain(..until));
        Ok(())
    }

    /// Ends the recording, and appends the last events.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn finish(&mut self, events: &mut Vec<BlockEvent>) -> Result<(), TraceFsError> {
        self.instance.set("tracing_on", "0")?;
        self.collect()?;
        events.append(&mut self.ahead);
        // The kernel's own count has those, too, that no page told of.
        self.lost = self.lost.max(self.overrun());
        Ok(())
    }

    /// Reads all buffers into `ahead`, in order of time.
    fn collect(&mut self) -> Result<(), TraceFsError> {
        for index in 0..self.buffers.len() {
            for _ in 0..self.pages_max {
                match self.buffers[index].read(&mut self.page) {
                    Ok(0) => break,
                    Ok(length) => self.decode(length)?,
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(TraceFsError(format!("cannot read the trace buffer: {e}"))),
                }
            }
        }
        // Stable, and quick for what is made of a few sorted runs.
        self.ahead.sort_by_key(|e| e.at_ns);
        Ok(())
    }

    fn decode(&mut self, length: usize) -> Result<(), TraceFsError> {
        let damaged = |message| TraceFsError(format!("the kernel's trace buffer: {message}"));
        let page = Page::new(&self.page[..length], &self.layout).map_err(damaged)?;
        self.lost += match page.lost() {
            Lost::None => 0,
            Lost::Known(n) => n,
            Lost::Unknown => 1,
        };
        for raw in page {
            let event = self.decoder.decode(&raw.map_err(damaged)?).map_err(damaged)?;
            self.ahead.extend(event.filter(|e| self.others.admit(e.device)));
        }
        Ok(())
    }

    /// Returns the number of events that the kernel has overwritten or dropped, of all processors.
    fn overrun(&self) -> u64 {
        let of = |cpu: &String| {
            let text = self.instance.text(&format!("per_cpu/{cpu}/stats")).unwrap_or_default();
            let lines = text.lines().filter_map(|l| l.split_once(':'));
            let lost = lines.filter(|(name, _)| matches!(*name, "overrun" | "dropped events"));
            lost.filter_map(|(_, n)| n.trim().parse::<u64>().ok()).sum::<u64>()
        };
        self.cpus.iter().map(of).sum()
    }
}

/// Returns the names of the processors that have a buffer, in order.
fn processors(instance: &Instance) -> Result<Vec<String>, TraceFsError> {
    let folder = instance.root.join("per_cpu");
    let entries =
        fs::read_dir(&folder).map_err(|e| TraceFsError(format!("cannot read {}: {e}", folder.display())))?;
    let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    Ok(names)
}

fn open_buffer(instance: &Instance, cpu: &str) -> Result<File, TraceFsError> {
    let path = instance.root.join("per_cpu").join(cpu).join("trace_pipe_raw");
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
    file.map_err(|e| TraceFsError(format!("cannot read {}: {e}", path.display())))
}

/// Enables the events, with a filter if there is one, and returns their formats.
fn enable(
    instance: &Instance,
    options: &Options,
    filter: Option<&str>,
) -> Result<Vec<EventFormat>, TraceFsError> {
    let mut formats = Vec::new();
    for (name, action) in EVENTS {
        if !options.actions.contains(&action) {
            continue;
        }
        let text = instance.text(&format!("events/block/{name}/format"))?;
        formats.push(EventFormat::parse(&text).map_err(TraceFsError)?);
        if let Some(filter) = filter {
            instance.set(&format!("events/block/{name}/filter"), filter)?;
        }
    }
    // All at once, after the slow part.
    for format in &formats {
        instance.set(&format!("events/block/{}/enable", format.name), "1")?;
    }
    Ok(formats)
}

/// Returns the kernel's filter for these devices; empty for all.
fn filter(devices: &[(u32, u32)]) -> Result<String, TraceFsError> {
    if devices.len() > DEVICES_MAX {
        let n = devices.len();
        return Err(TraceFsError(format!("{n} devices and partitions to record; at most {DEVICES_MAX}")));
    }
    let of = |(major, minor): &(u32, u32)| format!("dev == {}", u64::from(*major) << 20 | u64::from(*minor));
    Ok(devices.iter().map(of).collect::<Vec<_>>().join(" || "))
}

/// The time on the clock of the events.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_the_kernels_numbers() {
        assert_eq!(filter(&[]).unwrap(), "");
        assert_eq!(filter(&[(7, 0), (8, 1)]).unwrap(), "dev == 7340032 || dev == 8388609");
        assert!(filter(&[(7, 0); 129]).unwrap_err().0.contains("129 devices"));
    }

    #[test]
    fn the_kernel_filters_when_others_are_many() {
        let others = |most| Options { devices: vec![(7, 0)], others_max: most, ..Options::default() };
        assert_eq!(Others::new(&others(0)).unwrap().filter_due().as_deref(), Some("dev == 7340032"));
        let mut of = Others::new(&others(2)).unwrap();
        assert!(of.admit((7, 0)) && of.admit((7, 0)) && of.admit((7, 0)));
        assert!(!of.admit((8, 0)) && !of.admit((8, 0)));
        assert_eq!(of.filter_due(), None, "most are ours");
        assert!(!of.admit((8, 0)));
        assert!(of.filter_due().is_some() && of.filter_due().is_none(), "once");
        let mut all = Others::new(&Options::default()).unwrap();
        assert!(all.admit((8, 0)) && all.filter_due().is_none());
    }
}
