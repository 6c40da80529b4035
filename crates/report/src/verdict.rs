//! What several runs of one job say: a sentence about the job that suffers most, one about all jobs together,
//! and the pictures of both.
//!
//! "office suffers most: 27.9s under mq-deadline, 4.13s under bfq; alone 2.34s. All jobs together get most
//! of what they get alone under bfq, 0.79; least under mq-deadline, 0.21."
//!
//! The figures are satisfactions ([`fairhead_sim::satisfaction`]), as in advice; so are the words and what
//! counts as no difference. A single seed has no confidence interval, so nothing here says how certain it is:
//! use `advise` for that.

use crate::pictures::bars::{self, Row};
use crate::pictures::satisfied::{Under, jobs};
use crate::runs::Runs;
use crate::svg::Picture;
use crate::table::{Cell, Table};
use crate::words::{amount, fared, time};
use fairhead_sim::advise::{EQUAL, factor, judged};
use fairhead_sim::satisfaction::log_of_all;
use fairhead_sim::sweep::Base;

/// The most rows of the picture of jobs; the jobs that differ least are left out.
const ROWS: usize = 48;

/// What the runs say, and the pictures of it.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The sentences, the most important first.
    pub sentences: Vec<String>,
    /// All jobs together under each scheduler, and each job.
    pub pictures: Vec<Picture>,
}

/// Says what came of runs, beside what each job gets alone.
#[must_use]
pub fn verdict(runs: &Runs<'_>, base: &Base) -> Verdict {
    let under = |(i, s): (usize, &crate::runs::Shown<'_>)| Under {
        look: s.look,
        sign: Runs::sign(i),
        name: s.name(),
        jobs: judged(&base.load, &base.alone, s.outcome).jobs,
    };
    let all: Vec<Under> = runs.shown.iter().enumerate().map(under).collect();
    let mut sentences: Vec<String> = suffers(base, &all).into_iter().collect();
    sentences.push(together(base, &all));
    if all.len() > 1 {
        sentences.extend(lengths(runs));
        sentences.push("All this is of one seed; fairhead advise tells what holds over many.".to_owned());
    }
    let most = ROWS / all.len().max(1);
    let mut shown: Vec<usize> = (0..base.load.parties.len()).collect();
    shown.sort_by(|a, b| differs(&all, *b).2.total_cmp(&differs(&all, *a).2));
    shown.truncate(most.max(1));
    shown.sort_unstable();
    Verdict { sentences, pictures: vec![of_all(base, &all), jobs(&base.load, &shown, &all)] }
}

/// How satisfied all jobs together are.
fn satisfaction(base: &Base, under: &Under) -> f64 {
    log_of_all(&base.load.parties, under.jobs.iter().map(|f| f.satisfaction)).exp()
}

