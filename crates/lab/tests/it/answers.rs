//! What `advise` answers for six built-in loads on eight disks: beside what experts recommend
//! (docs/advise.md), beside the arena's best scheduler, with other seeds, and with one round.
//!
//! The answers are kept in the table of docs/answers.md. All rows take some 10 minutes of processor time:
//! `FAIRHEAD_ADVICE=1` asks them all and compares, `FAIRHEAD_ADVICE=DISK`, `LOAD` or `LOAD,DISK` a part; with
//! `FAIRHEAD_BLESS=1` the rows that were asked are written. A plain run asks one row, and holds the kept ones
//! to what must be true.

use fairhead_core::sched::any::preset;
use fairhead_device::{Device, DeviceParams};
use fairhead_lab::workloads::WORKLOADS;
use fairhead_sim::Host;
use fairhead_sim::advise::{self, Question, WORK_PER_S, kernels_default};
use fairhead_sim::arena::Arena;
use fairhead_sim::job::{JobFile, parse};
use fairhead_sim::satisfaction::Emphasis;
use fairhead_sim::sweep::{Part, Setting, Tuned};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const LOADS: [&str; 6] = ["desktop", "postgres", "nas", "vm-host", "build-server", "camera-recorder"];
const DISKS: [&str; 8] =
    ["nas2020", "sata2009", "sata2009q", "ide2004", "microsd_a1", "emmc51", "sata_ssd", "nvme"];

/// The line between the head of the table and its rows.
const HEAD_ENDS: &str = "|---|---|---|---|---|---|---|---|---|---|";

/// Seeds and rounds of the four questions of a row.
const ASKED: [(u64, Option<u32>); 4] = [(1, None), (2, None), (3, None), (1, Some(1))];

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    load: String,
    disk: String,
    /// The winners of [`ASKED`].
    answers: [String; 4],
    /// What experts recommend; nothing where they say nothing.
    experts: String,
    /// The best scheduler of the arena among those that no floor bars, and how much better it is.
    best: String,
    regret: f64,
    /// The reckoned work of the first question, in seconds.
    work: f64,
}

impl Row {
    fn line(&self) -> String {
        let Self { load, disk, answers, experts, best, regret, work } = self;
        format!(
            "| {load} | {disk} | {} | {experts} | {best} | {regret:.2} | {work:.1} |",
            answers.join(" | ")
        )
    }

    /// A line of the table; nothing of its head and of other lines.
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [load, disk, a, b, c, d, experts, best, regret, work] = cells[..] else { return None };
        Some(Self {
            load: load.to_owned(),
            disk: disk.to_owned(),
            answers: [a, b, c, d].map(str::to_owned),
            experts: experts.to_owned(),
            best: best.to_owned(),
            regret: regret.parse().ok()?,
            work: work.parse().ok()?,
        })
    }

    /// Whether other seeds and one round give the same answer.
    fn is_stable(&self) -> bool {
        self.answers.iter().all(|a| *a == self.answers[0])
    }

    /// The scheduler of the answer, without tunables.
    fn scheduler(&self) -> &str {
        self.answers[0].split(',').next().unwrap()
    }
}

fn docs(page: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(page)
}

/// The rows that are kept.
fn kept() -> Vec<Row> {
    std::fs::read_to_string(docs("answers.md")).unwrap().lines().filter_map(Row::read).collect()
}

/// What docs/advise.md has for a load on a disk: its column, by the kind of the disk.
fn experts(load: &str, on: &str) -> String {
    let column = match on {
        "microsd_a1" | "emmc51" => 2,
        "sata_ssd" => 3,
        "nvme" => 4,
        _ => 1,
    };
    let text = std::fs::read_to_string(docs("advise.md")).unwrap();
    let table = text.split("## What experts recommend").nth(1).expect("the table of experts");
    let line = table.lines().find(|l| l.starts_with(&format!("| `{load}` |"))).unwrap();
    line.trim_matches('|').split('|').nth(column).unwrap().trim().to_owned()
}

fn disk(name: &str) -> DeviceParams {
    match name {
        "sata2009q" => DeviceParams::from_toml("base = \"sata2009\"\nqueue_depth = 31\n", name).unwrap(),
        name => DeviceParams::preset(name).unwrap(),
    }
}

fn host(name: &str) -> Host {
    Host::for_disk(if name == "sata2009q" { "sata2009" } else { name })
}

