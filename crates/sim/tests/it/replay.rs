//! Recorded traces as workloads: what a replay keeps of its recording.

use fairhead_core::sched::any::preset;
use fairhead_core::{Duration, Sector, TaskId};
use fairhead_device::DeviceParams;
use fairhead_sim::job::{self, JobFile};
use fairhead_sim::journal::blocks::Blocks;
use fairhead_sim::journal::{self, Caps, Collector, record};
use fairhead_sim::replay::{Fit, Mode, Options, Source};
use fairhead_sim::rng::Rng;
use fairhead_sim::{Host, Outcome, Scenario, SimError, simulate};
use fairhead_trace::format::blkparse;
use fairhead_trace::{Flags, Names, Op, Record};
use std::sync::Arc;

/// A trace as blkparse prints it.
fn written(records: &[Record]) -> Source {
    let (mut names, mut bytes) = (Names::default(), Vec::new());
    names.add_device("8,0").unwrap();
    let mut writer = blkparse::Writer::new(&mut bytes);
    records.iter().for_each(|r| writer.write(r, &names).unwrap());
    writer.finish(&names).unwrap();
    Source::Bytes("t".to_owned(), bytes.into())
}

fn jobs(source: Source, change: impl FnOnce(&mut Options)) -> JobFile {
    let mut options = Options::default();
    change(&mut options);
    let mut jobs = JobFile::of_trace("t", source, options);
    jobs.read_recordings(&|_, _| {}).unwrap();
    jobs
}

fn scenario(jobs: JobFile, disk: &str, scheduler: &str) -> Scenario {
    Scenario::new(
        jobs,
        DeviceParams::preset(disk).unwrap(),
        Host::named("2020").unwrap(),
        scheduler,
        (preset(scheduler).unwrap().config)(),
    )
}

fn run(jobs: JobFile, disk: &str, scheduler: &str) -> Outcome {
    simulate(&scenario(jobs, disk, scheduler)).unwrap()
}

fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

/// Requests of several tasks, some of which overlap; with completions.
fn drawn(seed: u64, count: u64, tasks: u64) -> Vec<Record> {
    let mut rng = Rng::new(seed, "replay");
    let mut at = Duration::ZERO;
    let draw = |i| {
        let op = match rng.below(10) {
            0..5 => Op::Read,
            5..9 => Op::Write,
            _ => Op::Flush,
        };
        let sectors = if op == Op::Flush { 0 } else { 8 * (1 + rng.below(32) as u32) };
        let mut r = Record::new(at, op, Sector(if op == Op::Flush { 0 } else { i * 512 }), sectors);
        r.task = TaskId(1 + rng.below(tasks) as u32);
        if op == Op::Flush {
            r.flags = Flags::PREFLUSH;
        } else {
            r.completed = Some(at + us(50 + rng.below(5_000)));
        }
        at += us(rng.below(3) * rng.below(4_000));
        r
    };
    (0..count).map(draw).collect()
}

#[test]
fn nothing_is_lost_and_nothing_invented() {
    for (seed, mode) in [(1, Mode::Open), (2, Mode::Closed), (3, Mode::NoStall)] {
        for clients_max in [3, 16] {
            let records = drawn(seed, 600, 7);
            let of = |op| records.iter().filter(move |r| r.op == op);
            let bytes = |op| of(op).map(|r| u64::from(r.sectors) * 512).sum::<u64>();
            for scheduler in ["noop", "bfq", "cfq"] {
                let jobs = jobs(written(&records), |o| (o.mode, o.clients_max) = (mode, clients_max));
                let want = if clients_max == 16 { 7 } else { clients_max as usize + 1 };
                assert_eq!(jobs.jobs.len(), want);
                let o = run(jobs, "nas2020", scheduler);
                let sum = |f: &dyn Fn(&fairhead_sim::metrics::ClientStats) -> u64| {
                    o.clients.iter().map(f).sum::<u64>()
                };
                assert_eq!(sum(&|c| c.read.calls), of(Op::Read).count() as u64);
                assert_eq!(sum(&|c| c.write.bytes), bytes(Op::Write));
                assert_eq!(sum(&|c| c.read.bytes), bytes(Op::Read));
                assert_eq!(sum(&|c| c.sync.calls), of(Op::Flush).count() as u64);
                assert_eq!(sum(&|c| c.replayed.unwrap().made), 600);
                assert_eq!(o.disk.counters.bytes_read, bytes(Op::Read), "{scheduler}");
            }
        }
    }
}

