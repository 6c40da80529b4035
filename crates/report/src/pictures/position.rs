//! Draws where on the disk requests were, over time, like seekwatcher.

use super::Section;
use super::flow::client_keys;
use crate::recording::SECTOR;
use crate::runs::{Runs, Shown};
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, Frame, Key, Picture};
use crate::table::{Cell, Table};
use crate::words::{count, real, time};
use fairhead_core::Duration;
use std::fmt::Write as _;

const HEIGHT: u32 = 230;

/// Makes a picture for each scheduler.
pub(super) fn section(runs: &Runs<'_>) -> Section {
    let keys = client_keys(runs);
    let low = runs.shown.iter().map(|s| s.recording.cells.sectors().0).min().unwrap_or(0);
    let high = runs.shown.iter().map(|s| s.recording.cells.sectors().1).max().unwrap_or(0);
    let left = Scale::linear(real(low * SECTOR), real(high * SECTOR), Unit::Bytes);
    Section {
        id: "position",
        title: "Where on the disk",
        about: "A dot is a stretch of the disk and of time in which the device began a request of a client; below each picture is how large. Flat lines are \
                streams; the more a picture looks like rain, the more the head moves."
            .to_owned(),
        pictures: runs.shown.iter().map(|s| picture(runs, s, &keys, &left)).collect(),
        keys,
    }
}

fn picture(runs: &Runs<'_>, s: &Shown<'_>, keys: &[Key], left: &Scale) -> Picture {
    let cells = &s.recording.cells;
    let span = runs.longest_ns();
    let wide = span / real(cells.time_ns());
    let (first, last) = left.range();
    let up = (last - first) / real(cells.height() * SECTOR);
    let mut canvas = Canvas::new(Frame::axes(HEIGHT), (wide, up));
    canvas.left_axis(left);
    canvas.bottom_axis(&Scale::linear(0.0, span, Unit::Time));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, positive")]
    canvas.set_span(span as u64);
    let base = first / real(cells.height() * SECTOR);
    for k in keys {
        canvas.path(
            &format!("m m{}", crate::svg::class(k.look)),
            &dots(s, k.look, |row| up - (row - base) - 0.5),
        );
    }
    for (i, k) in keys.iter().enumerate() {
        let mine: Vec<_> = cells.all().iter().filter(|c| c.who == k.look).collect();
        // The badge is at a cell and time of its own, so that badges do not overlap.
        let end = mine.iter().map(|c| c.column).max().unwrap_or(0);
        let wanted = end * (2 * i as u64 + 1) / (2 * keys.len() as u64);
        if let Some(c) = mine.iter().min_by_key(|c| (c.column.abs_diff(wanted), c.row)) {
            let y = (up - (real(c.row) - base) - 0.5) / up;
            canvas.badge(k.look, &k.sign, (real(c.column) + 0.5) / wide, y);
        }
    }
    let grain = format!(
        "{} by {}",
        time(Duration::from_ns(cells.time_ns())),
        crate::scale::about_bytes(real(cells.height() * SECTOR))
    );
    let about = format!(
        "{} requests in {} dots of {grain}.",
        count(s.recording.requests),
        count(cells.all().len() as u64)
    );
    let rows = keys.iter().map(|k| ranges(s, k));
    let title = format!("Positions under {}", s.name());
    let columns = ["client", "from", "to", "dots"];
    let table = Table::new(format!("{title}: {about}"), 1, &columns, rows.collect());
    canvas.finish(format!("position-{}", s.stem), title, about).with_table(table)
}

/// Returns a client's cells; cells that follow each other in time become one line.
fn dots(s: &Shown<'_>, who: usize, y: impl Fn(f64) -> f64) -> String {
    let mut d = String::new();
    let mut open: Option<(u64, u64, u64)> = None;
    let mut flush = |line: Option<(u64, u64, u64)>| {
        if let Some((row, from, to)) = line {
            let _ = write!(d, "M{from}.5 {}h{}", crate::svg::short(y(real(row))), to - from);
        }
    };
    for c in s.recording.cells.all().iter().filter(|c| c.who == who) {
        match &mut open {
            Some((row, _, to)) if *row == c.row && *to + 1 == c.column => *to = c.column,
            _ => flush(open.replace((c.row, c.column, c.column))),
        }
    }
    flush(open);
    d
}

/// Returns the range of places of a client.
fn ranges(s: &Shown<'_>, k: &Key) -> Vec<Cell> {
    let cells = &s.recording.cells;
    let rows = || cells.all().iter().filter(|c| c.who == k.look).map(|c| c.row);
    let at = |row: Option<u64>| {
        row.map_or_else(Cell::default, |r| {
            let bytes = r * cells.height() * SECTOR;
            Cell::number(crate::scale::about_bytes(real(bytes)), bytes)
        })
    };
    let dots = rows().count() as u64;
    vec![
        Cell::label(&k.name),
        at(rows().min()),
        at(rows().max().map(|r| r + 1)),
        Cell::number(count(dots), dots),
    ]
}
