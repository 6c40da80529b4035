//! `serve` and `mount` under mixed load for a long time: memory, descriptors and threads stay flat.
//!
//! `FAIRHEAD_SOAK` says for how many minutes; without it each front has a few seconds, which only shows that
//! the load runs and that the program is as small afterwards as before.
//!
//! At `serve`, connections come and go in each state that a connection can have, one client stays, exports
//! are added, resized and removed, and the control socket makes and removes groups and changes scheduler,
//! tunables and depth. At `mount`, files and folders are created, written, copied, cut and removed, and
//! processes in cgroups come and go, under the same control requests. A hundred times or more, resident
//! memory, descriptors and threads are read from `/proc`.
//!
//! The load is random, so what is open at a given moment is, too. It is judged by what no load can change:
//!
//! - When the load has gone, the process has no more descriptors than before, beside the pipes that it keeps
//!   to use them again, and no more threads than a front [keeps](Sample::is_as_small_as). It has [`SETTLES`]
//!   to get there.
//! - Under the load there are never more descriptors and threads than the [caps](Caps) that follow from how
//!   the process was started.
//! - If the soak takes ten minutes or more, the median of the resident memory grows by less than
//!   [`GROWTH_KIB`] a minute between the third and the last quarter of the time.
//!
//! A mount has [few arenas](ARENAS_MAX) of the C library's heap, too: each has gaps, and what is free in one
//! is of no use to the threads of others. That shows within seconds, so each run judges it.
//!
//! It does not say what is acknowledged correctly; `kill.rs` and `suites.rs` do.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::may_mount;
use crate::nbd_client;
use crate::nbd_client::{DISCONNECT, FLUSH, READ, WRITE, flagged, reply, request, status};
use crate::process::{Process, fairhead, start};
use crate::stamps::Chance;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The most that the median of resident memory may grow in a minute, in KiB.
const GROWTH_KIB: f64 = 64.0;
/// The most threads more when the load has gone: `mount` keeps four threads for names, of which it has one at
/// first, and the kernel keeps a worker of each kind for each ring.
const NAME_THREADS_KEPT: u64 = 3;
const WORKERS_KEPT: u64 = 2;
/// The longest time until what the load used is given back: the kernel ends idle workers of a ring after
/// 5 s.
const SETTLES: Duration = Duration::from_secs(20);
/// The descriptors of the pipes that a server keeps at most.
const PIPES_MAX: u64 = 64;
/// The connections that the server is started with at most, and the clients of a control socket.
const CONNECTIONS_MAX: u64 = 64;
const CONTROLS_MAX: u64 = 16;
/// The descriptors of the exports that are added: three images at a time, one of them being removed, with
/// five descriptors each.
const ADDED_MAX: u64 = 15;
/// The limit of descriptors that the mount is started with. A quarter is for files that the kernel knows, a
/// half for those that programs have open, of which the only user gets a half.
const MOUNT_DESCRIPTORS: u64 = 512;
/// The threads for names and the workers of the ring that a mount has at most, and the descriptors that each
/// opens for a moment.
const NAME_THREADS_MAX: u64 = 32;
const PASSING: u64 = 3;
/// The most workers of the ring: eight for files, and for sockets those that the engine asks for, a few.
const WORKERS_MAX: u64 = 16;
/// The most arenas of a mount's heap beside the first one.
const ARENAS_MAX: usize = 1;
/// How long a front has without `FAIRHEAD_SOAK`.
const SHORT: Duration = Duration::from_secs(4);
const SIZE: u64 = 32 << 20;

/// What `/proc` says of a process.
#[derive(Clone, Copy, Debug)]
struct Sample {
    resident_kib: u64,
    /// All but those of pipes.
    descriptors: u64,
    /// Those of pipes: two for each.
    pipes: u64,
    /// The io_uring rings, which are among the descriptors.
    rings: u64,
    threads: u64,
}

