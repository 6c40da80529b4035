//! The measured part of `docs/nvme.md`: which scheduler distributions set, on which kind of disk, and what
//! the lab says of it.
//!
//! ```text
//!   disk × load ─► fairhead advise --sched none,mq-deadline,kyber,bfq ─► how much of alone all jobs get, of the best = 100 %
//!   disk × scheduler ─► the geometric mean over the six loads
//!   distribution × disk ─► what its default gets, and how far the best single choice would be ahead
//! ```
//!
//! The figures are those of `advise`, over nine seeds, so that a page and the program
//! judge alike.
//!
//! What this does not do: weigh the loads by how often people have them; they count alike.

use crate::docs::{MARK, filled, root_file};
use crate::json::Json;
use crate::shell::{capture, for_all, root};
use crate::svg;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A kind of disk, and what stands for it: preset, host, and how long loads run that do not end by
/// themselves.
struct Disk {
    name: &'static str,
    preset: &'static str,
    host: &'static str,
    runtime: &'static str,
    about: &'static str,
}

/// Longer on slow disks: as many requests as on fast ones would take hours, but the page cache has to be
/// full.
const DISKS: [Disk; 5] = [
    Disk {
        name: "laptop NVMe",
        preset: "nvme",
        host: "2020,processors=2023",
        runtime: "1s",
        about: "a drive of 2019, ten processors",
    },
    Disk {
        name: "server NVMe",
        preset: "980pro",
        host: "2020,processors=2023",
        runtime: "1s",
        about: "the drive of the study in long use: full, with its SLC cache in use, ten processors. That its reads wait behind writes for the buffer is [assumed](flash.md)",
    },
    Disk { name: "SATA SSD", preset: "sata_ssd", host: "2020", runtime: "3s", about: "one queue of 31" },
    Disk {
        name: "7200 rpm disk",
        preset: "nas2020",
        host: "2020",
        runtime: "20s",
        about: "NCQ, 256 MB class buffer",
    },
    Disk {
        name: "USB stick",
        preset: "flashcard2010",
        host: "2020",
        runtime: "20s",
        about: "a flash card without queueing and with two open allocation units, which is what cheap sticks are",
    },
];

/// A load: the file without its folder and ending, and what its wait is.
struct Load {
    name: &'static str,
    what: &'static str,
    /// It ends by itself.
    ends: bool,
}

const fn load(name: &'static str, what: &'static str, ends: bool) -> Load {
    Load { name, what, ends }
}

const LOADS: [Load; 6] = [
    load("start-beside-copy", "the start of an application", true),
    load("compile", "no job, the compilers are judged by how far they get", false),
    load("database", "the log, the 99th percentile of its syncs", false),
    load("backup-beside-reads", "`work`, the 99th percentile of its reads", false),
    load("file-server", "no job, all are bulk", false),
    load("log-writer", "the log, the 99th percentile of its syncs", false),
];

/// The load that `--check` runs, on all disks.
const CHECKED: usize = 0;

/// What a kernel has.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];

const NONE: usize = 0;
const MQ: usize = 1;
const KYBER: usize = 2;
const BFQ: usize = 3;

/// What a distribution sets, by kind of disk, as indices in [`SCHEDULERS`]. Sources are in the page.
const DISTRIBUTIONS: [(&str, [usize; 5]); 8] = [
    ("Fedora", [NONE, NONE, BFQ, BFQ, BFQ]),
    ("Debian", [NONE, NONE, MQ, MQ, MQ]),
    ("Ubuntu", [NONE, NONE, MQ, MQ, MQ]),
    ("Arch", [NONE, NONE, MQ, MQ, MQ]),
    ("openSUSE", [NONE, NONE, MQ, BFQ, BFQ]),
    ("Pop!_OS", [KYBER, KYBER, KYBER, BFQ, BFQ]),
    ("CachyOS", [KYBER, KYBER, MQ, BFQ, BFQ]),
    ("Android", [NONE, NONE, MQ, MQ, MQ]),
];

/// Within this factor of the best is as good as the best: what `advise` calls no difference.
const EQUAL: f64 = 1.05;

/// What one scheduler got in one load on one disk.
#[derive(Clone, Copy)]
struct Cell {
    wait_s: Option<f64>,
    bytes_per_s: f64,
    score: f64,
}

/// The cells of the four schedulers, scores with the best at 1.
type Cells = [Cell; 4];