#[test]
fn open_keeps_the_recorded_times_whatever_the_disk_does() {
    let records = drawn(5, 500, 3);
    for (disk, speed_pct) in [("nas2020", 100), ("nvme", 100), ("nvme", 400), ("nas2020", 50)] {
        let o = run(jobs(written(&records), |o| o.speed_pct = speed_pct), disk, "mq-deadline");
        let late: u64 = o.clients.iter().map(|c| c.replayed.unwrap().late).sum();
        assert_eq!(late, 0, "{disk} at {speed_pct} %");
        let last = records.last().unwrap().at * 100 / u64::from(speed_pct);
        assert!(o.elapsed >= last && o.elapsed < last + Duration::from_secs(1), "{disk}: {}", o.elapsed);
    }
}

#[test]
fn closed_keeps_think_times_on_a_disk_of_any_speed() {
    // One task, one request at a time: it takes what the disk takes, and all pauses.
    let mut at = Duration::ZERO;
    let mut records = Vec::new();
    let mut pauses = Duration::ZERO;
    for i in 0..200 {
        let completed = at + us(123 + i);
        let mut r = Record::new(at, Op::Read, Sector(i * 10_000), 8);
        (r.task, r.completed) = (TaskId(1), Some(completed));
        records.push(r);
        at = completed + us(i * 17);
        if i < 199 {
            pauses += us(i * 17);
        }
    }
    for disk in ["nas2020", "nvme"] {
        let o = run(jobs(written(&records), |o| o.mode = Mode::Closed), disk, "noop");
        let c = &o.clients[0];
        assert_eq!(c.elapsed, pauses + c.read.latency_sum, "{disk}");
        assert_eq!(c.replayed.unwrap().late, 0);
        let half =
            run(jobs(written(&records), |o| (o.mode, o.speed_pct) = (Mode::Closed, 200)), disk, "noop");
        let (c, half) = (&half.clients[0], pauses / 2);
        let off = c.elapsed.as_ns().abs_diff((half + c.read.latency_sum).as_ns());
        assert!(off < 1000, "{disk} at double speed: {off} ns off");
    }
}

#[test]
fn what_overlapped_overlaps_and_what_did_not_does_not() {
    let at = |at: u64, end: u64, sector: u64| {
        let mut r = Record::new(us(at), Op::Read, Sector(sector), 8);
        (r.task, r.completed) = (TaskId(1), Some(us(end)));
        r
    };
    // B is made while A is in flight, C after both: 300 after B, which came last.
    let records = [at(0, 1000, 0), at(500, 1200, 80_000_000), at(1500, 1600, 8)];
    let o = run(jobs(written(&records), |o| o.mode = Mode::Closed), "nas2020", "noop");
    let c = &o.clients[0].read;
    // On the slow disk B ends last, so the end is B's, 300 us, and C, which hits the cache or not.
    let first_two = o.clients[0].elapsed.saturating_sub(us(300));
    assert!(first_two < c.latency_sum, "A and B overlap: {} {}", o.clients[0].elapsed, c.latency_sum);
    assert_eq!((c.calls, o.clients[0].replayed.unwrap().late), (3, 0));
}

#[test]
fn a_replay_of_what_a_disk_did_does_the_same_on_that_disk() {
    // Record a run by hand: open at drawn times, with the ends that the simulated disk gave them; one task,
    // no overlap.
    let gaps: Vec<Duration> = drawn(9, 30, 1).iter().map(|r| us(20_000 + r.sector.0 % 977)).collect();
    let mut at = Duration::ZERO;
    let mut records: Vec<Record> = Vec::new();
    for (i, gap) in gaps.iter().enumerate() {
        let mut r = Record::new(at, Op::Read, Sector((i as u64 * 7_654_321) % 100_000_000), 8);
        (r.task, r.completed) = (TaskId(1), Some(at + us(1)));
        records.push(r);
        at += *gap;
    }
    // The first pass tells how long each takes: all but the last are as they were when one more is added.
    let elapsed = |records: &[Record], mode| {
        run(jobs(written(records), |o| o.mode = mode), "nas2020", "noop").clients[0].elapsed
    };
    for i in 0..records.len() {
        let end = elapsed(&records[..=i], Mode::Open);
        records[i].completed = Some(end);
        if i % 10 == 9 {
            assert_eq!(elapsed(&records[..=i], Mode::Closed), end, "after {i}");
        }
    }
}