impl Sample {
    fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let number = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name)).expect("a line of that name");
            line.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
        };
        let (mut descriptors, mut pipes, mut rings) = (0, 0, 0);
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten() {
            // One that is closed meanwhile leads nowhere.
            let Ok(file) = fs::read_link(entry.path()) else { continue };
            let is_pipe = file.to_string_lossy().starts_with("pipe:");
            rings += u64::from(file.as_os_str() == "anon_inode:[io_uring]");
            *(if is_pipe { &mut pipes } else { &mut descriptors }) += 1;
        }
        Self { resident_kib: number("VmRSS:"), descriptors, pipes, rings, threads: number("Threads:") }
    }

    /// Whether nothing is left of a load before which it was as `before`.
    fn is_as_small_as(&self, before: &Self) -> bool {
        let kept = NAME_THREADS_KEPT + WORKERS_KEPT * before.rings;
        self.descriptors <= before.descriptors && self.threads <= before.threads + kept
    }

    /// Waits until nothing is left of the load. Returns what is left after [`SETTLES`] at the latest.
    fn settled(pid: u32, before: &Self) -> Self {
        let began = Instant::now();
        loop {
            let sample = Self::of(pid);
            if sample.is_as_small_as(before) || began.elapsed() > SETTLES {
                return sample;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The most descriptors (beside those of pipes) and threads that a load can make a process have, in addition
/// to those that it had before.
#[derive(Clone, Copy, Debug)]
struct Caps {
    descriptors: u64,
    threads: u64,
}

impl Caps {
    const SERVE: Self =
        Self { descriptors: CONNECTIONS_MAX + CONTROLS_MAX + ADDED_MAX, threads: CONTROLS_MAX + WORKERS_MAX };
    const MOUNT: Self = Self {
        descriptors: MOUNT_DESCRIPTORS / 2 + CONTROLS_MAX + PASSING * NAME_THREADS_MAX,
        threads: NAME_THREADS_MAX + CONTROLS_MAX + WORKERS_MAX,
    };
}

/// A process before, under and after a load.
struct Soak {
    before: Sample,
    under_load: Vec<Sample>,
    after: Sample,
    caps: Caps,
    minutes: f64,
}

impl Soak {
    /// What is wrong: a line for each fault.
    fn faults(&self) -> Vec<String> {
        let Self { before, after, caps, .. } = self;
        let mut faults = Vec::new();
        let mut must = |is_so: bool, fault: String| faults.extend((!is_so).then_some(fault));
        must(
            after.is_as_small_as(before),
            format!("not all is given back: {before:?} before, {after:?} after"),
        );
        let most = |what: fn(&Sample) -> u64| self.under_load.iter().map(what).max().unwrap_or(0);
        let (descriptors, threads, pipes) =
            (most(|s| s.descriptors), most(|s| s.threads), most(|s| s.pipes).max(after.pipes));
        must(
            descriptors <= before.descriptors + caps.descriptors,
            format!(
                "{descriptors} descriptors, {} before and {} more at most",
                before.descriptors, caps.descriptors
            ),
        );
        must(
            threads <= before.threads + caps.threads,
            format!("{threads} threads, {} before and {} more at most", before.threads, caps.threads),
        );
        must(pipes <= before.pipes + PIPES_MAX, format!("{pipes} descriptors of pipes"));
        if self.is_long() {
            let growth = self.growth();
            must(growth < GROWTH_KIB, format!("memory grows by {growth:.1} KiB a minute"));
        }
        faults
    }

    /// Whether it was long enough to judge whether memory grows.
    fn is_long(&self) -> bool {
        self.minutes >= 10.0
    }

    /// How many KiB the resident memory grows in a minute.
    fn growth(&self) -> f64 {
        let quarter = self.under_load.len() / 4;
        let [third, last] = [2, 3].map(|i| {
            let mut all: Vec<u64> =
                self.under_load[i * quarter..(i + 1) * quarter].iter().map(|s| s.resident_kib).collect();
            all.sort_unstable();
            all[all.len() / 2] as f64
        });
        (last - third) / (self.minutes / 4.0)
    }

    /// Prints the figures, and panics if anything is wrong.
    fn judge(&self, name: &str) {
        let most = |what: fn(&Sample) -> u64| self.under_load.iter().map(what).max().unwrap_or(0);
        println!(
            "{name}: {:.1} KiB a minute; at most {} descriptors, {} of pipes and {} threads; before {:?}, after {:?}",
            self.growth(),
            most(|s| s.descriptors),
            most(|s| s.pipes),
            most(|s| s.threads),
            self.before,
            self.after
        );
        if !self.is_long() {
            println!("{name}: too short to judge whether memory grows");
        }
        let faults = self.faults();
        assert!(faults.is_empty(), "{name}: {}", faults.join("; "));
    }
}

/// The arenas of a process's heap beside the first one: glibc reserves 64 MiB for each, at a multiple of
/// 64 MiB, of which what is used so far can be read and written.
fn arenas(pid: u32) -> usize {
    const RESERVED: u64 = 64 << 20;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let ranges: Vec<(u64, u64, &str)> = maps
        .lines()
        .filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let number = |hex| u64::from_str_radix(hex, 16).ok();
            Some((number(from)?, number(to)?, &rest[..4]))
        })
        .collect();
    let is_arena = |pair: &&[(u64, u64, &str)]| {
        let (used, left) = (pair[0], pair[1]);
        used.0.is_multiple_of(RESERVED)
            && (used.2, left.2) == ("rw-p", "---p")
            && (used.1, used.0 + RESERVED) == (left.0, left.1)
    };
    ranges.windows(2).filter(is_arena).count()
}

/// What the load did, so that a soak of nothing fails.
#[derive(Default, Debug)]
struct Done {
    connections: AtomicU64,
    exports: AtomicU64,
    requests: AtomicU64,
    controls: AtomicU64,
    files: AtomicU64,
    cgroups: AtomicU64,
}

fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

fn minutes() -> f64 {
    duration().as_secs_f64() / 60.0
}

fn duration() -> Duration {
    std::env::var("FAIRHEAD_SOAK")
        .map_or(SHORT, |n| Duration::from_secs_f64(60.0 * n.parse::<f64>().expect("minutes")))
}

/// Ends the whole load when a part of it fails.
struct Part<'a>(&'a AtomicBool);

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Samples the process until the time is over, then ends the load.
fn watch(name: &str, pid: u32, ends: &AtomicBool) -> Vec<Sample> {
    let (time, began) = (duration(), Instant::now());
    let step = (time / 100).clamp(Duration::from_millis(40), Duration::from_secs(2));
    let mut samples = Vec::new();
    let mut told = 0;
    while began.elapsed() < time && !ends.load(Ordering::Relaxed) {
        std::thread::sleep(step);
        samples.push(Sample::of(pid));
        let minutes = began.elapsed().as_secs() / 60;
        if minutes > told {
            told = minutes;
            println!("{name}, minute {told}: {:?}", samples[samples.len() - 1]);
        }
    }
    ends.store(true, Ordering::Relaxed);
    samples
}

