//! What an interrupted advice has found, for people and for programs.
//!
//! ```text
//! So far bfq is best: 2.41 (2.30 to 2.52) of mq-deadline, on 3 seeds.
//!
//! candidate    use in  seeds  against the first
//! bfq          kernel      3  2.41 (2.30 to 2.52)
//! mq-deadline  kernel      3  1
//! ```

use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{Question, SoFar};
use serde_json::{Value, json};

use super::advice::{Labels, place, ratio as value, shown};
use super::json::pretty;
use super::table::{Best, Cell, Table};

/// The report for people, with a line break at its end.
#[must_use]
pub fn human(labels: &Labels, question: &Question, so_far: &SoFar, coloured: bool) -> String {
    let mut text = format!(
        "{} on {}, host of {}, {}, seed {}: interrupted\n\n{}\n",
        question.jobs.file_name,
        labels.disk,
        labels.host,
        labels.emphasis,
        question.seed,
        sentence(so_far)
    );
    if !so_far.ranked().is_empty() {
        text.push('\n');
        text.push_str(&table(so_far).render(coloured));
    }
    text
}

/// What is known, in one sentence.
fn sentence(so_far: &SoFar) -> String {
    let name = |c: usize| so_far.candidates[c].name();
    let ranked = so_far.ranked();
    let seeds = |c: usize| match so_far.count(c) {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds"),
    };
    match ranked.as_slice() {
        [] | [_] => format!("Nothing is known yet: no candidate has been compared with {}.", name(0)),
        [0, others @ ..] => format!(
            "So far none of {} other candidates is better than {}, on {}; fresh seeds have not confirmed it.",
            others.len(),
            name(0),
            seeds(0)
        ),
        [best, ..] => format!(
            "So far {} is best: {} of {}, on {}; fresh seeds have not confirmed it.",
            name(*best),
            ratio(so_far.against_now(*best).load),
            name(0),
            seeds(*best)
        ),
    }
}

/// A factor with its interval, which one seed does not have.
fn ratio(r: Ratio) -> String {
    if r.count < 2 { format!("{:.2}", r.ratio) } else { shown(r) }
}

fn table(so_far: &SoFar) -> Table<'static> {
    let heads = ["candidate", "use in", "seeds", "against the first"];
    let row = |c: usize| {
        let against = if c == 0 { "1".to_owned() } else { ratio(so_far.against_now(c).load) };
        let candidate = &so_far.candidates[c];
        let cells = [candidate.name(), place(candidate).to_owned(), so_far.count(c).to_string(), against];
        cells.into_iter().map(Cell::label).collect()
    };
    let rows = so_far.ranked().into_iter().map(row).collect();
    Table { words: 2, columns: heads.map(|h| (h, Best::None)).to_vec(), blocks: vec![rows] }
}

/// The report for programs: one object, in which `interrupted` is true.
#[must_use]
pub fn json(labels: &Labels, question: &Question, so_far: &SoFar) -> String {
    let candidate = |c: usize| {
        json!({
            "name": so_far.candidates[c].name(),
            "use_in": place(&so_far.candidates[c]),
            "seeds": so_far.count(c),
            "seeds_are_fresh": false,
            "change": value(so_far.against_now(c).load),
        })
    };
    let candidates: Vec<Value> = so_far.ranked().into_iter().map(candidate).collect();
    pretty(&json!({
        "fairhead version": env!("CARGO_PKG_VERSION"),
        "interrupted": true,
        "job_file": question.jobs.file_name,
        "disk": labels.disk,
        "host": labels.host,
        "emphasis": labels.emphasis,
        "seed": question.seed,
        "default": so_far.candidates[0].name(),
        "so_far": sentence(so_far),
        "candidates": candidates,
    }))
}
