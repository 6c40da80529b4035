//! Draws how much of what it would get alone each job gets, before and after: the picture of an answer.

use super::bars::{Row, draw};
use crate::svg::Picture;
use crate::table::{Cell, Table};
use crate::words::fared;
use fairhead_sim::advise::{Advice, Fared};

/// The most jobs that are drawn; the table below has all.
const JOBS: usize = 12;

/// Makes the picture of an answer: two bars for each job, under what is in use and under the candidate that
/// is compared with it.
#[must_use]
pub fn before_and_after(advice: &Advice) -> Vec<Picture> {
    let verdict = advice.verdict();
    let schedulers: Vec<usize> = if verdict.compared == 0 { vec![0] } else { vec![0, verdict.compared] };
    let name = |c: usize| advice.candidates[c].name();
    let mut rows = Vec::new();
    let mut cells = Vec::new();
    for r in &verdict.rows {
        let (job, kind) = (&advice.load.jobs.jobs[r.job], advice.load.parties[r.job].kind);
        for (look, &c) in schedulers.iter().enumerate() {
            let f: &Fared = if look == 0 { &r.now } else { &r.then };
            let label = format!("{}, {}", job.name, name(c));
            let value = fared(job, kind, f);
            cells.push(vec![
                Cell::label(label.clone()),
                Cell::number(format!("{:.2}", f.satisfaction), whole(f.satisfaction * 1000.0)),
                Cell::label(value.clone()),
            ]);
            rows.push(Row { look, sign: String::new(), label, value, part: f.satisfaction.clamp(0.0, 1.0) });
        }
    }
    rows.truncate(JOBS * schedulers.len());
    let title = "How much of what it gets alone each job gets".to_owned();
    let about = "A full bar: as much as alone, or its share of it beside other bulk jobs.".to_owned();
    let table = Table::new(title.clone(), 1, &["job, scheduler", "of alone", "gets"], cells);
    vec![draw(&rows).finish("satisfied".to_owned(), title, about).with_table(table)]
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousandths of a share")]
fn whole(value: f64) -> u64 {
    value as u64
}