/// The runs, and how satisfied all jobs together are; the best first.
fn ranked(base: &Base, all: &[Under]) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> =
        all.iter().enumerate().map(|(i, under)| (i, satisfaction(base, under))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// The runs under which a job fares worst and best, and by what factor.
fn differs(all: &[Under], job: usize) -> (usize, usize, f64) {
    let of = |run: &usize| all[*run].jobs[job].satisfaction;
    let order = |a: &usize, b: &usize| of(a).total_cmp(&of(b));
    let worst = (0..all.len()).min_by(order).unwrap_or(0);
    // The first of equal ones.
    let best = (0..all.len()).rev().max_by(order).unwrap_or(0);
    (worst, best, of(&best) / of(&worst))
}

/// Returns the sentence about the job that differs most between the runs; `None` for a single run.
fn suffers(base: &Base, all: &[Under]) -> Option<String> {
    let jobs = 0..base.load.parties.len();
    if all.len() < 2 {
        return None;
    }
    let job = jobs.max_by(|a, b| differs(all, *a).2.total_cmp(&differs(all, *b).2))?;
    let (worst, best, ratio) = differs(all, job);
    if ratio <= EQUAL {
        return Some(
            "No job suffers: each gets the same under all of these schedulers, within 5 %.".to_owned(),
        );
    }
    let (of, kind) = (&base.load.jobs.jobs[job], base.load.parties[job].kind);
    let shown = |run: usize| (fared(of, kind, &all[run].jobs[job]), first(&all[run].name));
    let ((low, worst), (high, best)) = (shown(worst), shown(best));
    let alone = amount(of, kind, base.alone.got(job).amount);
    Some(format!("{} suffers most: {low} under {worst}, {high} under {best}; alone {alone}.", of.name))
}

/// The first of several names of a run.
fn first(name: &str) -> &str {
    name.split(", ").next().unwrap_or(name)
}

/// Returns the sentence about all jobs together.
fn together(base: &Base, all: &[Under]) -> String {
    let ranked = ranked(base, all);
    let (Some(&(best, top)), Some(&(worst, low))) = (ranked.first(), ranked.last()) else {
        return "No run.".to_owned();
    };
    let name = |run: usize| &all[run].name;
    if all.len() == 1 {
        return format!("All jobs together get {top:.2} of what they get alone.");
    }
    if low * EQUAL >= top {
        return format!("All jobs together: no difference; {low:.2} to {top:.2} of what they get alone.");
    }
    let near: Vec<&str> =
        ranked[1..].iter().filter(|r| r.1 * EQUAL >= top).map(|r| name(r.0).as_str()).collect();
    let near =
        if near.is_empty() { String::new() } else { format!("; no difference to {}", near.join(", ")) };
    format!(
        "All jobs together get most of what they get alone under {}, {top:.2}{near}; least under {}, {low:.2}, \
         {} times less.",
        name(best),
        name(worst),
        factor(top / low)
    )
}

/// Returns a warning if the runs have different lengths because a job ended them.
fn lengths(runs: &Runs<'_>) -> Option<String> {
    let ended = runs.jobs.jobs.iter().find(|job| job.exitall)?;
    let times = || runs.shown.iter().map(|s| s.outcome.elapsed);
    let (least, most) = (times().min()?, times().max()?);
    #[allow(clippy::cast_precision_loss, reason = "a ratio of times")]
    let ratio = most.as_ns() as f64 / least.as_ns().max(1) as f64;
    (ratio > EQUAL).then(|| {
        format!(
            "{} ends a run when it is done (exitall), after {} to {}, so the others are compared over \
             different times; fairhead advise compares over one.",
            ended.name,
            time(least),
            time(most)
        )
    })
}

/// Draws how satisfied all jobs together are, the best scheduler first.
fn of_all(base: &Base, all: &[Under]) -> Picture {
    let ranked = ranked(base, all);
    let longest = ranked.first().map_or(1.0, |r| r.1.max(1.0));
    let row = |&(run, value): &(usize, f64)| Row {
        look: all[run].look,
        sign: all[run].sign.clone(),
        label: all[run].name.clone(),
        value: format!("{value:.2}"),
        part: value / longest,
        interval: None,
    };
    let rows: Vec<Row> = ranked.iter().map(row).collect();
    let title = "All jobs together, of what they get alone".to_owned();
    let about = "A bar for each scheduler, the best first; longer is better. A full bar: as much as alone.";
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousandths of a share")]
    let cells = ranked.iter().map(|&(run, value)| {
        let is_best = ranked.len() > 1 && value * EQUAL >= ranked[0].1;
        let number = Cell { is_best, ..Cell::number(format!("{value:.2}"), (value * 1000.0) as u64) };
        vec![Cell::label(all[run].name.clone()), number]
    });
    let table = Table::new(title.clone(), 1, &["scheduler", "of alone"], cells.collect());
    bars::draw(&rows).finish("together".to_owned(), title, about.to_owned()).with_table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Participants, Recorder, Run};
    use fairhead_core::Duration;
    use fairhead_core::sched::any::preset;
    use fairhead_device::DeviceParams;
    use fairhead_sim::job::parse;
    use fairhead_sim::satisfaction::{Alone, Emphasis, Load};
    use fairhead_sim::{Host, Outcome, Scenario, journal};

    /// Runs of a job under schedulers, and what is said of them.
    fn said(text: &str, schedulers: &[&str]) -> Verdict {
        let jobs = parse(text, "t").unwrap();
        let scenario = |name: &str| Scenario {
            jobs: jobs.clone(),
            disk: DeviceParams::preset("nas2020").unwrap(),
            host: Host::for_disk("nas2020"),
            scheduler: name.to_owned(),
            config: (preset(name).unwrap().config)(),
            seed: 1,
            interval: None,
            time_max: None,
            watch: None,
        };
        let done: Vec<(Outcome, crate::Recording)> = (schedulers.iter())
            .map(|name| {
                let mut recorder = Recorder::new(Participants::new(&jobs));
                (journal::record(&scenario(name), &mut recorder).unwrap(), recorder.finish())
            })
            .collect();
        let span = done.iter().map(|d| d.0.elapsed).max().unwrap() + Duration::from_ns(1);
        let load = Load::new(&jobs, span, &Emphasis::Even);
        let alone = Alone::measure(&load, &scenario("noop"), 1).unwrap();
        let runs: Vec<Run<'_>> = (done.iter().zip(schedulers))
            .map(|((outcome, recording), name)| Run { name, outcome, recording })
            .collect();
        verdict(&Runs::grouped(&jobs, &runs), &Base { load, alone })
    }

    /// A copy that a start ends is not the best because it was over soonest.
    #[test]
    fn the_job_that_suffers_most_is_named_and_over_how_long_runs_are_compared() {
        let text = "[copy]\nrw=read\nbs=64k\nsize=4g\nnumjobs=4\n\
                    [start]\nrw=randread\nbs=4k\nsize=64m\nio_size=400k\nexitall\n";
        let v = said(text, &["noop", "cfq"]);
        let [suffers, together, lengths, _] = v.sentences.as_slice() else { panic!("{v:?}") };
        assert!(suffers.starts_with("start suffers most: "), "{suffers}");
        assert!(suffers.contains(" under noop, ") && suffers.contains(" under cfq; alone "), "{suffers}");
        assert!(together.starts_with("All jobs together"), "{together}");
        assert!(lengths.starts_with("start ends a run when it is done (exitall)"), "{lengths}");
        let names: Vec<&str> = v.pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["together", "satisfied"]);
        let rows = v.pictures[1].table.as_ref().unwrap().blocks[0].len();
        assert_eq!(rows, 4, "two jobs under two schedulers");
    }

    #[test]
    fn one_run_has_one_sentence_and_a_job_alone_gets_what_it_gets_alone() {
        let v = said("[a]\nrw=read\nbs=64k\nsize=16m\ndirect=1\n", &["noop"]);
        assert_eq!(v.sentences, ["All jobs together get 1.00 of what they get alone."]);
    }
}