#[test]
fn an_overload_is_bounded_and_told() {
    let records: Vec<Record> = (0..3000)
        .map(|i| {
            let mut r = Record::new(us(i * 100), Op::Read, Sector((i * 7_654_321) % 100_000_000), 8);
            r.task = TaskId(1);
            r
        })
        .collect();
    let mut jobs = jobs(written(&records), |_| {});
    jobs.jobs[0].iodepth = 32;
    let o = run(jobs, "nas2020", "mq-deadline");
    let r = o.clients[0].replayed.unwrap();
    assert_eq!((r.made, r.recorded), (3000, 3000));
    assert!(r.late > 2900 && r.late_max > Duration::from_secs(3), "{r:?}");
    assert!(o.clients[0].read.latency_max >= r.late_max, "latency counts from when it was due");
    assert!(o.notes.iter().any(|n| n.contains("fell behind: 29")), "{:?}", o.notes);
}

#[test]
fn a_larger_trace_is_mapped_and_told() {
    let far =
        |i: u64| Record { task: TaskId(1), ..Record::new(us(i * 1000), Op::Write, Sector(i << 36), 2048) };
    let records: Vec<Record> = (0..10).map(far).collect();
    for fit in [Fit::Scale, Fit::Wrap] {
        let o = run(jobs(written(&records), |o| o.fit = fit), "nas2020", "noop");
        assert_eq!(o.clients[0].replayed.unwrap().moved, 9, "{fit:?}");
        assert!(o.notes.iter().any(|n| n.contains("9 of 10 requests were moved")), "{:?}", o.notes);
    }
}

#[test]
fn a_trace_begins_at_the_offset() {
    let records: Vec<Record> = (0..10)
        .map(|i| Record { task: TaskId(1), ..Record::new(us(i * 1000), Op::Read, Sector(i * 5000), 8) })
        .collect();
    let mut jobs = jobs(written(&records), |_| {});
    jobs.jobs[0].offset = job::Size::Bytes(1 << 20);
    let (rows, _) = journal(&scenario(jobs, "nas2020", "noop"));
    let starts: Vec<u64> = rows.iter().map(|row| row.3).collect();
    assert_eq!(starts, records.iter().map(|r| 2048 + r.sector.0).collect::<Vec<_>>());
}

/// Task 2 has many requests between the two of task 1, on a slower disk than when they were recorded.
#[test]
fn a_request_that_waits_for_other_tasks_is_counted() {
    const BETWEEN: u64 = (1 << 16) + 2000;
    let record = |at, task, sector| Record {
        task: TaskId(task),
        completed: Some(us(at + 1)),
        ..Record::new(us(at), Op::Read, Sector(sector), 8)
    };
    let mut records = vec![record(0, 1, 0)];
    records.extend((1..=BETWEEN).map(|i| record(2 * i, 2, i * 7_654_321 % 100_000_000)));
    records.push(record(2 * BETWEEN + 2, 1, 8));
    // What was made and what of it was held, by task, and whether a note says so.
    let held = |records: &[Record]| {
        let o = run(jobs(written(records), |o| o.mode = Mode::Closed), "nas2020", "noop");
        let figures = o.clients.iter().map(|c| c.replayed.unwrap());
        let mut figures: Vec<(u64, u64)> = figures.map(|r| (r.made, r.held)).collect();
        figures.sort_unstable();
        (figures, o.notes.iter().any(|n| n.contains(" 1 requests waited for other tasks")))
    };
    assert_eq!(held(&records), (vec![(2, 1), (BETWEEN, 0)], true));
    records.drain(1..=4000);
    assert_eq!(held(&records), (vec![(2, 0), (BETWEEN - 4000, 0)], false), "all fit the window");
}

