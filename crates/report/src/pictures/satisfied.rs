//! Draws how much of what it would get alone each job gets, under one scheduler and another: the picture of
//! an answer.

use super::bars::{Row, draw};
use crate::svg::Picture;
use crate::table::{Cell, Table};
use crate::words::fared;
use fairhead_sim::advise::{Advice, Fared};
use fairhead_sim::satisfaction::Load;

/// The most jobs of an answer that are drawn; the table below has all.
const JOBS: usize = 12;

/// A scheduler, and how the jobs fared under it.
#[derive(Clone, Debug)]
pub(crate) struct Under {
    pub(crate) look: usize,
    pub(crate) sign: String,
    pub(crate) name: String,
    /// In the order of the job file.
    pub(crate) jobs: Vec<Fared>,
}

/// Makes the picture of an answer: two bars for each job, under what is in use and under the candidate that
/// is compared with it.
#[must_use]
pub fn before_and_after(advice: &Advice) -> Vec<Picture> {
    let verdict = advice.verdict();
    let under = |(look, candidate): (usize, usize)| {
        let fared = |r: &fairhead_sim::advise::Row| if look == 0 { r.now } else { r.then };
        let name = advice.candidates[candidate].name();
        Under { look, sign: String::new(), name, jobs: verdict.rows.iter().map(fared).collect() }
    };
    let schedulers: Vec<usize> = if verdict.compared == 0 { vec![0] } else { vec![0, verdict.compared] };
    let all: Vec<Under> = schedulers.into_iter().enumerate().map(under).collect();
    let shown: Vec<usize> = (0..verdict.rows.len()).take(JOBS).collect();
    vec![jobs(&advice.load, &shown, &all)]
}

/// Draws a bar for each of these jobs under each scheduler; the table has all jobs.
pub(crate) fn jobs(load: &Load, shown: &[usize], all: &[Under]) -> Picture {
    let mut rows = Vec::new();
    let mut cells = Vec::new();
    for (j, (job, party)) in load.jobs.jobs.iter().zip(&load.parties).enumerate() {
        for under in all {
            let f = &under.jobs[j];
            let label = format!("{}, {}", job.name, under.name);
            let value = fared(job, party.kind, f);
            cells.push(vec![
                Cell::label(label.clone()),
                Cell::number(format!("{:.2}", f.satisfaction), whole(f.satisfaction * 1000.0)),
                Cell::label(value.clone()),
            ]);
            if shown.contains(&j) {
                let part = f.satisfaction.clamp(0.0, 1.0);
                rows.push(Row {
                    look: under.look,
                    sign: under.sign.clone(),
                    label,
                    value,
                    part,
                    interval: None,
                });
            }
        }
    }
    let title = "How much of what it gets alone each job gets".to_owned();
    let about = "A full bar: as much as alone, or its share of it beside other bulk jobs.".to_owned();
    let table = Table::new(title.clone(), 1, &["job, scheduler", "of alone", "gets"], cells);
    draw(&rows).finish("satisfied".to_owned(), title, about).with_table(table)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousandths of a share")]
fn whole(value: f64) -> u64 {
    value as u64
}
