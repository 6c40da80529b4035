//! The answer for people: at most 15 lines of at most 80 columns.

use std::path::Path;

use fairhead_core::sched::any::shown as scheduler;
use fairhead_report::words::time;
use fairhead_sim::advise::statistics::Finding;
use fairhead_sim::advise::{Advice, AtOnce, Candidate, EQUAL, Place, Row, Verdict, factor};

use super::super::text;
use super::{Labels, amount, details, fared, word};

/// How the answer is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// With colours.
    pub is_coloured: bool,
    /// With block characters; else with ASCII.
    pub is_unicode: bool,
    /// With everything behind the answer.
    pub has_details: bool,
}

/// The widest that the answer is.
const COLUMNS: usize = 80;
/// The most rows of jobs; those that change least are left to the details.
const ROWS: usize = 6;
/// The length of a bar of a job that gets all that it gets alone.
const BAR: usize = 8;
/// The longest name of a job that is not cut.
const NAME: usize = 12;

/// The report, with a line break at its end.
#[must_use]
pub fn human(labels: &Labels, advice: &Advice, drawn: Drawn) -> String {
    let mut text = String::new();
    for line in lines(labels, advice, drawn) {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if drawn.has_details {
        text.push_str(&details(labels, advice, drawn.is_coloured));
    }
    text
}

/// The lines of the answer.
#[must_use]
pub fn lines(labels: &Labels, advice: &Advice, drawn: Drawn) -> Vec<String> {
    let verdict = advice.verdict();
    let mut all = vec![headline(labels, advice, &verdict, drawn), String::new()];
    all.extend(rows(advice, &verdict, drawn));
    all.push(String::new());
    all.extend(sentences(advice, &verdict).iter().flat_map(|s| wrapped(s)));
    if !drawn.has_details {
        all.push("--details shows every candidate, the reasons and the evidence.".to_owned());
    }
    all
}

/// The answer in sentences, without its rows.
pub(super) fn sentences_of(labels: &Labels, advice: &Advice, drawn: Drawn) -> Vec<String> {
    let verdict = advice.verdict();
    let mut all = vec![headline(labels, advice, &verdict, drawn)];
    all.extend(sentences(advice, &verdict));
    all
}

/// What to use.
fn headline(labels: &Labels, advice: &Advice, verdict: &Verdict, drawn: Drawn) -> String {
    let name = |c: usize| advice.candidates[c].name();
    let file = &advice.load.jobs.file_name;
    let load = Path::new(file).file_stem().map_or_else(|| file.clone(), |n| n.to_string_lossy().into_owned());
    let answer = match verdict.winner {
        0 => format!("stay with {}", name(0)),
        winner => format!("use {} instead of {}", name(winner), name(0)),
    };
    let (on, off) = if drawn.is_coloured { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    format!("{load} on {}: {on}{answer}{off}.", labels.disk)
}

/// The rows of the jobs that change most, in the order of the file, below their headings.
fn rows(advice: &Advice, verdict: &Verdict, drawn: Drawn) -> Vec<String> {
    let change = |r: &Row| r.change.ratio.max(1.0 / r.change.ratio);
    let mut chosen: Vec<&Row> = verdict.rows.iter().collect();
    chosen.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let left = chosen.len().saturating_sub(ROWS);
    chosen.truncate(ROWS);
    chosen.sort_by_key(|r| r.job);
    let has_other = verdict.compared != 0;
    let heads = [0, verdict.compared].map(|c| advice.candidates[c].name());
    let mut cells =
        vec![["job", "", "alone", &heads[0], if has_other { &heads[1] } else { "" }].map(str::to_owned)];
    for r in chosen {
        let (job, kind) = (&advice.load.jobs.jobs[r.job], advice.load.parties[r.job].kind);
        let bar = |f: &fairhead_sim::advise::Fared| {
            format!("{}{}", bar(f.satisfaction, drawn.is_unicode), fared(job, kind, f))
        };
        let then = if has_other { bar(&r.then) } else { String::new() };
        let alone = amount(job, kind, r.alone);
        cells.push([cut(&job.name, NAME), word(kind).to_owned(), alone, bar(&r.now), then]);
    }
    let width = |c: usize| cells.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |row: &[String; 5]| {
        let each = row.iter().zip(widths).map(|(text, w)| {
            let blank = " ".repeat(w.saturating_sub(text.chars().count()));
            format!("{text}{blank}")
        });
        cut(&each.collect::<Vec<_>>().join("  "), COLUMNS)
    };
    let mut all: Vec<String> = cells.iter().map(line).collect();
    if left > 0 {
        all.push(format!("{left} more {} less.", if left == 1 { "job changes" } else { "jobs change" }));
    }
    all
}

/// A bar of how much of what it gets alone a job gets, with blanks up to a full one.
fn bar(satisfaction: f64, is_unicode: bool) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 64")]
    let bar = text::bar((satisfaction.clamp(0.0, 1.0) * 64.0).ceil() as usize, is_unicode);
    let blank = " ".repeat((BAR + 1).saturating_sub(bar.chars().count()));
    format!("{bar}{blank}")
}

/// A text of at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['~']).collect()
}

