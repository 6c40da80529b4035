//! The arena's result: summaries and worst cells for people, cells and jobs as CSV and JSON, a page.
//!
//! Cells that were not run, because of an interrupt or because another machine runs them, are left out
//! everywhere.

use super::advice::unit;
use super::csv::quoted;
use super::json::pretty;
use super::table::{Best, Cell, Table};
use fairhead_core::sched::any::shown;
use fairhead_report::arena::{Map, Maps};
use fairhead_sim::advise::{Fared, factor};
use fairhead_sim::arena::{self, Arena, Summary};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The cells that there are, with their numbers.
type Done<'a> = [(usize, &'a arena::Cell)];

/// A text for people has no more lines of cells.
const CELLS_SHOWN: usize = 12;
/// The width of a text for people.
const WIDTH: usize = 80;

fn done(cells: &[Option<arena::Cell>]) -> Vec<(usize, &arena::Cell)> {
    cells.iter().enumerate().filter_map(|(i, cell)| Some((i, cell.as_ref()?))).collect()
}

/// The regrets of each scheduler, summed up; none if no cell is done.
fn summaries(arena: &Arena, cells: &[(usize, Vec<f64>)]) -> Vec<Summary> {
    let of = |t: usize| Summary::of(cells.iter().map(|(i, regrets)| (*i, regrets[t])));
    (0..arena.tuned.len()).filter_map(of).collect()
}

/// The schedulers, the best first.
fn by_mean(all: &[Summary]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*a].mean.total_cmp(&all[*b].mean));
    order
}

fn regrets(done: &Done<'_>) -> Vec<(usize, Vec<f64>)> {
    done.iter().map(|(i, cell)| (*i, cell.regrets())).collect()
}

/// The name of a scheduler, with the tunables that are set.
fn name(arena: &Arena, tuned: usize) -> String {
    let t = &arena.tuned[tuned];
    format!("{} {}", shown(t.scheduler), t.set).trim_end().to_owned()
}

/// The names of the load and the disk of a cell.
fn names(arena: &Arena, i: usize) -> (&str, &str) {
    let place = arena.place(i);
    (&arena.loads[place.load].file_name, &arena.settings[place.setting].name)
}

