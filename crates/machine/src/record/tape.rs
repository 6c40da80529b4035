//! The file of a recording: blktrace's binary form, one stream.
//!
//! Beside the events it has messages, which blkparse prints (`m`) and other readers pass over:
//!
//! ```text
//! fairhead process 4711 cgroup /system.slice/backup.service    when the process makes its first request
//! fairhead process 4711 priority idle 7                        when its requests have another I/O priority
//! fairhead lost 25 events                                      where events are missing
//! ```
//!
//! The cgroup is that of `/proc/PID/cgroup`, as block events do not have it; a process that ends at once has
//! none. The priority is that of the request when it is issued.

use super::Target;
use fairhead_core::units::{Class, Duration, IoPrio, TaskId};
use fairhead_trace::format::blktrace::Writer;
use fairhead_trace::ring::{BlockEvent, Comm};
use fairhead_trace::{Action, DeviceId, Event, Names};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;

/// The most entries of a table.
const TABLE_MAX: usize = 1 << 16;
/// How many bytes are written before they are sent on their way to the disk.
const CHUNK: u64 = 4 << 20;

/// What is known of one process, beside its requests.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ProcessFacts {
    /// Its cgroup, as a path below the hierarchy's root; empty if that is not known.
    pub cgroup: String,
    /// The I/O priority of its last request that has one.
    pub prio: Option<IoPrio>,
    comm: Comm,
}

/// What is known of processes, by the number of the thread.
pub type Facts = BTreeMap<u32, ProcessFacts>;

/// The file that is being written.
#[allow(missing_debug_implementations, reason = "a writer has nothing to show")]
pub struct Tape<'a> {
    writer: Writer<BufWriter<OwnWrites>>,
    targets: &'a [Target],
    /// The device of each number: partitions are their disk.
    devices: HashMap<(u32, u32), (DeviceId, usize)>,
    names: Names,
    facts: Facts,
    /// The thread that wanted the request that begins at this sector of this device and is not issued yet.
    waiting: HashMap<(DeviceId, u64), u32>,
    /// The number of this process.
    own: u32,
    own_requests: u64,
    requests: u64,
    /// The number of bytes of events, without those of messages.
    bytes: u64,
    last: Duration,
}

impl<'a> Tape<'a> {
    /// Begins a file.
    #[must_use]
    pub fn new(file: File, targets: &'a [Target]) -> Self {
        let mut names = Names::default();
        let mut devices = HashMap::new();
        for (index, target) in targets.iter().enumerate() {
            let (major, minor) = target.number;
            let Ok(id) = names.add_device(&format!("{major},{minor}")) else { continue };
            devices.extend(target.numbers().map(|n| (n, (id, index))));
        }
        let out = BufWriter::with_capacity(1 << 18, OwnWrites { file, written: 0, sent: 0 });
        Self {
            writer: Writer::new(out),
            targets,
            devices,
            names,
            facts: Facts::new(),
            waiting: HashMap::new(),
            own: std::process::id(),
            own_requests: 0,
            requests: 0,
            bytes: 0,
            last: Duration::ZERO,
        }
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the size of the file so far, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes an event. Times must not go backwards.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&mut self, e: &BlockEvent) -> io::Result<()> {
        let Some(&(device, target)) = self.devices.get(&e.device) else { return Ok(()) };
        if !self.targets[target].covers(e.sector, e.sectors) {
            return Ok(());
        }
        let at = Duration::from_ns(e.at_ns);
        self.last = at;
        match e.action {
            Action::Queue if e.pid == self.own => {
                // Without it, its issue and completion belong to no request.
                self.own_requests += 1;
                return Ok(());
            }
            Action::Queue => {
                self.requests += 1;
                self.meet(at, device, e)?;
            }
            Action::Issue => self.note_priority(at, device, e)?,
            _ => {}
        }
        let who = if e.action == Action::Queue { e.pid } else { 0 };
        let (op, flags) = (e.op, e.flags);
        let event = Event {
            at,
            action: e.action,
            task: TaskId(who),
            device,
            op,
            flags,
            sector: e.sector,
            sectors: e.sectors,
        };
        self.bytes += 48;
        self.writer.write_event(&event, &self.names)
    }

    /// Names a process that makes a request: the first time, and after it became another program.
    fn meet(&mut self, at: Duration, device: DeviceId, e: &BlockEvent) -> io::Result<()> {
        if self.waiting.len() >= TABLE_MAX {
            self.waiting.clear();
        }
        self.waiting.insert((device, e.sector), e.pid);
        let is_new = !self.facts.contains_key(&e.pid);
        if is_new && self.facts.len() >= TABLE_MAX {
            return Ok(());
        }
        let facts = self.facts.entry(e.pid).or_default();
        if is_new || facts.comm != e.comm {
            facts.comm = e.comm;
            self.bytes += 64;
            self.writer.write_name(at, TaskId(e.pid), &e.comm.text())?;
        }
        if is_new {
            facts.cgroup = cgroup(e.pid);
            if !facts.cgroup.is_empty() {
                let text = format!("fairhead process {} cgroup {}", e.pid, facts.cgroup);
                self.writer.write_message(at, device, &text, &self.names)?;
            }
        }
        Ok(())
    }

    /// Notes the priority of a request that is issued as that of the process that wanted it.
    fn note_priority(&mut self, at: Duration, device: DeviceId, e: &BlockEvent) -> io::Result<()> {
        let Some(pid) = self.waiting.remove(&(device, e.sector)) else { return Ok(()) };
        let Some(facts) = self.facts.get_mut(&pid) else { return Ok(()) };
        if e.prio.is_none() || facts.prio == e.prio {
            return Ok(());
        }
        facts.prio = e.prio;
        let Some(prio) = e.prio else { return Ok(()) };
        let text = format!("fairhead process {pid} priority {} {}", class(prio.class), prio.level);
        self.writer.write_message(at, device, &text, &self.names)
    }

