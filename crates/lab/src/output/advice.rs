//! Advice, for people and for programs: verdict, evidence, reasons, what to do.
//!
//! ```text
//! Use bfq instead of mq-deadline.
//! The time until it is done of application is better by a factor of 30.1 (28.9 to 31.2).
//! …
//!
//! candidate    use in  seeds   wait  MiB/s  min/max   wait, factor         …  score                 front
//! bfq          kernel     12  0.66s    101      0.99  30.1 (28.9 to 31.2)     2.41 (2.30 to 2.52)   *
//! mq-deadline  kernel     12  20.1s    151      1.00  1
//! ```
//!
//! JSON has the same sentences and figures, and the factors of all candidates with all their digits.

use fairhead_core::Duration;
use fairhead_core::sched::any::shown as shown_name;
use fairhead_report::page::{Chapter, Page};
use fairhead_report::{Participants, Recorder, Recording, Run as Shot, Runs, pictures};
use fairhead_sim::advise::race::{Race, Run};
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{
    Advice, Candidate, Comparison, Cost, Figures, Goal, Got, LetGo, Payer, Place, Question, Remedy, Step,
    Waiting, factor, means, steps, steps_to_stay,
};
use fairhead_sim::{Outcome, SimError, journal};
use serde_json::{Map, Value, json};

use super::json::pretty;
use super::page::made;
use super::table::{Best, Cell, Table, mib, time};

/// The names of the disk, the host and the goal, for the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    /// The disk's name.
    pub disk: String,
    /// The host's name, such as "2020".
    pub host: String,
    /// The goal's name, in small letters.
    pub goal: String,
}

impl Labels {
    /// Labels of these names, for a goal.
    #[must_use]
    pub fn new(disk: &str, host: &str, goal: Goal) -> Self {
        Self { disk: disk.to_owned(), host: host.to_owned(), goal: format!("{goal:?}").to_lowercase() }
    }
}

/// The candidates: those that fresh seeds confirmed, the winner first, then the best scores; then the others,
/// the best scores first.
fn ranked(advice: &Advice) -> Vec<usize> {
    let score = |c: usize| advice.race.against(c, 0).score.map_or(1.0, |s| s.ratio);
    let mut all: Vec<usize> = (0..advice.candidates.len()).collect();
    all.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
    let winner = advice.race.winner();
    all.sort_by_key(|&c| (c != winner, !is_fresh(advice, c)));
    all
}

/// Whether the candidate's figures are from fresh seeds, not from those of the race.
fn is_fresh(advice: &Advice, c: usize) -> bool {
    !advice.race.standings[c].fresh.is_empty()
}

fn todo(question: &Question, advice: &Advice) -> Vec<Step> {
    let winner = advice.race.winner();
    let of = if winner == 0 { steps_to_stay } else { steps };
    of(&advice.candidates[winner], advice.remedy.as_ref(), &advice.facts, &question.jobs)
}

/// The report for people, with a line break at its end.
#[must_use]
pub fn human(labels: &Labels, question: &Question, advice: &Advice, coloured: bool) -> String {
    let jobs = &question.jobs;
    let mut text = format!(
        "{} on {}, host of {}, goal {}, seed {}\n\n",
        jobs.file_name, labels.disk, labels.host, labels.goal, question.seed
    );
    for line in advice.verdict(question) {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&match advice.waiting.names(jobs).as_slice() {
        [] => {
            "\nno job waits, judging by the options of the job file; --foreground JOB names one that does\n\n"
                .to_owned()
        }
        names => format!("\nwait: {} of {}\n\n", advice.waiting.what.words(), names.join(", ")),
    });
    for (i, part) in tables(advice).into_iter().enumerate() {
        text.push_str(&format!("{}{}\n", if i == 0 { "" } else { "\n" }, part.about));
        text.push_str(&part.table.render(coloured));
    }
    if let Some(paid) = paid(advice) {
        text.push_str(&format!("\nwho pays, while all jobs ran (seed {})\n\n", advice.told_seed));
        text.push_str(&paid.render(coloured));
    }
    if let Some(costs) = costs(advice) {
        text.push_str(&format!("\nwhat requests cost the processors (seed {})\n\n", advice.told_seed));
        text.push_str(&costs.render(coloured));
    }
    if let Some(told) = cut(advice) {
        text.push_str(&format!("\n{told}\n"));
    }
    if !advice.not_tried.is_empty() {
        text.push_str(&format!("\nnot tried, for want of budget: {}\n", advice.not_tried.join("; ")));
    }
    if let Some(told) = &advice.told {
        text.push_str(&format!("\nwhy (seed {})\n\n", advice.told_seed));
        told.sentences.iter().for_each(|s| text.push_str(&format!("{s}\n")));
    }
    text.push_str("\nwhat to do\n");
    for step in todo(question, advice) {
        let end = if step.lines.is_empty() { "" } else { ":" };
        text.push_str(&format!("\n{}{end}\n", step.about));
        step.lines.iter().for_each(|l| text.push_str(&format!("    {l}\n")));
    }
    text
}