fn jobs(load: &str) -> JobFile {
    let text = WORKLOADS.iter().find(|w| w.name == load).unwrap().text;
    parse(text, load).unwrap()
}

fn shown(preset: &str) -> &str {
    fairhead_core::sched::any::shown(preset)
}

/// The winner's name, and the reckoned work in seconds.
fn ask(load: &str, on: &str, (seed, rounds): (u64, Option<u32>)) -> (String, f64) {
    let question = Question {
        jobs: jobs(load),
        disk: disk(on),
        host: host(on),
        emphasis: Emphasis::Even,
        seed,
        work: WORK_PER_S * 10,
        rounds,
        against: None,
        only: None,
    };
    let (_, advice) = advise::advise(&question, 1, &(), &|_| {}).unwrap().unwrap();
    (advice.candidates[advice.winner].name(), advice.work().as_ns() as f64 / 1e9)
}

/// A factor of more than that by which another is better is far from the best.
const FAR: f64 = 1.1;
/// Seeds of the arena, as its map has them; and for rows that are far from the best by those: three seeds are
/// off by more than that where a load's noise is large.
const ARENA_SEEDS: [u32; 2] = [3, 24];

/// The best scheduler in the arena and the regret, with as many seeds as the row needs.
fn regret(load: &str, on: &str, scheduler: &str) -> (String, f64) {
    let few = regret_by(load, on, scheduler, ARENA_SEEDS[0]);
    if few.1 <= FAR { few } else { regret_by(load, on, scheduler, ARENA_SEEDS[1]) }
}

/// The best scheduler in the arena that no floor bars beside the kernel's default, and how much more
/// satisfied the load is under it than under this one.
fn regret_by(load: &str, on: &str, scheduler: &str, seeds: u32) -> (String, f64) {
    let facts = Device::new(&disk(on)).unwrap().facts();
    let of_disk = ["noop", "mq-deadline", "bfq", "kyber"].into_iter();
    let presets: Vec<&'static str> = of_disk.filter(|s| *s != "kyber" || !facts.rotational).collect();
    let tuned = |scheduler: &&'static str| Tuned {
        scheduler,
        set: String::new(),
        config: (preset(scheduler).unwrap().config)(),
    };
    let arena = Arena {
        loads: vec![jobs(load)],
        settings: vec![Setting { name: on.to_owned(), disk: disk(on), host: host(on) }],
        tuned: presets.iter().map(tuned).collect(),
        seed: 1,
        seeds,
    };
    let cells = arena.run(Part::WHOLE, 1, &(), &|_| {}).unwrap();
    let cell = cells[0].as_ref().unwrap();
    let index = |name: &str| presets.iter().position(|p| shown(p) == name).unwrap();
    let now = index(shown(kernels_default(&facts)));
    let fair = (0..presets.len()).filter(|&c| cell.book.floor(c, now).is_none());
    let best = fair.max_by(|a, b| cell.book.satisfaction(*a).total_cmp(&cell.book.satisfaction(*b))).unwrap();
    let ratio = cell.book.satisfaction(best) / cell.book.satisfaction(index(scheduler));
    (shown(presets[best]).to_owned(), ratio)
}

fn row(load: &str, on: &str) -> Row {
    let [a, b, c, d] = ASKED.map(|how| ask(load, on, how));
    let mut row = Row {
        load: load.to_owned(),
        disk: on.to_owned(),
        work: a.1,
        answers: [a, b, c, d].map(|(name, _)| name),
        experts: experts(load, on),
        best: String::new(),
        regret: 0.0,
    };
    (row.best, row.regret) = regret(load, on, row.scheduler());
    row
}

/// Asks rows on two threads.
fn rows(which: &[(&str, &str)]) -> Vec<Row> {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let take = || {
        while let Some((load, on)) = which.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = row(load, on);
            println!("{}", row.line());
            all.lock().unwrap().push(row);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(take);
        take();
    });
    all.into_inner().unwrap()
}

/// All loads on all disks.
fn places() -> impl Iterator<Item = (&'static str, &'static str)> {
    DISKS.into_iter().flat_map(|on| LOADS.into_iter().map(move |load| (load, on)))
}

