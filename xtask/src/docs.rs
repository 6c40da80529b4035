//! `cargo xtask docs`: the parts of `docs/schedulers` that are measured, that of `docs/nvme.md`
//! ([`defaults`]), the first picture of the README ([`hero`]), those of `docs/sweep.md` ([`grid`]), and those
//! of `docs/revived.md` ([`revived`]), and the measured part of `docs/arena.md` ([`arena`]).
//!
//! In `docs/schedulers` two kinds, from runs of the `fairhead` binary with seed 1, so the same bytes every
//! time:
//!
//! - a page for each scheduler that has tunables (but [`MODELS`]), `tunables/NAME.md`: each tunable alone
//!   takes a few values, over the jobs of [`JOBS`]. The picture and the table are of the job in which it
//!   matters most; where it changes nothing, the page says that;
//! - in each scheduler's own page, behind the line [`MARK`]: a table of these jobs, and where the head is
//!   while one of them runs.
//!
//! `--check` compares instead of writing: everything of one tunable for each scheduler, one load of
//! `docs/nvme.md`, and one of `docs/arena.md`, which takes some minutes.
//!
//! What this does not do: choose values that make a tunable look good. They are multiples of the default, or
//! the same few for all.

use crate::arena;
use crate::defaults;
use crate::dist;
use crate::grid;
use crate::hero;
use crate::outcome::Outcome;
use crate::revived;
use crate::shell::{capture, for_all, root};
use crate::svg;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A job, the disk that it runs on, the clients whose wait counts, and the figure of theirs that measures it.
struct Job {
    name: &'static str,
    disk: &'static str,
    front: &'static str,
    column: &'static str,
    what: &'static str,
}

const fn job(
    name: &'static str,
    disk: &'static str,
    front: &'static str,
    column: &'static str,
    what: &'static str,
) -> Job {
    Job { name, disk, front, column, what }
}

const JOBS: [Job; 7] = [
    job("app-start", "sata2009", "application", "elapsed_ns", "start of an application beside ten readers"),
    job("readers-and-writers", "sata2009", "readers", "lat_mean_ns", "the mean of the reads beside writers"),
    job("random-readers", "sata2009", "reader", "lat_p99_ns", "99 % of random reads"),
    job("database", "sata2009", "pages", "lat_p99_ns", "99 % of a database's reads beside a backup"),
    job("tenants", "sata2009", "service", "lat_p99_ns", "99 % of a service's reads beside batch jobs"),
    job("cgroups", "sata2009", "db", "lat_p99_ns", "99 % of a database's reads beside other groups"),
    job(
        "app-start",
        "nvme",
        "application",
        "lat_mean_ns",
        "the mean of a starting application's reads, on flash",
    ),
];

/// The largest width of a line of prose, in columns; `cargo xtask tidy` allows no more.
const WIDTH: usize = 110;

/// How long a job runs, in virtual time; a start as long as it takes.
const RUNTIME: &str = "10s";

/// Pages of schedulers and the presets that they tell of; the last is the one whose tunables are measured.
const PAGES: [(&str, &[&str]); 11] = [
    ("noop", &["noop"]),
    ("deadline", &["deadline-2.6.9", "deadline"]),
    ("mq-deadline", &["mq-deadline"]),
    ("kyber", &["kyber"]),
    ("as", &["as-2.6.9", "as"]),
    ("cfq-early", &["cfq-2.6.10", "cfq-ts1", "cfq-ts2"]),
    ("cfq", &["cfq-2.6.33", "cfq-2.6.34", "cfq"]),
    ("bfq", &["bfq-v0", "bfq-v8", "bfq"]),
    ("groups", &["deadline+groups", "cfq+groups", "noop+groups"]),
    ("adios", &["adios"]),
    ("iocost", &["iocost"]),
];

/// Schedulers without a page of tunables: those of this one are a model of the device, of which the same few
/// values would say nothing.
const MODELS: [&str; 1] = ["iocost"];

/// Behind it a page is made by this.
pub(crate) const MARK: &str = "<!-- measured by cargo xtask docs -->";