/// The page's measured part, and its picture; of one load only, to be compared, if `check`.
pub(crate) fn make(program: &Path, check: bool, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let loads = if check { CHECKED..CHECKED + 1 } else { 0..LOADS.len() };
    let asked: Vec<(usize, usize)> =
        loads.flat_map(|load| (0..DISKS.len()).map(move |disk| (load, disk))).collect();
    let known = ask(program, &asked)?;
    let page = root_file("docs/nvme.md");
    if check {
        files.insert(page, filled(&section(&known, CHECKED)));
        return Ok(());
    }
    let values: Vec<[f64; 4]> = (0..DISKS.len()).map(|disk| values(&known, disk)).collect();
    let mut text = format!("{MARK}\n\n{}", verdicts(&values));
    text.push_str(&best_choices(&values));
    for load in 0..LOADS.len() {
        text.push_str(&section(&known, load));
    }
    let old = std::fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let own = old.split(MARK).next().unwrap_or("").trim_end();
    files.insert(page, format!("{own}\n\n{}", filled(&text)));
    files.insert(root_file("docs/pictures/defaults.svg"), picture(&values));
    Ok(())
}

/// Asks for all of them, on as many threads as there are processors.
fn ask(program: &Path, asked: &[(usize, usize)]) -> Result<BTreeMap<(usize, usize), Cells>, String> {
    let answers = for_all(asked, |&(load, disk)| advise(program, &LOADS[load], &DISKS[disk]))?;
    Ok(asked.iter().copied().zip(answers).collect())
}

/// One question, asked of the program.
fn advise(program: &Path, load: &Load, disk: &Disk) -> Result<Cells, String> {
    let mut run = Command::new(program);
    let job = format!("examples/everyday/{}.fio", load.name);
    run.args(["advise", &job, "--disk", disk.preset, "--host", disk.host, "--rounds", "1", "--threads", "1"]);
    run.args(["--sched", &SCHEDULERS.join(","), "--seed", "1", "--output-format", "json"]);
    if !load.ends {
        run.args(["--runtime", disk.runtime]);
    }
    let output = capture(run.current_dir(root()))?;
    let answer = Json::read(&String::from_utf8_lossy(&output.stdout)).map_err(|e| format!("{job}: {e}"))?;
    let list = |key: &str| answer.get(key).map(Json::list).unwrap_or_default();
    let jobs = || list("jobs").iter();
    let is_bulk = |job: &&Json| job.get("kind").and_then(Json::text) == Some("bulk");
    let name = |job: &Json| job.get("job").and_then(Json::text).map(str::to_owned);
    let in_seconds = |job: &&Json| job.get("unit").and_then(Json::text) == Some("s");
    let waits = jobs().find(in_seconds).and_then(name);
    let bulk: Vec<String> = jobs().filter(is_bulk).filter_map(name).collect();
    let cell = |scheduler: &str| -> Option<Cell> {
        let is_it = |c: &&Json| c.get("name").and_then(Json::text) == Some(scheduler);
        let of = list("candidates").iter().find(is_it)?;
        let amount = |job: &str| of.get("jobs")?.get(job)?.get("amount")?.number();
        Some(Cell {
            wait_s: waits.as_deref().and_then(amount),
            bytes_per_s: bulk.iter().filter_map(|job| amount(job)).sum(),
            score: of.get("change")?.get("factor")?.number()?,
        })
    };
    let cells: Vec<Cell> = SCHEDULERS.iter().filter_map(|name| cell(name)).collect();
    let mut cells: Cells =
        cells.try_into().map_err(|_| format!("{job} on {}: not all schedulers are judged", disk.preset))?;
    let best = cells.iter().fold(0.0, |best, c| c.score.max(best));
    cells.iter_mut().for_each(|c| c.score /= best);
    Ok(cells)
}

/// The geometric mean of each scheduler's scores over the loads.
fn values(known: &BTreeMap<(usize, usize), Cells>, disk: usize) -> [f64; 4] {
    let all: Vec<&Cells> = (0..LOADS.len()).map(|load| &known[&(load, disk)]).collect();
    std::array::from_fn(|s| (all.iter().map(|c| c[s].score.ln()).sum::<f64>() / all.len() as f64).exp())
}

fn best(values: &[f64; 4]) -> usize {
    (0..4).fold(0, |best, s| if values[s] > values[best] { s } else { best })
}

/// What a default loses against the best single choice for the disk.
fn verdict(values: &[f64; 4], default: usize) -> String {
    let (name, ahead) = (SCHEDULERS[default], values[best(values)] / values[default]);
    if ahead <= EQUAL {
        return format!("{name}: as good as the best");
    }
    format!("{name}: {} is better by {ahead:.2}", SCHEDULERS[best(values)])
}