/// What was left out of the job.
fn cut(advice: &Advice) -> Option<String> {
    let permille = advice.shortened?;
    Some(format!(
        "run times cut to {}.{} %, but not below 1 s, for want of budget: a larger --budget runs the whole job",
        permille / 10,
        permille % 10
    ))
}

/// What a page has of it beside the verdict and the figures: what to do, and why.
fn chapters(question: &Question, advice: &Advice) -> Vec<Chapter> {
    let lines = todo(question, advice).into_iter().map(|s| (s.about.to_owned(), s.lines)).collect();
    let mut all = vec![Chapter { title: "What to do".to_owned(), lines, ..Chapter::default() }];
    if let Some(told) = &advice.told {
        all.push(Chapter {
            title: "Why".to_owned(),
            paragraphs: told.sentences.clone(),
            ..Chapter::default()
        });
    }
    if let Some(told) = cut(advice) {
        all.push(Chapter { title: "Run times".to_owned(), paragraphs: vec![told], ..Chapter::default() });
    }
    if !advice.not_tried.is_empty() {
        let paragraphs = vec![advice.not_tried.join("; ")];
        all.push(Chapter {
            title: "Not tried, for want of budget".to_owned(),
            paragraphs,
            ..Chapter::default()
        });
    }
    all
}

/// A table of candidates whose rows may be compared.
struct Part {
    /// The seeds that its figures are from, in a sentence.
    about: String,
    table: Table<'static>,
}

/// The candidates in two tables, as figures from different seeds are not to be compared: those that fresh
/// seeds confirmed, and the others, with the default's figures on the race's seeds.
fn tables(advice: &Advice) -> Vec<Part> {
    let (fresh, mut raced): (Vec<usize>, Vec<usize>) =
        ranked(advice).into_iter().partition(|&c| is_fresh(advice, c));
    let count = advice.race.standings[0].fresh.len();
    let about = format!("confirmed on {count} fresh seeds, which the race had not run");
    let mut parts = vec![Part { about, table: candidates_table(advice, &fresh, &Race::told) }];
    if !raced.is_empty() {
        raced.push(0);
        let about = format!(
            "the others, on the race's own seeds; compare them with the {} of this table, not with the table above",
            advice.candidates[0].name()
        );
        parts.push(Part { about, table: candidates_table(advice, &raced, &Race::raced) });
    }
    parts
}

/// A row for each of these candidates, from the runs that `of` names.
fn candidates_table(
    advice: &Advice,
    candidates: &[usize],
    of: &dyn Fn(&Race, usize) -> &[Run],
) -> Table<'static> {
    let heads = [
        "candidate",
        "use in",
        "seeds",
        "wait",
        "MiB/s",
        "min/max",
        "wait, factor",
        "MiB/s, factor",
        "min/max, factor",
        "score",
        "front",
        "let go",
    ];
    let front = advice.race.front();
    let row = |&c: &usize| {
        let against = advice.race.against(c, 0);
        let runs = of(&advice.race, c);
        let mut cells = cells(&advice.candidates[c], runs, &advice.waiting);
        cells.extend(factor_cells(&against, c == 0, shown));
        cells.push(if front.contains(&c) { "*" } else { "" }.to_owned());
        cells.push(let_go(advice, c));
        cells.into_iter().map(Cell::label).collect()
    };
    let rows = candidates.iter().map(row).collect();
    Table { words: 2, columns: heads.map(|h| (h, Best::None)).to_vec(), blocks: vec![rows] }
}

/// The first cells of a candidate's row: name, place, seeds, wait, throughput and fairness.
pub(super) fn cells(candidate: &Candidate, runs: &[Run], waiting: &Waiting) -> Vec<String> {
    let [wait, moved, fair] = means(runs);
    vec![
        candidate.name(),
        place(candidate).to_owned(),
        runs.len().to_string(),
        wait.map_or_else(String::new, |w| waited(waiting, w)),
        moved.map_or_else(String::new, |m| mib(whole(m))),
        fair.map_or_else(String::new, |f| format!("{f:.3}")),
    ]
}