    /// Notes that events are missing here.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn lost(&mut self, events: u64) -> io::Result<()> {
        if events == 0 {
            return Ok(());
        }
        self.writer.write_lost(self.last, DeviceId(0), events, &self.names)
    }

    /// Ends the file. Returns the number of requests of this process, which were left out, and what is known
    /// of the others.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<(u64, Facts)> {
        self.writer.finish()?;
        Ok((self.own_requests, self.facts))
    }
}

/// The word for a class.
#[must_use]
pub const fn class(class: Class) -> &'static str {
    match class {
        Class::RealTime => "real-time",
        Class::BestEffort => "best-effort",
        Class::Idle => "idle",
    }
}

/// The cgroup of a thread: the unified hierarchy's, or that of the old controller of disks.
fn cgroup(pid: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let of = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let is_of_disks = controllers.split(',').any(|c| c == "blkio");
        (controllers.is_empty() || is_of_disks).then(|| (is_of_disks, path.to_owned()))
    };
    let found = text.lines().filter_map(of).max_by_key(|(is_of_disks, _)| *is_of_disks);
    let path = found.map(|(_, path)| path).filter(|path| path != "/").unwrap_or_default();
    // Its owner may have named it, and the path is shown on a terminal.
    path.replace(char::is_control, "\u{fffd}")
}

/// Writes that this process itself sends to the disk.
#[derive(Debug)]
struct OwnWrites {
    file: File,
    written: u64,
    sent: u64,
}

impl OwnWrites {
    /// Begins to write back what is in the page cache, in this thread's name. A file that cannot be (a pipe)
    /// needs no writing back.
    fn send(&mut self) {
        let (from, length) = (self.sent.cast_signed(), (self.written - self.sent).cast_signed());
        let (fd, flags) = (self.file.as_raw_fd(), libc::SYNC_FILE_RANGE_WRITE);
        // SAFETY: the call takes numbers only; the descriptor is open as long as `self.file`.
        unsafe { libc::sync_file_range(fd, from, length, flags) };
        self.sent = self.written;
    }
}

impl Write for OwnWrites {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.written += n as u64;
        if self.written - self.sent >= CHUNK {
            self.send();
        }
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_trace::{Flags, Op};

    fn event(at_ns: u64, action: Action, pid: u32, sector: u64, prio: Option<IoPrio>) -> BlockEvent {
        let (op, flags, comm) = (Op::Read, Flags::NONE, Comm::default());
        BlockEvent { at_ns, action, device: (8, 1), op, flags, sector, sectors: 8, pid, comm, prio, error: 0 }
    }

    fn target(range: Option<(u64, u64)>) -> Target {
        Target {
            disk: "sda".to_owned(),
            name: "sda".to_owned(),
            number: (8, 0),
            partitions: vec![(8, 1)],
            range,
            scheduler: None,
        }
    }

    #[test]
    fn flushes_are_answered_in_the_file() {
        for range in [None, Some((2048, 4096))] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            let targets = [target(range)];
            let mut tape = Tape::new(File::create(&path).unwrap(), &targets);
            let flush = |at_ns, action, device, pid| BlockEvent {
                device,
                op: Op::Flush,
                flags: Flags::PREFLUSH,
                sectors: 0,
                ..event(at_ns, action, pid, 0, None)
            };
            for e in [
                flush(1000, Action::Queue, (8, 1), 77),
                flush(1200, Action::Queue, (8, 1), std::process::id()),
                flush(1500, Action::Issue, (8, 0), 9),
                flush(2000, Action::Queue, (8, 1), 78),
                flush(3000, Action::Complete, (8, 0), 0),
                flush(3500, Action::Issue, (8, 0), 9),
                flush(9000, Action::Complete, (8, 0), 0),
            ] {
                tape.put(&e).unwrap();
            }
            assert_eq!(tape.finish().unwrap().0, 1);
            let records: Vec<_> = fairhead_trace::open(&path).unwrap().map(Result::unwrap).collect();
            let ends: Vec<_> = records.iter().map(|r| (r.task.0, r.completed.map(|t| t.as_ns()))).collect();
            assert_eq!(ends, [(77, Some(2000)), (78, Some(8000))]);
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let targets = [target(None)];
        let mut tape = Tape::new(File::create(&path).unwrap(), &targets);
        let idle = Some(IoPrio::new(Class::Idle, 7));
        // 4194303 is above every number of a process.
        for e in [
            event(1000, Action::Queue, 4_194_303, 96, None),
            event(1500, Action::Queue, std::process::id(), 800, None),
            event(2000, Action::Issue, 9, 96, idle),
            event(2500, Action::Issue, 9, 800, None),
            event(7000, Action::Complete, 0, 96, idle),
            event(7500, Action::Complete, 0, 800, None),
        ] {
            tape.put(&e).unwrap();
        }
        tape.lost(25).unwrap();
        let (own, facts) = tape.finish().unwrap();
        assert_eq!((own, facts[&4_194_303].prio, facts.len()), (1, idle, 1));
        let mut trace = fairhead_trace::open(&path).unwrap();
        let records: Vec<_> = trace.by_ref().map(Result::unwrap).collect();
        assert_eq!(records.len(), 1, "our own is left out");
        let r = records[0];
        assert_eq!((r.task.0, r.sector.0, trace.names().device(r.device)), (4_194_303, 96, "8,0"));
        assert_eq!((r.issued.unwrap().as_ns(), r.completed.unwrap().as_ns()), (1000, 6000));
        assert_eq!(trace.notes().lost, 25);
    }
}