/// A control request, which must be answered well.
fn ctl(socket: &Path, words: &[&str]) {
    let out = fairhead().arg("ctl").arg(socket).args(words).output().unwrap();
    // A server that is killed meanwhile is found by its samples.
    assert!(out.status.success(), "ctl {words:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Exports that come, are used, get another size and go, with and without their clients; and other sizes for
/// an export whose clients write all the time.
fn exports(socket: &Path, control: &Path, images: &Path, ends: &AtomicBool, done: &Done) {
    let _part = Part(ends);
    let mut chance = Chance(11);
    let sizes = ["32m", "40m", "64m"];
    for i in 0_u64.. {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("x{i}");
        let image = images.join(&name);
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        ctl(control, &["export", "add", &format!("{name}={},weight=200", image.display())]);
        let (mut client, _) = nbd_client::client(socket, &name).unwrap();
        converse(&mut client, &mut chance, 4, done);
        ctl(control, &["export", "resize", &name, sizes[chance.below(3) as usize]]);
        ctl(control, &["export", "resize", "a", sizes[chance.below(3) as usize]]);
        ctl(control, &["exports"]);
        if i % 2 == 0 {
            client.write_all(&request(DISCONNECT, 0, 0, 0)).unwrap();
            ctl(control, &["export", "remove", &name]);
        } else {
            ctl(control, &["export", "remove", &name, "--force"]);
        }
        fs::remove_file(&image).unwrap();
        count(&done.exports);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Control requests of each kind, until the end. Each must be answered well.
fn controls(socket: &Path, ends: &AtomicBool, done: &Done) {
    let _part = Part(ends);
    let mut chance = Chance(7);
    for i in 0_u64.. {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let group = format!("soak/g{}", chance.below(50));
        let schedulers = ["noop", "deadline", "cfq", "kyber", "mq-deadline", "bfq", "deadline+groups"];
        let requests: &[&[&str]] = match i % 8 {
            0..3 => &[&["make", &group, "weight=300"], &["set", &group, "rbps=50m"], &["remove", &group]],
            3 => &[&["sched", schedulers[chance.below(7) as usize]]],
            4 => &[&["sched", "bfq", "slice_idle=4ms"], &["tune", "low_latency=0"]],
            5 => &[&["depth", "4"], &["depth", "auto"]],
            6 => &[&["stats"]],
            _ => &[&["metrics"]],
        };
        for words in requests {
            ctl(socket, words);
            count(&done.controls);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Requests of one connection, each answered before the next.
fn converse(socket: &mut UnixStream, chance: &mut Chance, requests: u64, done: &Done) {
    for cookie in 0..requests {
        let len = [512, 4096, 65_536, 700 << 10][chance.below(4) as usize] - [0, 1][chance.below(2) as usize];
        let at = chance.below(SIZE - len);
        match chance.below(10) {
            0 => socket.write_all(&request(FLUSH, cookie, 0, 0)).unwrap(),
            1..5 => {
                let fua = chance.below(2) as u16;
                let head = flagged(fua, WRITE, cookie, at, len as u32);
                socket.write_all(&[head, vec![9; len as usize]].concat()).unwrap();
            }
            _ => {
                socket.write_all(&request(READ, cookie, at, len as u32)).unwrap();
                assert_eq!(reply(socket), (0, cookie));
                socket.read_exact(&mut vec![0; len as usize]).unwrap();
                count(&done.requests);
                continue;
            }
        }
        assert_eq!(reply(socket), (0, cookie));
        count(&done.requests);
    }
}

/// Connections that come and go: half-open, asking and leaving, leaving amid a write or before any reply.
fn connections(socket: &Path, ends: &AtomicBool, done: &Done, seed: u64) {
    let _part = Part(ends);
    let mut chance = Chance(seed);
    while !ends.load(Ordering::Relaxed) {
        let export = ["a", "b"][chance.below(2) as usize];
        let how = chance.below(6);
        if how == 0 {
            drop(nbd_client::connect(socket).unwrap());
        } else if how == 1 {
            let mut asks = nbd_client::mapper(socket, export).unwrap();
            assert!(!status(&mut asks, 0, 0, SIZE as u32).is_empty());
        } else {
            let (mut client, _) = nbd_client::client(socket, export).unwrap();
            converse(&mut client, &mut chance, 6, done);
            match how {
                2 => client.write_all(&request(DISCONNECT, 0, 0, 0)).unwrap(),
                3 => client.write_all(&[request(WRITE, 1, 0, 1 << 20), vec![1; 70_000]].concat()).unwrap(),
                4 => (0..40).for_each(|i| client.write_all(&request(READ, i, i << 19, 1 << 19)).unwrap()),
                _ => (),
            }
        }
        count(&done.connections);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_server_under_load_stays_as_large_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let mut command = fairhead();
    command.args(["serve", "--timeout", "60s", "--connections", &CONNECTIONS_MAX.to_string()]);
    for name in ["a", "b"] {
        File::create(at(name)).unwrap().set_len(SIZE).unwrap();
        command.arg("--export").arg(format!("{name}={}", at(name).display()));
    }
    fs::create_dir(at("images")).unwrap();
    command.arg("--export-dir").arg(at("images"));
    command.arg("--socket").arg(at("s")).arg("--control").arg(at("c")).stdout(Stdio::null());
    let (process, line, _said) = start(&mut command);
    assert!(line.starts_with("fairhead: listening on "), "{line}");
    let pid = process.0.id();
    let (ends, done) = (AtomicBool::new(false), Done::default());
    let (socket, control, images) = (at("s"), at("c"), at("images"));
    // What it opens at the first connection stays open.
    converse(&mut nbd_client::client(&socket, "a").unwrap().0, &mut Chance(1), 50, &done);
    std::thread::sleep(Duration::from_millis(300));
    let before = Sample::of(pid);
    let under_load = std::thread::scope(|scope| {
        let (ends, done, socket, control, images) = (&ends, &done, &socket, &control, &images);
        (1..4).for_each(|seed| drop(scope.spawn(move || connections(socket, ends, done, seed))));
        scope.spawn(move || {
            let (mut client, _) = nbd_client::client(socket, "b").unwrap();
            let mut chance = Chance(99);
            while !ends.load(Ordering::Relaxed) {
                converse(&mut client, &mut chance, 10, done);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        scope.spawn(move || controls(control, ends, done));
        scope.spawn(move || exports(socket, control, images, ends, done));
        watch("serve", pid, ends)
    });
    println!("serve: {done:?}");
    let after = Sample::settled(pid, &before);
    Soak { before, under_load, after, caps: Caps::SERVE, minutes: minutes() }.judge("serve");
    for number in [&done.connections, &done.requests, &done.controls, &done.exports] {
        assert!(number.load(Ordering::Relaxed) > 10, "hardly anything was done: {done:?}");
    }
}

/// A folder, its mount, and the process behind it.
struct Mounted {
    folder: TempDir,
    process: Process,
}

impl Mounted {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        ["source", "mnt"].iter().for_each(|n| fs::create_dir(folder.path().join(n)).unwrap());
        let mut command = Command::new("sh");
        let limited = format!("ulimit -n {MOUNT_DESCRIPTORS} && exec \"$0\" mount source mnt --control c");
        command.args(["-c", &limited]).arg(fairhead().get_program());
        let (process, line, _) = start(command.current_dir(folder.path()).stdout(Stdio::null()));
        assert!(line.contains("scheduled by"), "{line}");
        Self { folder, process }
    }
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join("mnt").join(name)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.process.kill();
        let _ = Command::new("umount").arg("-l").arg(self.at("")).status();
    }
}

/// Files that come and go in a folder of their own, with all that is done to files.
fn files(folder: &Path, ends: &AtomicBool, done: &Done, seed: u64) -> io::Result<()> {
    let _part = Part(ends);
    let mut chance = Chance(seed);
    let folder = folder.join(seed.to_string());
    while !ends.load(Ordering::Relaxed) {
        fs::create_dir_all(folder.join("deep/er"))?;
        let names: Vec<PathBuf> = (0..20).map(|i| folder.join(format!("deep/er/{i}"))).collect();
        for path in &names {
            let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path)?;
            let len = 1 + chance.below(200_000) as usize;
            file.write_all_at(&vec![3; len], chance.below(5000))?;
            file.set_len(chance.below(300_000))?;
            file.read_at(&mut vec![0; len], chance.below(100_000))?;
            if chance.below(4) == 0 {
                file.sync_data()?;
            }
            fs::copy(path, path.with_extension("copy"))?;
            fs::rename(path.with_extension("copy"), path.with_extension("new"))?;
            count(&done.files);
        }
        assert_eq!(fs::read_dir(folder.join("deep/er"))?.count(), 40);
        // A file that is gone by its name, and open.
        let mut open = File::open(&names[0])?;
        fs::remove_dir_all(&folder)?;
        open.read_to_end(&mut Vec::new())?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Processes that read a file, each in a cgroup that goes when they have gone.
fn cgroups(file: &Path, ends: &AtomicBool, done: &Done) {
    let roots = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"].map(Path::new);
    for i in 0_u64.. {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("fairhead-soak-{}-{i}", std::process::id());
        let Some(cgroup) = roots.map(|r| r.join(&name)).into_iter().find(|c| fs::create_dir(c).is_ok())
        else {
            return eprintln!("skipped: no cgroup can be made");
        };
        let script = "echo $$ > $0/cgroup.procs && exec dd if=$1 of=/dev/null bs=64k count=8 status=none";
        let ran = Command::new("sh").args(["-c", script]).arg(&cgroup).arg(file).status().unwrap();
        assert!(ran.success(), "dd in a cgroup: {ran}");
        // The kernel may need a moment to let go of it.
        while fs::remove_dir(&cgroup).is_err() && !ends.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        count(&done.cgroups);
        std::thread::sleep(Duration::from_millis(300));
    }
}

#[test]
fn a_mount_under_load_stays_as_large_as_it_is() {
    if !may_mount::may_mount() {
        return;
    }
    let mounted = Mounted::new();
    let pid = mounted.process.0.id();
    fs::write(mounted.at("large"), vec![5; 4 << 20]).unwrap();
    let (ends, done) = (AtomicBool::new(false), Done::default());
    std::thread::sleep(Duration::from_millis(300));
    let before = Sample::of(pid);
    let under_load = std::thread::scope(|scope| {
        let (ends, done, mounted) = (&ends, &done, &mounted);
        let control = mounted.folder.path().join("c");
        (1..4).for_each(|seed| drop(scope.spawn(move || files(&mounted.at(""), ends, done, seed).unwrap())));
        scope.spawn(move || cgroups(&mounted.at("large"), ends, done));
        scope.spawn(move || controls(&control, ends, done));
        watch("mount", pid, ends)
    });
    let after = Sample::settled(pid, &before);
    let arenas = arenas(pid);
    println!("mount: {done:?}; arenas {arenas}");
    assert!(arenas <= ARENAS_MAX, "{arenas} arenas");
    Soak { before, under_load, after, caps: Caps::MOUNT, minutes: minutes() }.judge("mount");
    for number in [&done.files, &done.controls] {
        assert!(number.load(Ordering::Relaxed) > 10, "hardly anything was done: {done:?}");
    }
}

/// 1,000 samples of a load of 35 minutes that has a random number of files open, up to the caps, and what it
/// leaves behind of each sample.
fn soak(caps: Caps, left: impl Fn(u64) -> Sample) -> Soak {
    let before = Sample { resident_kib: 50_000, descriptors: 18, pipes: 0, rings: 1, threads: 7 };
    let mut chance = Chance(5);
    let mut sample = |at: u64, share: u64| {
        let left = left(at);
        Sample {
            resident_kib: before.resident_kib + chance.below(1 + 3000 * share) + left.resident_kib,
            descriptors: before.descriptors + chance.below(1 + caps.descriptors * share) + left.descriptors,
            pipes: chance.below(1 + PIPES_MAX * share) + left.pipes,
            rings: before.rings,
            threads: before.threads + chance.below(1 + caps.threads * share) + left.threads,
        }
    };
    let under_load = (0..1000).map(|at| sample(at, 1)).collect();
    Soak { before, under_load, after: sample(1000, 0), caps, minutes: 35.0 }
}

#[test]
fn chance_is_no_leak_and_what_stays_is_one() {
    let nothing = Sample { resident_kib: 0, descriptors: 0, pipes: 0, rings: 0, threads: 0 };
    for caps in [Caps::SERVE, Caps::MOUNT] {
        assert_eq!(soak(caps, |_| nothing).faults(), [""; 0], "a random load that leaves nothing");
        // One for the whole time, and one that goes with the load.
        let one = |at: u64| Sample { descriptors: u64::from(at >= 500), ..nothing };
        let faults = soak(caps, one).faults();
        assert!(faults.iter().any(|f| f.starts_with("not all is given back")), "{faults:?}");
        let held = |at: u64| Sample { descriptors: if at < 1000 { at } else { 0 }, ..nothing };
        let faults = soak(caps, held).faults();
        assert!(matches!(&faults[..], [f] if f.contains(" descriptors, 18 before and ")), "{faults:?}");
        let threads = |at: u64| Sample { threads: at / 100, ..nothing };
        assert!(!soak(caps, threads).faults().is_empty(), "a thread every three minutes");
        let pipes = |at: u64| Sample { pipes: at / 10, ..nothing };
        assert!(!soak(caps, pipes).faults().is_empty(), "three pipes a minute");
        // The median of a random load grows by some KiB a minute, too.
        let memory = |at: u64| Sample { resident_kib: at * 35 * 100 / 1000, ..nothing };
        assert!(!soak(caps, memory).faults().is_empty(), "100 KiB a minute");
    }
}