/// What changes by less is not told as an effect, thousandths.
const NOTHING: f64 = 0.02;

/// What a run was asked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Ask {
    job: usize,
    sched: &'static str,
    set: Option<String>,
}

/// The wait, and the throughput of all clients.
#[derive(Clone, Copy, Debug)]
struct Figures {
    wait_ns: f64,
    bytes_per_s: f64,
}

/// What to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Everything.
    All,
    /// The pages of tunables.
    Tunables,
    /// What is measured in the schedulers' own pages.
    Pages,
    /// The defaults of distributions, judged.
    Defaults,
    /// The first picture of the README.
    Hero,
    /// The pictures of a sweep.
    Grid,
    /// The map of schedulers over loads and disks.
    Arena,
    /// Schedulers in a running Linux, from what was measured there.
    Revived,
    /// Nothing: what there is of the first tunable of each scheduler is compared.
    Check,
}

/// Makes a part, or compares.
pub(crate) fn run(part: Part) -> Result<Outcome, String> {
    let program = build()?;
    let mut lab = Lab { program, known: BTreeMap::new() };
    let mut files = BTreeMap::new();
    let check = part == Part::Check;
    if matches!(part, Part::All | Part::Hero | Part::Check) {
        hero::make(&lab.program, &mut files)?;
    }
    if matches!(part, Part::All | Part::Grid | Part::Check) {
        grid::make(&lab.program, &mut files)?;
    }
    if matches!(part, Part::All | Part::Revived | Part::Check) {
        revived::make(&mut files)?;
    }
    if matches!(part, Part::All | Part::Defaults | Part::Check) {
        defaults::make(&lab.program, check, &mut files)?;
    }
    if matches!(part, Part::All | Part::Arena | Part::Check) {
        arena::make(&lab.program, check, &mut files)?;
    }
    let has_pages = !matches!(part, Part::Defaults | Part::Hero | Part::Grid | Part::Arena | Part::Revived);
    for (page, presets) in PAGES.iter().filter(|_| has_pages) {
        let sched = presets[presets.len() - 1];
        let tunables = if MODELS.contains(page) { Vec::new() } else { lab.tunables(sched)? };
        if part != Part::Pages {
            tunable_pages(&mut lab, page, sched, &tunables, check, &mut files)?;
        }
        if matches!(part, Part::All | Part::Pages) {
            scheduler_page(&mut lab, page, presets, !tunables.is_empty(), &mut files)?;
        }
        eprintln!("{page}: {} tunables, {} runs so far", tunables.len(), lab.known.len());
    }
    if check { compare(&files) } else { write(&files) }
}

/// The program that is measured.
pub(crate) fn build() -> Result<PathBuf, String> {
    dist::tests_program()
}

/// The text with each line of prose of more than [`WIDTH`] columns broken into lines of at most that. Tables,
/// headings and pictures stay as they are. No line begins with `|` or `1)`, which Markdown reads as a table
/// or a list: such a word takes the one before it along.
pub(crate) fn filled(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line.trim_end().chars().count() <= WIDTH || line.starts_with(['|', '#', '!', '<']) {
            all.push_str(line);
            continue;
        }
        let mut row = String::new();
        for word in line.split_whitespace() {
            let is_over = !row.is_empty() && row.chars().count() + 1 + word.chars().count() > WIDTH;
            let begins_block =
                matches!(word.trim_start_matches(|c: char| c.is_ascii_digit()), "|" | ")" | "." | "-");
            let next =
                if begins_block { row.rsplit_once(' ').map(|(_, last)| last.to_owned()) } else { None };
            if is_over {
                row.truncate(row.len() - next.as_ref().map_or(0, |last| last.len() + 1));
                all.push_str(&row);
                all.push('\n');
                row = next.unwrap_or_default();
            }
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(word);
        }
        all.push_str(&row);
        all.push('\n');
    }
    all
}

/// A file of the repository.
pub(crate) fn root_file(path: &str) -> PathBuf {
    root().join(path)
}

fn folder() -> PathBuf {
    root().join("docs/schedulers")
}

