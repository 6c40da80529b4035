//! The bound on memory is enough, and not much more.

use crate::create::used;
use crate::need::{bytes, of};
use fairhead_core::Limits;
use fairhead_core::sched::any::{AnyConfig, PRESETS};

/// Every preset with the tunables that are switches or words at each of their values.
fn configs() -> Vec<(String, AnyConfig)> {
    let mut all = Vec::new();
    for preset in PRESETS {
        let config = (preset.config)();
        all.push((preset.name.to_owned(), config));
        for t in config.list().iter().filter(|t| t.max < 8) {
            for value in t.min..=t.max {
                let mut other = config;
                other.set(t.name, value).expect("a value in range");
                all.push((format!("{} {}={value}", preset.name, t.name), other));
            }
        }
    }
    all
}

fn limits(tags: u16, tasks: u32, groups: u32, trace: u32) -> Limits {
    Limits { tags, tasks, groups, trace, ..Limits::default() }
}

/// Just below and above powers of two, where hash tables double.
const COUNTS: [u32; 9] = [1, 2, 5, 33, 64, 129, 1025, 4096, 8193];

/// Tags, tasks and groups that differ, as a kernel's queues have them.
const MIXED: [[u32; 3]; 7] = [
    [256, 64, 1],
    [256, 128, 32],
    [512, 128, 32],
    [1024, 128, 32],
    [512, 32, 128],
    [4096, 16, 300],
    [100, 1000, 10],
];

#[test]
fn what_is_asked_for_is_enough() {
    let mut worst = (1.0_f64, String::new());
    for (name, config) in configs() {
        // A switch needs a few sizes only.
        let counts = if name.contains('=') { &COUNTS[1..6] } else { &COUNTS[..] };
        let grid = counts.iter().flat_map(|&n| {
            let tags = u16::try_from(n).unwrap();
            [limits(tags, 1, 1, 0), limits(1, n, 1, 0), limits(1, 1, n, 0), limits(tags, n, n, n)]
        });
        for limits in grid.chain(MIXED.map(|[tags, tasks, groups]| limits(tags as u16, tasks, groups, 0))) {
            let bound = bytes(&config, &limits).expect("a size");
            let Some(used) = used(&limits, config, bound) else {
                panic!("{name}: {bound} bytes are too few for {limits:?}: {:?} in need.rs", of(&config).0)
            };
            if used > 1 << 16 {
                let times = bound as f64 / used as f64;
                if times > worst.0 {
                    worst = (times, format!("{name}: {limits:?}"));
                }
            }
        }
    }
    assert!(worst.0 < 3.0, "{:.2} times as much as is used is asked for: {}", worst.0, worst.1);
}

/// Prints the lines of `need.rs`: `cargo test -p fairhead-core-ffi --lib -- --ignored --nocapture lines`.
#[test]
#[ignore = "a tool: it prints what need.rs should say"]
fn lines_of_need() {
    let much = 1 << 28;
    let used = |limits, config| used(&limits, config, much).expect("enough") as u64;
    let mut lines: Vec<(&str, [u64; 6])> = Vec::new();
    for (_, config) in configs() {
        let one = used(limits(1, 1, 1, 0), config);
        let several = used(limits(1, 1, 2, 0), config);
        let mut line = [one, 0, 0, 0, 0, several - one];
        for which in 1..5 {
            let at = |n: u32| {
                let tags = u16::try_from(n).unwrap();
                let l = [limits(tags, 1, 1, 0), limits(1, n, 1, 0), limits(1, 1, n, 0), limits(1, 1, 1, n)];
                let beyond = if which == 3 { several } else { one };
                let more = used(l[which - 1], config).saturating_sub(beyond);
                // With several groups a task can have requests in each, and a queue for each tag.
                let split = if which == 1 { used(limits(tags, 1, 2, 0), config) - several } else { 0 };
                (more.max(split), u64::from(n))
            };
            // The slope is that of large tables; what small ones need beyond it is needed in any case.
            let large = [1025, 4097, 8193, 32769].map(at);
            line[which] = large.into_iter().map(|(more, n)| more.div_ceil(n)).max().unwrap_or(0);
            let small = [2, 3, 5, 9, 17, 33, 65, 129, 257, 513].map(at).into_iter();
            let beyond = small.map(|(more, n)| more.saturating_sub(line[which] * n)).max();
            line[if which == 3 { 5 } else { 0 }] += beyond.unwrap_or(0);
        }
        let name = config.scheduler();
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.iter_mut().zip(line).for_each(|(k, l)| *k = (*k).max(l)),
            None => lines.push((name, line)),
        }
    }
    for (name, line) in lines {
        println!("{name:<20} {line:?}");
    }
}