/// A row for each scheduler, the best first, then the cells, or the worst of them where there are many.
#[must_use]
pub fn human(arena: &Arena, cells: &[Option<arena::Cell>], coloured: bool) -> String {
    let done = done(cells);
    let regrets = regrets(&done);
    let all = summaries(arena, &regrets);
    let order = by_mean(&all);
    let mut text = format!(
        "{}, {}, {}.\n\
         Regret: the best scheduler's satisfaction over this one's; 1.00 is the best.\n\n",
        counted(arena.loads.len(), "load"),
        counted(arena.settings.len(), "disk"),
        seeds(arena)
    );
    if all.is_empty() {
        return text + "No cell is done.\n";
    }
    text.push_str(&summary_table(arena, &all, &order, done.len()).render(coloured));
    if done.len() <= CELLS_SHOWN {
        text.push_str("\nSatisfaction of the load, 1.00 if all jobs get what they may expect:\n");
        text.push_str(&cell_table(arena, &done, false).render(coloured));
        return text;
    }
    text.push_str("\nWorst cells:\n");
    let width = order.iter().map(|&t| name(arena, t).chars().count()).max().unwrap_or(0);
    for t in order {
        let mut line = format!("{:width$} ", name(arena, t));
        for &(i, regret) in all[t].cells.iter().take_while(|c| c.1 > 1.0) {
            let (load, disk) = names(arena, i);
            let cell = format!(" {load} on {disk} {}", factor(regret));
            if line.chars().count() + cell.chars().count() > WIDTH {
                break;
            }
            line.push_str(&cell);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn seeds(arena: &Arena) -> String {
    match arena.seeds {
        1 => format!("seed {}", arena.seed),
        n => format!("seeds {} to {}", arena.seed, arena.seed.wrapping_add(u64::from(n) - 1)),
    }
}

/// A number as a cell, compared as it is shown.
fn number(text: String, value: f64) -> Cell {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most a million")]
    let value = Some((value * 1000.0).round() as u64);
    Cell { text, value }
}

fn summary_table(arena: &Arena, all: &[Summary], order: &[usize], done: usize) -> Table<'static> {
    let row = |&t: &usize| {
        let s = &all[t];
        let regret = |r: f64| number(factor(r), r);
        #[allow(clippy::cast_precision_loss, reason = "numbers of cells")]
        let best = number(format!("{} of {done}", s.best_in), s.best_in as f64);
        vec![Cell::label(name(arena, t)), regret(s.mean), regret(s.p90), regret(s.worst), best]
    };
    let least = |head| (head, Best::Least);
    Table {
        columns: vec![
            ("scheduler", Best::None),
            least("mean regret"),
            least("p90"),
            least("worst"),
            ("best in", Best::Most),
        ],
        words: 1,
        blocks: vec![order.iter().map(row).collect()],
    }
}

/// A row for each cell: the satisfaction under each scheduler, with the regret behind it if wanted.
fn cell_table<'a>(arena: &'a Arena, done: &Done<'_>, with_regret: bool) -> Table<'a> {
    // It is rows that compete with themselves, not columns.
    let schedulers = arena.tuned.iter().map(|t| (shown(t.scheduler), Best::None));
    let columns = [("load", Best::None), ("disk", Best::None)].into_iter().chain(schedulers).collect();
    let row = |&(i, cell): &(usize, &arena::Cell)| {
        let (load, disk) = names(arena, i);
        let mut row = vec![Cell::label(load), Cell::label(disk)];
        for (u, regret) in cell.satisfactions().into_iter().zip(cell.regrets()) {
            let text = if with_regret { format!("{u:.2} ({})", factor(regret)) } else { format!("{u:.2}") };
            row.push(number(text, u));
        }
        row
    };
    Table { columns, words: 2, blocks: vec![done.iter().map(row).collect()] }
}

/// A line for each job of each cell under each scheduler.
#[must_use]
pub fn csv(arena: &Arena, cells: &[Option<arena::Cell>]) -> String {
    let mut text =
        "load,disk,scheduler,set,satisfaction,regret,job,kind,job_satisfaction,unit,alone,got,cut\n"
            .to_owned();
    for (i, cell) in done(cells) {
        let (load, disk) = names(arena, i);
        let regrets = cell.regrets();
        for (t, u) in cell.satisfactions().into_iter().enumerate() {
            let tuned = &arena.tuned[t];
            let names = [load, disk, shown(tuned.scheduler), &tuned.set].map(quoted).join(",");
            for (j, job) in cell.load.jobs.jobs.iter().enumerate() {
                let fared = cell.book.fared(t, j);
                let kind = cell.load.parties[j].kind;
                let _ = writeln!(
                    text,
                    "{names},{},{},{},{},{},{},{},{},{}",
                    digits(u),
                    digits(regrets[t]),
                    quoted(&job.name),
                    kind.word(),
                    digits(fared.satisfaction),
                    unit(job, kind),
                    digits(cell.alone.jobs[j].amount),
                    digits(fared.amount),
                    u8::from(fared.is_cut)
                );
            }
        }
    }
    text
}

/// A number with six digits.
pub(super) fn digits(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Summaries, and all cells with their jobs.
#[must_use]
pub fn json(arena: &Arena, cells: &[Option<arena::Cell>]) -> String {
    pretty(&object(arena, cells))
}

fn object(arena: &Arena, cells: &[Option<arena::Cell>]) -> Value {
    let done = done(cells);
    let all = summaries(arena, &regrets(&done));
    let scheduler = |(t, s): (usize, &Summary)| {
        let tuned = &arena.tuned[t];
        json!({
            "scheduler": shown(tuned.scheduler),
            "set": tuned.set,
            "mean_regret": digits(s.mean),
            "p90_regret": digits(s.p90),
            "worst_regret": digits(s.worst),
            "best_in": s.best_in,
        })
    };
    let cell = |&(i, cell): &(usize, &arena::Cell)| {
        let (load, disk) = names(arena, i);
        let regrets = cell.regrets();
        let under = |(t, u): (usize, f64)| {
            let tuned = &arena.tuned[t];
            json!({
                "scheduler": shown(tuned.scheduler),
                "set": tuned.set,
                "satisfaction": digits(u),
                "regret": digits(regrets[t]),
                "jobs": (0..cell.load.parties.len()).map(|j| fared(cell, j, &cell.book.fared(t, j))).collect::<Vec<_>>(),
            })
        };
        json!({
            "load": load,
            "disk": disk,
            "span_ns": cell.load.span.as_ns(),
            "jobs": (0..cell.load.parties.len()).map(|j| party(cell, j)).collect::<Vec<_>>(),
            "schedulers": cell.satisfactions().into_iter().enumerate().map(under).collect::<Vec<_>>(),
        })
    };
    json!({
        "fairhead version": env!("CARGO_PKG_VERSION"),
        "seed": arena.seed,
        "seeds": arena.seeds,
        "cells_done": done.len(),
        "cells_of_all": cells.len(),
        "schedulers": all.iter().enumerate().map(scheduler).collect::<Vec<_>>(),
        "cells": done.iter().map(cell).collect::<Vec<_>>(),
    })
}

/// What a job is, and what it gets alone.
fn party(cell: &arena::Cell, j: usize) -> Value {
    let (job, party) = (&cell.load.jobs.jobs[j], &cell.load.parties[j]);
    json!({
        "job": job.name,
        "kind": party.kind.word(),
        "weight": digits(party.weight),
        "share": digits(party.share),
        "unit": unit(job, party.kind),
        "alone": digits(cell.alone.jobs[j].amount),
    })
}

/// What a job got.
fn fared(cell: &arena::Cell, j: usize, fared: &Fared) -> Value {
    json!({
        "job": cell.load.jobs.jobs[j].name,
        "satisfaction": digits(fared.satisfaction),
        "got": digits(fared.amount),
        "is_cut_off": fared.is_cut,
    })
}

/// The page: a heat map for each scheduler.
#[must_use]
pub fn page(arena: &Arena, cells: &[Option<arena::Cell>], command: &str) -> Maps {
    let done = done(cells);
    let regrets = regrets(&done);
    let all = summaries(arena, &regrets);
    let order = by_mean(&all);
    let map = |&t: &usize| {
        let of = |i: usize| regrets.iter().find(|r| r.0 == i).map(|r| r.1[t]);
        let row = |l: usize| (0..arena.settings.len()).map(|s| of(s * arena.loads.len() + l)).collect();
        Map { scheduler: name(arena, t), regrets: (0..arena.loads.len()).map(row).collect() }
    };
    let undone = cells.len() - done.len();
    let note = format!("{undone} of {} cells are not done and are missing here.", cells.len());
    let title = format!(
        "Arena: {}, {}, {}",
        counted(arena.loads.len(), "load"),
        counted(arena.settings.len(), "disk"),
        seeds(arena)
    );
    Maps {
        title,
        loads: arena.loads.iter().map(|l| l.file_name.clone()).collect(),
        disks: arena.settings.iter().map(|s| s.name.clone()).collect(),
        maps: order.iter().map(map).collect(),
        summary: summary_table(arena, &all, &order, done.len()).for_page("Regret over all cells"),
        cells: cell_table(arena, &done, true).for_page("Satisfaction, and regret in brackets"),
        notes: (undone > 0).then_some(note).into_iter().collect(),
        made: vec![
            ("command", command.to_owned()),
            ("Fairhead", env!("CARGO_PKG_VERSION").to_owned()),
            ("seeds", seeds(arena)),
        ],
        figures: object(arena, cells),
    }
}