/// The jobs that pay, how sure it is, what to type, and what would be better.
fn sentences(advice: &Advice, verdict: &Verdict) -> Vec<String> {
    let name = |c: usize| advice.candidates[c].name();
    let mut all = Vec::new();
    all.extend(paid(advice, verdict));
    all.push(together(advice, verdict));
    all.extend(barred(advice, verdict));
    all.extend(at_once(advice));
    if verdict.winner != 0 {
        all.extend(command(advice));
    }
    if let Some(r) = &advice.remedy {
        all.push(format!(
            "A limit helps: {} at {}: all jobs together {} times.",
            r.names(&advice.load.jobs).join(", "),
            r.words(),
            factor(r.against.load.ratio)
        ));
    }
    if let Some((own, load)) = verdict.better_own {
        all.push(format!(
            "Better still, and in no kernel: {}, {} times; fairhead serve or mount --sched {}.",
            name(own),
            factor(load.ratio),
            scheduler(advice.candidates[own].preset)
        ));
    }
    if let Some(idled) = &advice.idled {
        all.push(format!("Warning: {}.", idled.words(&name(advice.winner))));
    }
    all
}

/// The jobs that get less under the candidate that is compared.
fn paid(advice: &Advice, verdict: &Verdict) -> Option<String> {
    if verdict.compared == 0 {
        return None;
    }
    let then = advice.candidates[verdict.compared].name();
    let payers: Vec<String> = verdict
        .payers()
        .map(|r| {
            let (job, kind) = (&advice.load.jobs.jobs[r.job], advice.load.parties[r.job].kind);
            format!("{} ({} instead of {})", job.name, fared(job, kind, &r.then), fared(job, kind, &r.now))
        })
        .collect();
    let verb = if verdict.winner == 0 { "would pay" } else { "pays" };
    Some(match payers.as_slice() {
        [] => format!("Under {then} no job surely gets less."),
        [first] => format!("Under {then} {verb}: {first}."),
        [first, rest @ ..] => {
            let rest: Vec<&str> = rest.iter().map(|p| p.split(" (").next().unwrap_or(p)).collect();
            format!("Under {then} {verb}: {first}; and {}.", rest.join(", "))
        }
    })
}

/// How all jobs together fare, and how sure that is.
fn together(advice: &Advice, verdict: &Verdict) -> String {
    let over = format!("{} seeds, {} each", verdict.seeds, time(advice.load.span));
    let (now, load) = (verdict.satisfied, verdict.load);
    let [before, after] = [0, verdict.compared].map(|c| advice.candidates[c].name());
    if verdict.compared == 0 {
        return format!("All jobs together: {now:.2} of alone under {before} ({over}).");
    }
    let both =
        format!("All jobs together: {now:.2} of alone under {before}, {:.2} under {after}", now * load.ratio);
    match load.finding(EQUAL) {
        Finding::NoDifference => format!("{both}: no difference ({over})."),
        Finding::NothingFound => {
            format!(
                "{both}: too close to call, {} to {} times ({over}).",
                factor(load.low),
                factor(load.high)
            )
        }
        _ => format!(
            "{both}: {} times ({} to {}; {over}).",
            factor(load.ratio),
            factor(load.low),
            factor(load.high)
        ),
    }
}

/// The kernel's other candidates that a floor bars although they would be ahead.
fn barred(advice: &Advice, verdict: &Verdict) -> Option<String> {
    let is_ahead = |c: usize| advice.book.against(c, verdict.winner).load.ratio > EQUAL;
    let of = |c: &usize| advice.candidates[*c].place == Place::Kernel && is_ahead(*c);
    let (c, job, floor) = verdict.barred.iter().find(|(c, _, _)| of(c))?;
    let job = &advice.load.jobs.jobs[*job].name;
    Some(format!("Not {}: {job} {} there.", advice.candidates[*c].name(), floor.words()))
}

/// What differs if all jobs begin at once.
fn at_once(advice: &Advice) -> Option<String> {
    let name = |c: usize| advice.candidates[c].name();
    Some(match advice.at_once? {
        AtOnce::Better(c, load) => {
            format!("If all jobs begin at once, {} is better: {} times.", name(c), factor(load.ratio))
        }
        AtOnce::Barred(job, floor) => {
            let job = &advice.load.jobs.jobs[job].name;
            format!("If all jobs begin at once, {job} {} under {}.", floor.words(), name(advice.winner))
        }
    })
}

/// The command that puts the winner to use.
fn command(advice: &Advice) -> Option<String> {
    let winner = &advice.candidates[advice.winner];
    let set: Vec<String> = kernel_values(winner);
    Some(match winner.place {
        Place::Kernel => {
            let words = [vec![scheduler(winner.preset).to_owned()], set].concat().join(" ");
            format!("sudo fairhead apply DISK {words} (back: sudo fairhead apply DISK --undo)")
        }
        Place::Fairhead => format!("fairhead serve or mount --sched {}", scheduler(winner.preset)),
        Place::Lab => return None,
    })
}

/// Tunables as the kernel's files have them.
fn kernel_values(c: &Candidate) -> Vec<String> {
    fairhead_sim::advise::kernel_values(c)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// A sentence in lines of at most 80 columns; those behind the first are indented.
fn wrapped(sentence: &str) -> Vec<String> {
    const INDENT: usize = 2;
    let lines = text::wrapped(sentence, COLUMNS - INDENT).into_iter().enumerate();
    lines.map(|(i, line)| if i == 0 { line } else { format!("{:INDENT$}{line}", "") }).collect()
}