/// The cells behind them: the factors against the default, and the score. The default's own are 1, where the
/// figure is compared at all.
pub(super) fn factor_cells(
    against: &Comparison,
    is_default: bool,
    shown: fn(Ratio) -> String,
) -> Vec<String> {
    let cell = |r: Option<Ratio>| if is_default { "1".to_owned() } else { r.map_or_else(String::new, shown) };
    let figures = (0..Figures::COUNT).map(|i| against.figures[i].map_or_else(String::new, |r| cell(Some(r))));
    figures.chain([cell(against.score)]).collect()
}

/// What each job gets under the default and under the candidate that is compared with it; `None` if there is
/// only the default.
fn paid(advice: &Advice) -> Option<Table<'static>> {
    let payers = advice.payers.as_ref()?;
    let names = [0, payers.candidate].map(|c| advice.candidates[c].name());
    let columns = ["job", "scheduler", "MiB/s", "p99", "took", "of its rate", "pays"];
    let row = |p: &Payer, k: usize| {
        let got = [&p.before, &p.after][k];
        let what = match k {
            1 if p.starves() => "starves",
            1 if p.pays() => "yes",
            _ => "",
        };
        let name = if k == 0 { p.name.clone() } else { String::new() };
        let label = |text: String| Cell::label(text);
        let p99 = got.p99.map_or_else(String::new, time);
        vec![
            label(name),
            label(names[k].clone()),
            label(mib(got.bytes_per_s)),
            label(p99),
            label(time(got.took)),
            label(of_rate(got)),
            label(what.to_owned()),
        ]
    };
    let mut blocks: Vec<Vec<Vec<Cell>>> = payers.jobs.iter().map(|p| vec![row(p, 0), row(p, 1)]).collect();
    let (before, after) = payers.totals();
    let total = |name: &str, scheduler: &str, bytes: u64| {
        [name, scheduler, &mib(bytes), "", "", "", ""].map(Cell::label).to_vec()
    };
    blocks.push(vec![total("all", &names[0], before), total("", &names[1], after)]);
    Some(Table { words: 2, columns: columns.map(|c| (c, Best::None)).to_vec(), blocks })
}

/// The share that a job got of the rate that it asks for; empty if it asks for none.
fn of_rate(got: &Got) -> String {
    let least = got.rates.iter().map(fairhead_sim::rates::Rate::kept).reduce(f64::min);
    let mark = if got.missed().is_some() { ", missed" } else { "" };
    least.map_or_else(String::new, |k| format!("{:.0}%{mark}", k * 100.0))
}

/// Processor time for a request under the schedulers of a kernel; `None` where it has no price.
fn costs(advice: &Advice) -> Option<Table<'static>> {
    let columns = [
        "scheduler",
        "limited by",
        "time a request",
        "more than none",
        "in scheduler",
        "wait for lock",
        "processors busy",
        "requests/s",
    ];
    let none = advice.costs.iter().find(|c| advice.candidates[c.candidate].preset == "noop");
    let more = |c: &Cost| {
        let of = none.filter(|n| n.candidate != c.candidate)?;
        Some(time(c.per_request.saturating_sub(of.per_request)))
    };
    let row = |c: &Cost| {
        let cells = [
            advice.candidates[c.candidate].name(),
            c.limit.words().to_owned(),
            time(c.per_request),
            more(c).unwrap_or_default(),
            time(c.in_scheduler),
            time(c.lock_wait),
            format!("{}%", c.busy_permille / 10),
            c.iops.to_string(),
        ];
        cells.into_iter().map(Cell::label).collect()
    };
    let rows: Vec<Vec<Cell>> = advice.costs.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        words: 2,
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: vec![rows],
    })
}

/// A cost, for programs.
fn cost(advice: &Advice, c: &Cost) -> Value {
    json!({
        "scheduler": shown_name(advice.candidates[c.candidate].preset),
        "limited_by": c.limit.words(),
        "requests": c.requests,
        "processor_ns_per_request": c.per_request.as_ns(),
        "in_scheduler_ns_per_request": c.in_scheduler.as_ns(),
        "lock_wait_ns_per_request": c.lock_wait.as_ns(),
        "processors_busy_permille": c.busy_permille,
        "requests_per_s": c.iops,
    })
}