fn verdicts(values: &[[f64; 4]]) -> String {
    let mut text = "## Judged\n\n\
        A cell has what the distribution sets, and by what factor the jobs of the six loads get more of what they would get alone under the best single choice for that disk; within 5 % it is as good. \
        That is how [`fairhead advise`](advise.md#what-a-job-gets) compares.\n\n\
        ![Defaults of distributions, judged on five disks](pictures/defaults.svg)\n\n| |"
        .to_owned();
    DISKS.iter().for_each(|d| _ = write!(text, " {} |", d.name));
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(DISKS.len()));
    for (name, defaults) in DISTRIBUTIONS {
        let _ = write!(text, "\n| {name} |");
        defaults.iter().zip(values).for_each(|(&s, v)| _ = write!(text, " {} |", verdict(v, s)));
    }
    text.push_str("\n\n");
    text
}

/// The mean of each scheduler on each disk.
fn best_choices(values: &[[f64; 4]]) -> String {
    let mut text = "## Schedulers by disk\n\nThe geometric mean over the six loads of how much of alone all jobs together get, where in each load the best has 100 %.\n\n| disk |".to_owned();
    SCHEDULERS.iter().for_each(|s| _ = write!(text, " {s} |"));
    text.push_str(" stands for it |\n|---|---|---|---|---|---|\n");
    for (disk, v) in DISKS.iter().zip(values) {
        let _ = write!(text, "| {} |", disk.name);
        v.iter().enumerate().for_each(|(s, x)| {
            let bold = if s == best(v) { "**" } else { "" };
            _ = write!(text, " {bold}{:.0} %{bold} |", x * 100.0);
        });
        let _ = writeln!(text, " `{}`, host of {}: {} |", disk.preset, disk.host, disk.about);
    }
    text.push('\n');
    text
}

/// A load's figures.
fn section(known: &BTreeMap<(usize, usize), Cells>, load: usize) -> String {
    let l = &LOADS[load];
    let mut text = format!(
        "## {0}\n\n[`examples/everyday/{0}.fio`](../examples/everyday/{0}.fio). Waiting: {1}. A cell has that, what bulk jobs move, and how much of alone all jobs together get, by the best.\n\n| disk |",
        l.name, l.what
    );
    SCHEDULERS.iter().for_each(|s| _ = write!(text, " {s} |"));
    text.push_str("\n|---|---|---|---|---|\n");
    for (d, disk) in DISKS.iter().enumerate() {
        let _ = write!(text, "| {} |", disk.name);
        for c in &known[&(load, d)] {
            let wait = c.wait_s.map_or_else(String::new, |w| format!("{}, ", time(w)));
            let _ = write!(text, " {wait}{} MB/s, {:.0} % |", rate(c.bytes_per_s / 1e6), c.score * 100.0);
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A time with three digits.
fn time(s: f64) -> String {
    let (value, unit) = match s {
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    format!("{} {unit}", rate(value))
}

/// A number with three digits, or all before the point.
fn rate(value: f64) -> String {
    let places = if value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.places$}")
}

fn picture(values: &[[f64; 4]]) -> String {
    let columns: Vec<&str> = DISKS.iter().map(|d| d.name).collect();
    let cell =
        |v: &[f64; 4], s: usize| svg::Tile { label: SCHEDULERS[s].to_owned(), value: v[s] / v[best(v)] };
    let rows: Vec<(&str, Vec<svg::Tile>)> = DISTRIBUTIONS
        .iter()
        .map(|(name, defaults)| (*name, defaults.iter().zip(values).map(|(&s, v)| cell(v, s)).collect()))
        .collect();
    svg::tiles(
        "What a distribution's default gets of the best choice for the disk, over six loads",
        &columns,
        &rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_judged_against_the_best_single_choice() {
        let v = [0.9, 0.87, 0.5, 0.45];
        assert_eq!(verdict(&v, NONE), "none: as good as the best");
        assert_eq!(verdict(&v, MQ), "mq-deadline: as good as the best");
        assert_eq!(verdict(&v, BFQ), "bfq: none is better by 2.00");
    }

    #[test]
    fn every_load_has_a_file_and_every_disk_a_preset() {
        for l in &LOADS {
            assert!(root_file(&format!("examples/everyday/{}.fio", l.name)).is_file(), "{}", l.name);
        }
        for d in &DISKS {
            let preset = format!("crates/device/presets/{}.toml", d.preset);
            assert!(root_file(&preset).is_file(), "{preset}");
        }
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!([0.000_079_4, 0.0123, 1.5].map(time), ["79.4 us", "12.3 ms", "1.50 s"]);
        assert_eq!([4321.0, 99.96, 9.996, 0.5].map(rate), ["4321", "100", "10.0", "0.50"]);
    }
}
