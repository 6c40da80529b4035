//! What an interrupted advice has found, for people and for programs.
//!
//! ```text
//! So far bfq scores best against mq-deadline: 2.41 (2.30 to 2.52), on 3 seeds.
//!
//! candidate    use in  seeds   wait  MiB/s  min/max  wait, factor         …  score
//! bfq          kernel      3  0.66s    101     0.99  30.1 (28.9 to 31.2)     2.41 (2.30 to 2.52)
//! mq-deadline  kernel      3  20.1s    151     1.00  1
//! ```

use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{Question, SoFar};
use serde_json::{Value, json};

use super::advice::{Labels, cells, factor_cells, factors, place, shown};
use super::json::pretty;
use super::table::{Best, Cell, Table};

/// The report for people, with a line break at its end.
#[must_use]
pub fn human(labels: &Labels, question: &Question, so_far: &SoFar, coloured: bool) -> String {
    let mut text = format!(
        "{} on {}, host of {}, goal {}, seed {}: interrupted\n\n{}\n",
        question.jobs.file_name,
        labels.disk,
        labels.host,
        labels.goal,
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
    let seeds = |c: usize| match so_far.runs(c).len() {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds"),
    };
    match ranked.as_slice() {
        [] | [_] => format!("Nothing is known yet: no candidate has been compared with {}.", name(0)),
        [0, others @ ..] => format!(
            "So far none of {} other candidates scores better than {}, on {}; fresh seeds have not confirmed it.",
            others.len(),
            name(0),
            seeds(0)
        ),
        [best, ..] => format!(
            "So far {} scores best against {}: {}, on {}; fresh seeds have not confirmed it.",
            name(*best),
            name(0),
            so_far.against_default(*best).score.map_or_else(String::new, ratio),
            seeds(*best)
        ),
    }
}

/// A factor with its interval, which one seed does not have.
fn ratio(r: Ratio) -> String {
    if r.count < 2 { format!("{:.2}", r.ratio) } else { shown(r) }
}

fn table(so_far: &SoFar) -> Table<'static> {
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
    ];
    let row = |c: usize| {
        let mut cells = cells(&so_far.candidates[c], &so_far.runs(c), &so_far.waiting);
        cells.extend(factor_cells(&so_far.against_default(c), c == 0, ratio));
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
            "seeds": so_far.runs(c).len(),
            "seeds_are_fresh": false,
            "factors": factors(&so_far.against_default(c)),
        })
    };
    let candidates: Vec<Value> = so_far.ranked().into_iter().map(candidate).collect();
    pretty(&json!({
        "fairhead version": env!("CARGO_PKG_VERSION"),
        "interrupted": true,
        "job_file": question.jobs.file_name,
        "disk": labels.disk,
        "host": labels.host,
        "goal": labels.goal,
        "seed": question.seed,
        "default": so_far.candidates[0].name(),
        "so_far": sentence(so_far),
        "candidates": candidates,
    }))
}