pub(super) const fn place(c: &Candidate) -> &'static str {
    match c.place {
        Place::Kernel => "kernel",
        Place::Fairhead => "Fairhead",
        Place::Lab => "the lab",
    }
}

/// How many seeds its figures are from.
fn seeds(advice: &Advice, c: usize) -> usize {
    advice.race.told(c).len()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes or nanoseconds, positive")]
pub(super) fn whole(value: f64) -> u64 {
    value as u64
}

pub(super) fn waited(waiting: &Waiting, wait: f64) -> String {
    if waiting.what.is_time() {
        time(Duration::from_ns(whole(wait * 1e9)))
    } else {
        format!("{:.1}%", wait - 1.0)
    }
}

pub(super) fn shown(r: Ratio) -> String {
    if r.is_vague() {
        return format!("not known ({} to {})", factor(r.low), factor(r.high));
    }
    format!("{} ({} to {})", factor(r.ratio), factor(r.low), factor(r.high))
}

fn let_go(advice: &Advice, c: usize) -> String {
    match advice.race.standings[c].let_go {
        None => String::new(),
        Some(LetGo::Rate(round)) => format!("round {round}, misses a rate"),
        Some(LetGo::Worse(round)) => format!("round {round}, worse"),
        Some(LetGo::Half(round)) => format!("round {round}, half"),
    }
}

/// The bytes of `fairhead advise --output-format json`.
#[must_use]
pub fn json(labels: &Labels, question: &Question, advice: &Advice) -> String {
    pretty(&value(labels, question, advice))
}

/// The JSON of `fairhead advise --output-format json`, as a value.
#[must_use]
pub fn value(labels: &Labels, question: &Question, advice: &Advice) -> Value {
    let candidates: Vec<Value> = ranked(advice).into_iter().map(|c| candidate(advice, c)).collect();
    let steps = todo(question, advice);
    json!({
        "fairhead version": env!("CARGO_PKG_VERSION"),
        "job_file": question.jobs.file_name,
        "disk": labels.disk,
        "host": labels.host,
        "goal": labels.goal,
        "seed": question.seed,
        "rounds": advice.race.rounds,
        "reckoned_work_ns": advice.race.work.as_ns(),
        "reckoned_work_ns_at_most": question.work.as_ns(),
        "run_times_cut_to_permille": advice.shortened,
        "winner": advice.candidates[advice.race.winner()].name(),
        "best_in_kernel": advice.candidates[advice.best_in_kernel()].name(),
        "default": advice.candidates[0].name(),
        "verdict": advice.verdict(question),
        "wait": {
            "what": advice.waiting.what.words(),
            "jobs": advice.waiting.names(&question.jobs),
        },
        "candidates": candidates,
        "who_pays": advice.payers.as_ref().map(|p| p.jobs.iter().map(payer).collect::<Vec<_>>()),
        "costs": advice.costs.iter().map(|c| cost(advice, c)).collect::<Vec<_>>(),
        "not_tried": advice.not_tried,
        "why_seed": advice.told_seed,
        "why": advice.told.as_ref().map(|t| &t.sentences),
        "limit": advice.remedy.as_ref().map(|r| remedy(question, r)),
        "to_do": steps.iter().map(|s| json!({ "about": s.about, "lines": s.lines })).collect::<Vec<_>>(),
    })
}

/// A job under the default and under the other candidate.
fn payer(p: &Payer) -> Value {
    let got = |g: &Got| {
        json!({
            "bytes_per_s": g.bytes_per_s,
            "p99_ns": g.p99.map(Duration::as_ns),
            "took_ns": g.took.as_ns(),
            "kept_of_rate": g.rates.iter().map(fairhead_sim::rates::Rate::kept).reduce(f64::min),
        })
    };
    json!({
        "job": p.name,
        "clients": p.clients,
        "before": got(&p.before),
        "after": got(&p.after),
        "pays": p.pays(),
        "starves": p.starves(),
    })
}

/// A limit, and what it does against none.
fn remedy(question: &Question, r: &Remedy) -> Value {
    json!({
        "jobs": r.names(&question.jobs),
        "permille_of_what_they_moved": r.permille,
        "rbps": r.rbps,
        "wbps": r.wbps,
        "factors": factors(&r.against),
    })
}

/// By name, the score last.
pub(super) fn factors(against: &Comparison) -> Map<String, Value> {
    let all = Figures::NAMES.iter().zip(against.figures).chain([(&"score", against.score)]);
    all.map(|(name, r)| ((*name).to_owned(), r.map_or(Value::Null, ratio))).collect()
}

fn candidate(advice: &Advice, c: usize) -> Value {
    let of = &advice.candidates[c];
    let against = advice.race.against(c, 0);
    let [wait, moved, fair] = means(advice.race.told(c));
    let unit = if advice.waiting.what.is_time() { "wait_s" } else { "late_frames_per_mille" };
    let wait = if advice.waiting.what.is_time() { wait } else { wait.map(|w| (w - 1.0) * 10.0) };
    let tunables: Map<String, Value> =
        of.set.iter().map(|&(name, raw)| (name.to_owned(), json!(of.value(name, raw)))).collect();
    json!({
        "name": of.name(),
        "scheduler": shown_name(of.preset),
        "tunables": tunables,
        "use_in": place(of),
        "tried_because": of.why,
        "seeds": seeds(advice, c),
        "seeds_are_fresh": against.confirmed,
        unit: wait,
        "bytes_per_s": moved,
        "smallest_over_largest_share": fair,
        "factors": factors(&against),
        "is_on_front": advice.race.front().contains(&c),
        "let_go": let_go(advice, c),
    })
}

/// Infinite ends are null.
fn ratio(r: Ratio) -> Value {
    json!({ "pairs": r.count, "factor": r.ratio, "low": r.low, "high": r.high })
}

/// One of the runs that are shown beside advice.
pub struct Shown {
    /// Which candidate's.
    pub candidate: usize,
    /// What came out.
    pub outcome: Outcome,
    /// What was recorded.
    pub recording: Recording,
}

/// The page of `fairhead advise --report`; `command` is what it says made it.
#[must_use]
pub fn page(labels: &Labels, question: &Question, advice: &Advice, shown: &[Shown], command: &str) -> String {
    let names: Vec<String> = shown.iter().map(|s| advice.candidates[s.candidate].name()).collect();
    let runs: Vec<Shot<'_>> = shown
        .iter()
        .zip(&names)
        .map(|(s, name)| Shot { name, outcome: &s.outcome, recording: &s.recording })
        .collect();
    let order = ranked(advice);
    let mut made = made(command);
    made.extend([
        ("job file", question.jobs.file_name.clone()),
        ("disk", labels.disk.clone()),
        ("host", format!("of {}", labels.host)),
        ("goal", labels.goal.clone()),
        ("seed", question.seed.to_string()),
        ("rounds", advice.race.rounds.to_string()),
    ]);
    let of_page = |p: Part| p.table.for_page(&format!("Candidates, {}", p.about));
    let mut tables: Vec<_> = tables(advice).into_iter().map(of_page).collect();
    tables.extend(paid(advice).map(|t| t.for_page("Who pays, while all jobs ran")));
    tables.extend(costs(advice).map(|t| t.for_page("What requests cost the processors")));
    let of_runs = format!(
        "What follows shows one run of each of {}, with the seed {}, the first of those that confirmed.",
        names.join("; "),
        advice.told_seed
    );
    Page {
        title: format!("{} on {}: which scheduler?", question.jobs.file_name, labels.disk),
        headline: advice.headline(),
        verdict: Some((advice.verdict(question), pictures::factors(advice, &order))),
        chapters: chapters(question, advice),
        tables,
        runs_note: Some(of_runs),
        runs: Runs::grouped(&question.jobs, &runs),
        why: Vec::new(),
        made,
        figures: value(labels, question, advice),
    }
    .html()
}

/// Runs for the page: the default, the winner, and who led or is the best that a kernel has, if that is
/// another.
///
/// # Errors
/// If a scenario is impossible.
pub fn shown_runs(question: &Question, advice: &Advice) -> Result<Vec<Shown>, SimError> {
    let race = &advice.race;
    let mut candidates = vec![0];
    for c in [race.winner(), race.leader, race.choice] {
        if !candidates.contains(&c) {
            candidates.push(c);
        }
    }
    let run = |candidate: usize| {
        let mut recorder = Recorder::new(Participants::new(&question.jobs));
        let scenario = question.scenario(&advice.candidates[candidate], advice.told_seed);
        let outcome = journal::record(&scenario, &mut recorder)?;
        Ok(Shown { candidate, outcome, recording: recorder.finish() })
    };
    candidates.into_iter().map(run).collect()
}