fn write(files: &BTreeMap<PathBuf, String>) -> Result<Outcome, String> {
    for (path, text) in files {
        let done = fs::create_dir_all(path.parent().expect("a folder")).and_then(|()| fs::write(path, text));
        done.map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(Outcome::Passed(format!("{} files", files.len())))
}

/// Each file is there with these bytes, or a page has these lines somewhere.
fn compare(files: &BTreeMap<PathBuf, String>) -> Result<Outcome, String> {
    let mut stale = Vec::new();
    for (path, text) in files {
        let there = fs::read_to_string(path).unwrap_or_default();
        if !there.contains(text.as_str()) {
            stale.push(path.strip_prefix(root()).unwrap_or(path).display().to_string());
        }
    }
    match stale.as_slice() {
        [] => Ok(Outcome::Passed(format!("{} parts of files are as they would be made", files.len()))),
        _ => Err(format!("cargo xtask docs makes them otherwise: {}", stale.join(", "))),
    }
}

/// A tunable as `fairhead show` tells it.
struct Tunable {
    name: String,
    default: String,
    kind: String,
    effect: String,
}

/// Runs the program, each question once.
struct Lab {
    program: PathBuf,
    known: BTreeMap<Ask, Option<Figures>>,
}

impl Lab {
    fn tunables(&self, sched: &str) -> Result<Vec<Tunable>, String> {
        let output = capture(Command::new(&self.program).args(["show", sched]))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut list: Vec<Tunable> = Vec::new();
        for line in text.lines().skip(1) {
            if let Some((name, rest)) = line.split_once(" = ").filter(|_| !line.starts_with([' ', 'T'])) {
                let (default, kind) = rest.split_once("    ").unwrap_or((rest, ""));
                let [name, default, kind] = [name, default, kind].map(str::to_owned);
                list.push(Tunable { name, default, kind, effect: String::new() });
            } else if let Some(last) = list.last_mut().filter(|_| line.starts_with("    ")) {
                let space = if last.effect.is_empty() { "" } else { " " };
                last.effect.push_str(space);
                last.effect.push_str(line.trim());
            }
        }
        Ok(list)
    }

    /// Answers all questions, on as many threads as there are processors.
    fn ask(&mut self, asks: impl IntoIterator<Item = Ask>) {
        let new: Vec<Ask> = asks.into_iter().filter(|a| !self.known.contains_key(a)).collect();
        let answers = for_all(&new, |ask| Ok(measure(&self.program, ask)));
        self.known.extend(new.into_iter().zip(answers.expect("no answer is an error")));
    }

    fn get(&self, job: usize, sched: &'static str, set: Option<&str>) -> Option<Figures> {
        *self.known.get(&Ask { job, sched, set: set.map(str::to_owned) })?
    }
}

/// One run; `None` when the value is not possible.
fn measure(program: &Path, ask: &Ask) -> Option<Figures> {
    let job = &JOBS[ask.job];
    let mut run = Command::new(program);
    run.args(["run", job.name, "--disk", job.disk, "--sched", ask.sched]);
    match (job.column, job.disk) {
        ("elapsed_ns", _) => {}
        // A second beside the readers has as many requests as a minute of a disk.
        (_, "nvme") => drop(run.args(["--runtime", "3s"])),
        _ => drop(run.args(["--runtime", RUNTIME])),
    }
    run.args(["--seed", "1", "--threads", "1", "--output-format", "csv"]);
    if let Some(set) = &ask.set {
        run.args(["--set", set]);
    }
    let output = capture(&mut run).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let header = lines.next()?;
    let rows: Vec<_> = lines.collect();
    let value = |row: &Vec<&str>, name: &str| -> Option<f64> {
        row.get(header.iter().position(|h| *h == name)?)?.parse().ok()
    };
    let wait_ns = rows.iter().filter(|r| r.get(3) == Some(&job.front)).find_map(|r| value(r, job.column))?;
    let rate = |r| value(r, "read_bytes_per_s").unwrap_or(0.0) + value(r, "write_bytes_per_s").unwrap_or(0.0);
    Some(Figures { wait_ns, bytes_per_s: rows.iter().map(rate).sum() })
}

/// The values that a tunable takes: around its default, or, of what is zero, the same few for all.
fn values(t: &Tunable) -> Vec<String> {
    let (kind, range) = t.kind.split_once(", ").unwrap_or((&t.kind, ""));
    if matches!(kind, "switch" | "choice") {
        return range.split(" | ").map(str::to_owned).collect();
    }
    let digits = t.default.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(t.default.len());
    let (number, unit) = t.default.split_at(digits);
    let Ok(default) = number.parse::<f64>() else { return vec![t.default.clone()] };
    let numbers: Vec<String> = match (kind, unit) {
        _ if default > 0.0 => {
            let mut all: Vec<f64> = [0.0, 0.25, 1.0, 4.0].iter().map(|x| x * default).collect();
            if kind == "number" || kind == "size" {
                all.iter_mut().for_each(|x| *x = x.round());
            }
            all.dedup();
            all.iter().map(|x| format!("{x}{unit}")).collect()
        }
        ("time", _) => ["0s", "10ms", "100ms", "1s"].map(str::to_owned).to_vec(),
        ("size", _) => [0, 1024, 4096, 16_384].map(|x| format!("{x}{unit}")).to_vec(),
        _ => [0, 4, 16, 64].map(|x| format!("{x}{unit}")).to_vec(),
    };
    numbers
}

/// How far the farthest value is from the default's figures: a share, 0.5 for half as much again.
fn effect(lab: &Lab, job: usize, sched: &'static str, sets: &[String]) -> f64 {
    let Some(base) = lab.get(job, sched, None) else { return 0.0 };
    let far = |set: &String| {
        let f = lab.get(job, sched, Some(set))?;
        let change = |a: f64, b: f64| if a > 0.0 && b > 0.0 { (a / b).max(b / a) - 1.0 } else { 0.0 };
        Some(change(f.wait_ns, base.wait_ns).max(change(f.bytes_per_s, base.bytes_per_s)))
    };
    sets.iter().filter_map(far).fold(0.0, f64::max)
}

fn tunable_pages(
    lab: &mut Lab,
    page: &str,
    sched: &'static str,
    tunables: &[Tunable],
    check: bool,
    files: &mut BTreeMap<PathBuf, String>,
) -> Result<(), String> {
    if tunables.is_empty() {
        return Ok(());
    }
    let key = |t: &Tunable, v: &str| format!("{}={v}", t.name);
    let mut asks: Vec<Ask> = (0..JOBS.len()).map(|job| Ask { job, sched, set: None }).collect();
    let chosen = if check { &tunables[..1] } else { tunables };
    for t in chosen {
        for v in values(t) {
            asks.extend((0..JOBS.len()).map(|job| Ask { job, sched, set: Some(set_of(sched, &key(t, &v))) }));
        }
    }
    lab.ask(asks);
    let (mut sections, mut order) = (String::new(), Vec::new());
    for t in chosen {
        let values = values(t);
        let sets: Vec<String> = values.iter().map(|v| set_of(sched, &key(t, v))).collect();
        let effects: Vec<f64> = (0..JOBS.len()).map(|j| effect(lab, j, sched, &sets)).collect();
        let best = (0..JOBS.len()).fold(0, |b, j| if effects[j] > effects[b] { j } else { b });
        order.push((t, best, effects[best]));
        let text = section(lab, sched, t, &values, &sets, &effects, best, page, files);
        sections.push_str(&text);
    }
    let path = folder().join("tunables").join(format!("{page}.md"));
    let text = if check { sections } else { head(page, sched, &order) + &sections };
    files.insert(path, filled(&text));
    Ok(())
}

/// `cfq.slice_idle=8ms`.
fn set_of(sched: &str, key: &str) -> String {
    format!("{sched}.{key}")
}

fn head(page: &str, sched: &str, order: &[(&Tunable, usize, f64)]) -> String {
    let mut text = format!(
        "# Tunables of {sched}, measured\n\n\
         Each tunable alone takes other values than its default, in seven jobs with seed 1: {RUNTIME} of each, a start as long as it takes. The \
         picture and the table are of the job in which it changes most; *waits* is the time named behind the job, *all together* the \
         throughput of all clients. One job with one seed shows what a tunable does, not which value is good for yours: that is what \
         [`fairhead advise`](../../advise.md) is for. What the scheduler is and where its tunables come from: [{page}](../{page}.md). Made by \
         `cargo xtask docs`.\n\n| tunable | largest change | job |\n|---|---|---|\n"
    );
    let mut order: Vec<_> = order.iter().collect();
    order.sort_by(|a, b| b.2.total_cmp(&a.2));
    for (t, job, effect) in order {
        let name = &t.name;
        if *effect < NOTHING {
            let _ = writeln!(text, "| [`{name}`](#{name}) | none | |");
        } else {
            let _ = writeln!(text, "| [`{name}`](#{name}) | {} | {} |", times(*effect), title(*job));
        }
    }
    text.push('\n');
    text
}

fn title(job: usize) -> String {
    let j = &JOBS[job];
    if j.disk == "nvme" { format!("{} on {}", j.name, j.disk) } else { j.name.to_owned() }
}

/// A change as people say it.
fn times(effect: f64) -> String {
    if effect < 1.0 { format!("{:.0} %", effect * 100.0) } else { format!("{:.1} times", effect + 1.0) }
}

#[allow(clippy::too_many_arguments, reason = "a page's part is made of all of them, once")]
fn section(
    lab: &Lab,
    sched: &'static str,
    t: &Tunable,
    values: &[String],
    sets: &[String],
    effects: &[f64],
    best: usize,
    page: &str,
    files: &mut BTreeMap<PathBuf, String>,
) -> String {
    let mut text = format!("## {}\n\n{} ({}; default {})\n\n", t.name, t.effect, t.kind, t.default);
    let points: Vec<(String, Figures)> = values
        .iter()
        .zip(sets)
        .filter_map(|(v, s)| Some((v.clone(), lab.get(best, sched, Some(s))?)))
        .collect();
    if effects[best] < NOTHING {
        let tried: Vec<&str> = points.iter().map(|(v, _)| v.as_str()).collect();
        let most = NOTHING * 100.0;
        let _ =
            write!(text, "None of {} changes a figure of these jobs by {most:.0} %.\n\n", tried.join(", "));
        return text;
    }
    let picture = format!("pictures/{page}-{}.svg", t.name);
    let marks: Vec<svg::Point> = points
        .iter()
        .map(|(v, f)| svg::Point {
            label: v.clone(),
            marked: *v == t.default,
            values: [f.wait_ns / 1e6, f.bytes_per_s / 1e6],
        })
        .collect();
    files.insert(
        folder().join("tunables").join(&picture),
        svg::pair(&t.name, ["waits, ms", "all together, MB/s"], &marks),
    );
    let _ = write!(
        text,
        "![{} of {sched}: what it changes]({picture})\n\n`{}`, {}:\n\n",
        t.name,
        title(best),
        JOBS[best].what
    );
    text.push_str("| value | waits, ms | all together, MB/s |\n|---|---|---|\n");
    for (v, f) in &points {
        let bold = if *v == t.default { "**" } else { "" };
        let _ = writeln!(text, "| {bold}{v}{bold} | {:.1} | {:.2} |", f.wait_ns / 1e6, f.bytes_per_s / 1e6);
    }
    let others: Vec<String> = (0..JOBS.len())
        .filter(|&j| j != best && effects[j] >= NOTHING)
        .map(|j| format!("{} {}", title(j), times(effects[j])))
        .collect();
    let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
    let _ = write!(text, "\nLargest change in the other jobs: {others}.\n\n");
    text
}

/// What is behind the mark of a scheduler's page.
fn scheduler_page(
    lab: &mut Lab,
    page: &str,
    presets: &[&'static str],
    tunables: bool,
    files: &mut BTreeMap<PathBuf, String>,
) -> Result<(), String> {
    let last = presets[presets.len() - 1];
    let all = presets.iter().flat_map(|&sched| (0..JOBS.len()).map(move |job| Ask { job, sched, set: None }));
    lab.ask(all.chain((0..JOBS.len()).map(|job| Ask { job, sched: "noop", set: None })).collect::<Vec<_>>());
    let mut text = format!(
        "{MARK}\n\n## Measured\n\nEach job runs for ten seconds with seed 1, or until its application has started. Each cell has the time that\n\
         the job's name says, and the throughput of all clients together in MB/s.\n\n| job |"
    );
    let columns: Vec<&'static str> =
        if presets.contains(&"noop") { presets.to_vec() } else { [presets, &["noop"]].concat() };
    for c in &columns {
        let _ = write!(text, " {c} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(columns.len()));
    for (j, job) in JOBS.iter().enumerate() {
        let _ = write!(text, "\n| {}: {} |", title(j), job.what);
        for &c in &columns {
            match lab.get(j, c, None) {
                Some(f) => write!(text, " {:.1} ms, {:.1} |", f.wait_ns / 1e6, f.bytes_per_s / 1e6),
                None => write!(text, " – |"),
            }
            .expect("a text takes all");
        }
    }
    text.push('\n');
    let scratch = root().join("target/docs-pictures");
    let _ = fs::remove_dir_all(&scratch);
    let mut run = Command::new(&lab.program);
    run.args([
        "run",
        "app-start",
        "--disk",
        "sata2009",
        "--sched",
        last,
        "--runtime",
        "4s",
        "--seed",
        "1",
        "--pictures",
    ]);
    capture(run.arg(&scratch))?;
    for (picture, what) in [("throughput", "What each client gets"), ("position", "Where the head is")] {
        let name = format!("{picture}-{last}.svg");
        // The program has the name of today: `none`.
        let theirs = scratch.join(name.replace("-noop", "-none"));
        let made = fs::read_to_string(&theirs).map_err(|e| format!("{}: {e}", theirs.display()))?;
        files.insert(folder().join("pictures").join(&name), made);
        let _ = write!(
            text,
            "\n![{what}, {last}](pictures/{name})\n\n{what} in the first four seconds of `app-start` on `sata2009` under {last}.\n"
        );
    }
    let path = folder().join(format!("{page}.md"));
    let old = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let own = old.split(MARK).next().unwrap_or("").trim_end();
    if tunables {
        let _ = write!(text, "\nEach tunable alone: [tunables of {last}](tunables/{page}.md).\n");
    }
    files.insert(path, format!("{own}\n\n{}", filled(&text)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tunable(default: &str, kind: &str) -> Tunable {
        Tunable { name: "x".into(), default: default.into(), kind: kind.into(), effect: String::new() }
    }

    #[test]
    fn prose_is_filled_and_tables_stay() {
        let long = "word ".repeat(30);
        let text = filled(&format!("# {long}\n\n{long}\n\n| {long}|\n"));
        assert_eq!(text.lines().filter(|l| l.len() > WIDTH).count(), 2, "{text}");
        assert_eq!(text.split_whitespace().filter(|w| *w == "word").count(), 90);
        // The bar would be the first of its line.
        let bar = filled(&format!("{}a | b\n", "word ".repeat(21) + "abc "));
        assert_eq!(bar.lines().map(str::len).max(), Some(108), "{bar}");
        assert!(bar.ends_with("\na | b\n"), "{bar}");
    }

    #[test]
    fn values_are_around_the_default() {
        let of = |default: &str, kind: &str| values(&tunable(default, kind)).join(" ");
        assert_eq!(of("8ms", "time, at least 0s"), "0ms 2ms 8ms 32ms");
        assert_eq!(of("2", "number, 1 to 9"), "0 1 2 8");
        assert_eq!(of("1", "switch, 0 | 1"), "0 1");
        assert_eq!(of("2.6.32", "choice, 2.6.9 | 2.6.32"), "2.6.9 2.6.32");
        assert_eq!(of("0 sectors", "size, 0 sectors to 9 sectors").split(' ').count(), 8);
        assert_eq!(of("0s", "time, 0s to 9s"), "0s 10ms 100ms 1s");
    }

    #[test]
    fn changes_are_told_as_shares_or_times() {
        assert_eq!((times(0.125).as_str(), times(2.04).as_str()), ("12 %", "3.0 times"));
    }
}
