//! A replay takes as much memory for a long trace as for a short one, whatever the disk can do. One test in
//! its own program, as it counts all that the program allocates.

mod counted;

use counted::peak;
use fairhead_core::sched::any::preset;
use fairhead_core::{Duration, Sector, TaskId};
use fairhead_device::DeviceParams;
use fairhead_sim::job::JobFile;
use fairhead_sim::replay::{Mode, Options, Source};
use fairhead_sim::{Host, Scenario, simulate};
use fairhead_trace::format::blktrace;
use fairhead_trace::{Names, Op, Record};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Writes a trace of `count` requests, `gap` apart, of five tasks; the first has none after the beginning but
/// for one at the end.
fn write(path: &Path, count: u64, gap: Duration) {
    let mut names = Names::default();
    names.add_device("8,0").unwrap();
    let mut writer = blktrace::Writer::new(BufWriter::new(File::create(path).unwrap()));
    for i in 0..count {
        let at = gap * i;
        let op = if i % 3 == 0 { Op::Write } else { Op::Read };
        let mut r = Record::new(at, op, Sector(i * 7_654_321 % 400_000_000), 8);
        r.task = TaskId(if i < 10 || i == count - 1 { 1 } else { 2 + (i % 4) as u32 });
        r.completed = Some(at + Duration::from_us(100));
        writer.write(&r, &names).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    let path = std::env::temp_dir().join(format!("fairhead-memory-{}.blktrace.0", std::process::id()));
    let mut used = Vec::new();
    // Longer than the window of requests, and twice that; the disk can do a fraction of what was recorded.
    for count in [70_000, 140_000] {
        write(&path, count, Duration::from_us(50));
        for mode in [Mode::Open, Mode::Closed] {
            used.push(peak(|| {
                let options = Options { mode, ..Options::default() };
                let mut jobs = JobFile::of_trace("t", Source::File(path.clone()), options);
                jobs.read_recordings(&|_, _| {}).unwrap();
                let scenario = Scenario::new(
                    jobs,
                    DeviceParams::preset("sata_ssd").unwrap(),
                    Host::named("2020").unwrap(),
                    "mq-deadline",
                    (preset("mq-deadline").unwrap().config)(),
                );
                let o = simulate(&scenario).unwrap();
                assert_eq!(o.clients.iter().map(|c| c.replayed.unwrap().made).sum::<u64>(), count);
            }));
        }
    }
    std::fs::remove_file(&path).unwrap();
    println!("peaks in bytes, open and closed, short and long: {used:?}");
    for (short, long) in [(used[0], used[2]), (used[1], used[3])] {
        assert!(long < short + (1 << 20), "{short} bytes for the short trace, {long} for the long one");
        assert!(long < 64 << 20, "{long} bytes");
    }
}
