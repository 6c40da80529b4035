//! Draws how long the disk was kept idle on purpose, and why.

use super::{Section, bars};
use crate::recording::Idled;
use crate::runs::{Runs, Shown};
use crate::svg::Key;
use crate::table::{Cell, Table};
use crate::words::{count, share, time};
use fairhead_core::{Duration, Hold, Reason};
use fairhead_sim::why::words;

/// Makes one picture of all schedulers that idled.
pub(super) fn section(runs: &Runs<'_>) -> Section {
    let mut all: Vec<(usize, Idled)> = Vec::new();
    for (run, s) in runs.shown.iter().enumerate() {
        let mut idled = s.recording.idled.clone();
        idled.sort_by_key(|i| std::cmp::Reverse(i.time));
        all.extend(idled.into_iter().map(|i| (run, i)));
    }
    let never: Vec<String> =
        runs.shown.iter().filter(|s| s.recording.idled.is_empty()).map(Shown::name).collect();
    let mut about = "Requests waited, the disk had nothing to do, and the scheduler kept it so because it expected a better one. A bar is a part of the run's \
                     time."
        .to_owned();
    if !never.is_empty() {
        about.push_str(&format!(" Never: {}.", never.join(", ")));
    }
    let pictures = vec![picture(runs, &all)];
    Section { id: "idle", title: "Idle on purpose, by reason", about, keys: idle_keys(runs), pictures }
}

/// Returns the keys of the schedulers that idled.
fn idle_keys(runs: &Runs<'_>) -> Vec<Key> {
    let all = runs.keys().into_iter().zip(&runs.shown);
    all.filter(|(_, s)| !s.recording.idled.is_empty()).map(|(key, _)| key).collect()
}

fn why(i: &Idled) -> &'static str {
    match (i.hold, i.reason) {
        (Hold::IdleClass, _) => "only the idle class had requests",
        (_, Reason::None) => "the next request was awaited",
        (_, reason) => words(reason),
    }
}

fn picture(runs: &Runs<'_>, all: &[(usize, Idled)]) -> crate::svg::Picture {
    let whole = |run: usize| runs.shown[run].outcome.elapsed.as_ns() * runs.shown[run].recording.members;
    let part =
        |run: usize, t: Duration| crate::words::real(t.as_ns()) / crate::words::real(whole(run).max(1));
    let rows: Vec<bars::Row> = all
        .iter()
        .map(|(run, i)| bars::Row {
            look: runs.shown[*run].look,
            sign: Runs::sign(*run),
            label: why(i).to_owned(),
            value: format!("{}, {}", time(i.time), share(i.time.as_ns(), whole(*run))),
            part: part(*run, i.time),
            interval: None,
        })
        .collect();
    let cells = all.iter().map(|(run, i)| {
        vec![
            Cell::label(runs.shown[*run].name()),
            Cell::label(why(i)),
            Cell::number(time(i.time), i.time.as_ns()),
            Cell::label(share(i.time.as_ns(), whole(*run))),
            Cell::number(count(i.times), i.times),
        ]
    });
    let title = "Idle on purpose (a full bar: the whole run)".to_owned();
    let columns = ["scheduler", "why", "time", "share", "times"];
    let table = Table::new(title.clone(), 2, &columns, cells.collect());
    let each = all.iter().map(|(run, i)| {
        format!("{}: {} {}", runs.shown[*run].names[0], why(i), share(i.time.as_ns(), whole(*run)))
    });
    let about = each.collect::<Vec<_>>().join("; ");
    bars::draw(&rows).finish("idle".to_owned(), title, about).with_table(table).with_keys(idle_keys(runs))
}