#[test]
fn a_run_can_end_before_its_trace() {
    let records = drawn(11, 5000, 4);
    for mode in [Mode::Open, Mode::Closed] {
        let mut jobs = jobs(written(&records), |o| o.mode = mode);
        jobs.jobs.iter_mut().for_each(|j| j.runtime = Some(Duration::from_ms(500)));
        let o = run(jobs, "nas2020", "bfq");
        let made: u64 = o.clients.iter().map(|c| c.replayed.unwrap().made).sum();
        assert!(made > 50 && made < 4000, "{made}");
        assert!(o.elapsed < Duration::from_secs(2), "{}", o.elapsed);
    }
}

#[test]
fn beside_other_jobs_and_in_job_files() {
    let folder = std::env::temp_dir().join(format!("fairhead-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.trace");
    let Source::Bytes(_, bytes) = written(&drawn(3, 300, 2)) else { unreachable!() };
    std::fs::write(&path, &bytes).unwrap();
    let text = format!(
        "[old]\nread_iolog={}\n#!fh_replay=closed\ncgroup=a\ncgroup_weight=500\n\
         [reader]\nrw=randread\nsize=1g\ndirect=1\nruntime=1s\ntime_based\ncgroup=b\n",
        path.display()
    );
    let mut jobs = job::parse(&text, "j.fio").unwrap();
    jobs.read_recordings(&|_, _| {}).unwrap();
    let names: Vec<&str> = jobs.jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!((names.len(), names[2]), (3, "reader"));
    assert!(names[0].starts_with("old:"), "{names:?}");
    let (a, b) = (run(jobs.clone(), "nas2020", "bfq"), run(jobs.clone(), "nas2020", "bfq"));
    assert_eq!(a, b, "same trace, same bytes");
    assert_eq!(a.clients[0].replayed.unwrap().made + a.clients[1].replayed.unwrap().made, 300);
    // Another content under the same name is found, be it longer or shorter.
    for other in [200, 301, 300] {
        let Source::Bytes(_, bytes) = written(&drawn(if other == 300 { 4 } else { 3 }, other, 2)) else {
            unreachable!()
        };
        std::fs::write(&path, &bytes).unwrap();
        let error = simulate(&scenario(jobs.clone(), "nas2020", "noop")).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("changed while it was replayed"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
    let gone = simulate(&scenario(jobs, "nas2020", "noop")).unwrap_err();
    assert!(matches!(gone, SimError::Job { .. }) && gone.to_string().contains("cannot be opened"), "{gone}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_long_series_has_longer_intervals() {
    let jobs = jobs(written(&drawn(13, 40, 2)), |o| o.mode = Mode::Open);
    let with = |interval| {
        let interval = Some(interval);
        simulate(&Scenario { interval, ..scenario(jobs.clone(), "nas2020", "noop") }).unwrap()
    };
    let coarse = with(us(1000));
    // 700 000 intervals of two clients are more than are kept.
    let asked = coarse.elapsed / 700_000;
    let fine = with(asked);
    assert_eq!(fine.interval, Some(asked * 2));
    assert!(fine.series.len() < 1 << 20 && fine.series.len() == fine.disk_series.len());
    assert_eq!(fine.series.len() as u64, fine.elapsed / (asked * 2));
    assert_eq!(fine.clients, coarse.clients);
    let calls = |o: &Outcome| o.series.iter().flatten().map(|p| p.calls).sum::<u64>();
    assert!(calls(&fine) >= 39, "all but those of an interval that has not ended");
    let busy = |o: &Outcome| o.disk_series.iter().map(|p| p.busy.as_ns()).sum::<u64>();
    assert!(busy(&fine) >= busy(&coarse));
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let refuse = |text: &str, change: &dyn Fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        let source = Source::Bytes("t".to_owned(), Arc::from(text.as_bytes()));
        JobFile::of_trace("t", source, options).read_recordings(&|_, _| {}).unwrap_err().to_string()
    };
    let alibaba = "0,R,0,4096,5\n0,W,4096,4096,9\n";
    let no_ends = refuse(alibaba, &|o| o.mode = Mode::Closed);
    assert!(no_ends.contains("Alibaba CSV has no completion times"), "{no_ends}");
    assert!(refuse("0,R,0,4096,5\n0,W,x,4096,9\n", &|_| {}).contains("t:2: "));
    assert!(
        refuse(alibaba, &|o| o.devices = vec!["7".to_owned()]).contains("it has no device '7'; it has 0")
    );
    assert!(
        refuse(alibaba, &|o| (o.skip.reads, o.skip.writes) = (true, true))
            .contains("it has no request to replay")
    );
    assert!(refuse("hello\n", &|_| {}).contains("no trace of a known format"));
    // Memory is bounded by what may be in flight, too.
    let rows: String = (0..100).map(|i| format!("{i},R,0,4096,5\n")).collect();
    let many = Source::Bytes("t".to_owned(), Arc::from(rows.as_bytes()));
    let mut deep = JobFile::of_trace("t", many, Options { clients_max: 100, ..Options::default() });
    deep.jobs[0].iodepth = 4096;
    let wrong = deep.read_recordings(&|_, _| {}).unwrap_err().to_string();
    assert!(wrong.contains("100 clients with 4096 requests in flight each"), "{wrong}");
}

#[test]
fn volumes_are_clients_where_tasks_are_not_recorded() {
    let text = "7,R,0,4096,5\n9,W,4096,4096,9\n7,R,0,4096,50\n";
    let source = || Source::Bytes("t".to_owned(), Arc::from(text.as_bytes()));
    let all = jobs(source(), |_| {});
    let names: Vec<&str> = all.jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["7", "9"]);
    let one = jobs(source(), |o| o.devices = vec!["9".to_owned()]);
    let o = run(one, "nvme", "kyber");
    assert_eq!((o.clients.len(), o.clients[0].write.calls, o.clients[0].read.calls), (1, 1, 0));
}

/// What happened in a run: of each request when it was made and completed, what it did, and where.
type Rows = Vec<(u64, u64, fairhead_device::DeviceOp, u64, u32)>;

fn journal(scenario: &Scenario) -> (Rows, Vec<u8>) {
    let mut collector = Collector::new(Caps { requests: 10_000, ..Caps::NONE });
    record(scenario, &mut collector).unwrap();
    let ns = |t: Option<Duration>| t.unwrap().as_ns();
    let row = |r: &journal::Request| (r.made.as_ns(), ns(r.completed), r.kind.op, r.sector.0, r.sectors.0);
    let mut rows: Rows = collector.requests.iter().map(row).collect();
    rows.sort_by_key(|r| (r.0, r.3));
    let mut bytes = Vec::new();
    let mut blocks = Blocks::new(fairhead_trace::Target::Blktrace, &mut bytes);
    record(scenario, &mut blocks).unwrap();
    blocks.finish().unwrap();
    (rows, bytes)
}

const LOAD: &str = "[global]\ndirect=1\nsize=4g\nioengine=libaio\n\
    [many]\nrw=randrw\nbs=16k\niodepth=4\nnumber_ios=150\nprio=4\n\
    [one]\nrw=randread\nbs=4k\nthinktime=7ms\nnumber_ios=60\nstartdelay=13us\n\
    [seq]\nrw=write\nbs=64k\niodepth=2\nnumber_ios=80\nrate=2m\nstartdelay=29us\n";

/// The machine records itself, and replays what it recorded: the same happens, to the nanosecond, by the
/// clock and by the dependencies. (The jobs do not begin at the very same time: which of several tasks goes
/// first then is not kept.)
fn it_does_again(text: &str, disk: &str, scheduler: &str, seed: u64) {
    let scenario = |jobs| Scenario { seed, ..scenario(jobs, disk, scheduler) };
    let (rows, bytes) = journal(&scenario(job::parse(text, "j").unwrap()));
    assert_eq!(rows.len(), 290);
    let source = Source::Bytes("t".to_owned(), bytes.into());
    for mode in [Mode::Open, Mode::Closed] {
        let mut jobs = jobs(source.clone(), |o| o.mode = mode);
        // The trace begins with its first request, the disk turned on before it; times past the kernel's
        // ticks matter.
        jobs.jobs.iter_mut().for_each(|j| j.startdelay = Duration::from_ns(rows[0].0));
        assert_eq!(jobs.jobs.len(), 3, "a client for each");
        let (again, _) = journal(&scenario(jobs));
        let differs = rows.iter().zip(&again).position(|(a, b)| a != b);
        let told = differs.map(|i| (i, rows[i], again[i]));
        assert_eq!((told, again.len()), (None, rows.len()), "{scheduler} on {disk}, {mode:?}, seed {seed}");
    }
}

#[test]
fn what_a_disk_did_it_does_again() {
    for (disk, scheduler) in [
        ("nas2020", "noop"),
        ("nas2020", "mq-deadline"),
        ("sata_ssd", "kyber"),
        ("nas2020", "cfq"),
        ("nas2020", "bfq"),
    ] {
        it_does_again(LOAD, disk, scheduler, 1);
    }
}

/// BFQ refuses a request while its queue has its share of the tags. The thread waits, runs the queue each
/// time it is refused, and is refused again or not depending on what that run did. The recording has the time
/// at which the thread first asked, so that the replay's thread waits alike.
#[test]
fn what_waited_for_admission_waits_again() {
    for seed in 1..=8 {
        for depth in [4, 8, 16] {
            let text = LOAD.replace("iodepth=4", &format!("iodepth={depth}"));
            it_does_again(&text, "nas2020", "bfq", seed);
        }
    }
}

/// The times of a small trace with everything in it, replayed three ways: rewritten by `FAIRHEAD_BLESS=1`.
#[test]
fn a_small_trace_replayed_three_ways() {
    let (mut names, mut bytes) = (Names::default(), Vec::new());
    names.add_device("8,0").unwrap();
    for (pid, name) in [(1, "reader"), (2, "writer")] {
        names.name_task(TaskId(pid), name);
    }
    let mut writer = blkparse::Writer::new(&mut bytes);
    let row = |at: u64, pid, op, sector, sectors, flags, end: Option<u64>| Record {
        task: TaskId(pid),
        flags,
        completed: end.map(us),
        ..Record::new(us(at), op, Sector(sector), sectors)
    };
    for r in [
        row(0, 1, Op::Read, 1_000_000, 8, Flags::META, Some(4000)),
        row(1000, 2, Op::Write, 90_000_000, 64, Flags::NONE, Some(9000)),
        row(1100, 2, Op::Write, 90_000_064, 64, Flags::NONE, Some(9000)),
        row(4500, 1, Op::Read, 1_000_008, 8, Flags::AHEAD, Some(4700)),
        row(4600, 1, Op::Read, 70_000_000, 8, Flags::NONE, Some(12_000)),
        row(9500, 2, Op::Write, 2_000, 8, Flags::SYNC | Flags::FUA | Flags::PREFLUSH, Some(14_000)),
        row(13_000, 1, Op::Discard, 90_000_000, 128, Flags::NONE, Some(13_100)),
        row(15_000, 2, Op::Flush, 0, 0, Flags::PREFLUSH, None),
    ] {
        writer.write(&r, &names).unwrap();
    }
    writer.finish(&names).unwrap();
    let source = Source::Bytes("t".to_owned(), bytes.into());
    let mut table = String::from("mode task asked offset_bytes bytes began_ns ended_ns\n");
    for mode in [Mode::Open, Mode::Closed, Mode::NoStall] {
        let jobs = jobs(source.clone(), |o| o.mode = mode);
        let mut collector = Collector::new(Caps { calls: 100, ..Caps::NONE });
        record(&scenario(jobs.clone(), "nas2020", "mq-deadline"), &mut collector).unwrap();
        collector.calls.sort_by_key(|c| c.id);
        for c in &collector.calls {
            let (task, ended) = (&jobs.jobs[c.client].name, c.ended.unwrap().as_ns());
            let (word, asked, began) = (mode.word(), c.kind, c.began.as_ns());
            table += &format!("{word} {task} {asked:?} {} {} {began} {ended}\n", c.offset, c.bytes);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/replay.txt");
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(path).expect("the golden table");
    assert!(golden == table, "times have moved:\n{table}");
}