/// The rows are those that are kept. A plain run asks for one.
#[test]
fn answers_are_those_that_are_kept() {
    let wanted = std::env::var("FAIRHEAD_ADVICE").unwrap_or_default();
    let is_wanted = |(load, on): &(&str, &str)| match wanted.as_str() {
        "" => (*load, *on) == ("camera-recorder", "ide2004"),
        "1" => true,
        name => *load == name || *on == name || format!("{load},{on}") == name,
    };
    let which: Vec<(&str, &str)> = places().filter(is_wanted).collect();
    let asked = rows(&which);
    let mut all = kept();
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        all.retain(|k| asked.iter().all(|a| (&a.load, &a.disk) != (&k.load, &k.disk)));
        all.extend(asked);
        all.sort_by_key(|r| places().position(|p| p == (&r.load, &r.disk)));
        let old = std::fs::read_to_string(docs("answers.md")).unwrap();
        let mut text = String::new();
        for line in old.lines().filter(|l| Row::read(l).is_none()) {
            writeln!(text, "{line}").unwrap();
            if line.starts_with(HEAD_ENDS) {
                all.iter().for_each(|row| writeln!(text, "{}", row.line()).unwrap());
            }
        }
        std::fs::write(docs("answers.md"), text).unwrap();
        return;
    }
    for row in asked {
        let kept = all.iter().find(|k| (&k.load, &k.disk) == (&row.load, &row.disk));
        assert_eq!(kept.map(Row::line), Some(row.line()));
    }
}

/// What must hold of the kept rows, but for those that the page names with the reason: the arena's best or
/// within a tenth of it, the same answer with other seeds and with one round, and one that experts recommend.
#[test]
fn kept_answers_are_near_the_best_and_the_same_with_other_seeds() {
    let (rows, text) = (kept(), std::fs::read_to_string(docs("answers.md")).unwrap());
    let is_named = |part: &str, row: &Row| {
        let part = text.split(&format!("## {part}\n")).nth(1).and_then(|p| p.split("\n## ").next());
        part.unwrap().contains(&format!("`{}` on `{}`", row.load, row.disk))
    };
    let mut wrong = Vec::new();
    for row in &rows {
        assert_eq!(row.experts, experts(&row.load, &row.disk), "{} on {}", row.load, row.disk);
        let agrees = row.experts == "-" || row.experts.split(", ").any(|e| e == row.scheduler());
        for (part, holds) in [
            ("Where the answer differs from the experts'", agrees),
            ("Where it is far from the best", row.regret <= FAR),
            ("Where seeds have different answers", row.is_stable()),
            ("Where it takes longer", row.work <= if row.disk == "nvme" { NVME_WORK } else { DISK_WORK }),
        ] {
            if holds == is_named(part, row) {
                wrong.push(format!("{part}: {}", row.line()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unstable = rows.iter().filter(|r| !r.is_stable()).count();
    assert!(unstable <= 2, "{unstable} of 48");
    let is_there = |&(load, on): &(&str, &str)| rows.iter().any(|r| (&*r.load, &*r.disk) == (load, on));
    let missing: Vec<_> = places().filter(|p| !is_there(p)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Reckoned work of an answer, in seconds of one processor: 5 s on two for disks and SATA drives, 15 s for
/// NVMe.
const MOST_WORK: [(&str, f64); 3] = [("nas2020", DISK_WORK), ("sata_ssd", DISK_WORK), ("nvme", NVME_WORK)];
const DISK_WORK: f64 = 10.0;
const NVME_WORK: f64 = 30.0;

/// Every built-in load is answered within its bound, whatever it does. `FAIRHEAD_ADVICE=work` asks all,
/// `work:LOAD` one; a plain run asks one on a disk.
#[test]
fn built_in_loads_are_answered_with_little_work() {
    let wanted = std::env::var("FAIRHEAD_ADVICE").unwrap_or_default();
    let all = MOST_WORK.iter().flat_map(|m| WORKLOADS.iter().map(move |w| (w.name, *m)));
    let is_asked = |(load, (on, _)): &(&str, (&str, f64))| match wanted.strip_prefix("work") {
        Some("") => true,
        Some(of) => of.strip_prefix(':') == Some(*load),
        None => (*load, *on) == ("tenants", "nas2020"),
    };
    let asked: Vec<_> = all.filter(is_asked).collect();
    let mut over = Vec::new();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let take = || {
        while let Some((load, (on, most))) = asked.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (answer, work) = ask(load, on, ASKED[0]);
            println!("| {load} | {on} | {answer} | {work:.1} |");
            found.lock().unwrap().push((*load, *on, work, *most));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(take);
        take();
    });
    for (load, on, work, most) in found.into_inner().unwrap() {
        if work > most {
            over.push(format!("{load} on {on}: {work:.1} s, {most} at most"));
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}
