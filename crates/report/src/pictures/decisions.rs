//! Draws which client was served at which time, in a lane for each client: thick while the disk worked for
//! it, dashed while it idled for it.
//!
//! The page's script zooms into all pictures over time, and reads from [`data`] which turn is under the
//! pointer and why it was chosen.

use super::Section;
use crate::recording::Turn;
use crate::runs::{Runs, Shown};
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, Frame, Picture};
use crate::table::{Cell, Table};
use crate::words::{count, real, time};
use fairhead_core::{Duration, Reason};
use fairhead_sim::why::words;
use serde_json::{Value, json};
use std::fmt::Write as _;

const LANE: u32 = 15;
const NAME_MAX: usize = 15;
/// The largest width of a picture, in pixels: anything shorter than one of these would be faint.
const PIXELS: f64 = 1100.0;

/// Makes a picture for each scheduler.
pub(super) fn section(runs: &Runs<'_>) -> Section {
    let lanes = used_lanes(runs);
    Section {
        id: "decisions",
        title: "Decision by decision",
        about: "A lane for each client: thick while the disk worked for it, dashed while it idled for it; never thinner than a pixel. Point at a turn to read why it \
                was chosen. Turns of one client join when less than the grain, told below each picture, lies between them; fairhead run --timeline has every one."
            .to_owned(),
        keys: Vec::new(),
        pictures: runs.shown.iter().map(|s| picture(runs, s, &lanes)).collect(),
    }
}

/// Returns the lanes that were used under any scheduler, by their numbers in the recordings.
fn used_lanes(runs: &Runs<'_>) -> Vec<usize> {
    let mut lanes: Vec<usize> =
        runs.shown.iter().flat_map(|s| s.recording.turns.all()).map(|t| t.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

fn picture(runs: &Runs<'_>, s: &Shown<'_>, lanes: &[usize]) -> Picture {
    let span = runs.longest_ns();
    let turns = &s.recording.turns;
    let names = s.recording.participants.lanes();
    let height = u32::try_from(lanes.len()).unwrap_or(0) * LANE;
    let wide = span / real(turns.grain_ns);
    let frame = Frame { left: 106, ..Frame::axes(height.max(LANE)) };
    let mut canvas = Canvas::new(frame, (wide, f64::from(height.max(LANE))));
    canvas.bottom_axis(&Scale::linear(0.0, span, Unit::Time));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, positive")]
    canvas.set_span(span as u64);
    for (place, &lane) in (0u32..).zip(lanes) {
        let y = f64::from(place * LANE) + f64::from(LANE) / 2.0;
        let (name, look) = &names[lane];
        canvas.margin_text(y, name, NAME_MAX);
        let of = |is_idle: bool| turns.all().iter().filter(move |t| t.lane == lane && t.is_idle == is_idle);
        canvas.path(&format!("i i{}", crate::svg::class(*look)), &stretches(of(true), y, turns.grain_ns));
        canvas.path(&format!("t t{}", crate::svg::class(*look)), &stretches(of(false), y, turns.grain_ns));
        let is_thin = |t: &&Turn| real(t.to - t.from) < span / PIXELS;
        canvas.path(
            &format!("h1 t{}", crate::svg::class(*look)),
            &ticks(of(false).filter(is_thin), y, turns.grain_ns),
        );
    }
    let about = format!(
        "Turns: {}, of {} requests; grain {}.",
        count(turns.all().iter().filter(|t| !t.is_idle).count() as u64),
        count(turns.all().iter().filter(|t| !t.is_idle).map(|t| t.count).sum()),
        time(Duration::from_ns(turns.grain_ns))
    );
    let title = format!("Turns under {}", s.name());
    let table = table(s, lanes, &format!("{title}: {about}"));
    canvas.finish(format!("decisions-{}", s.stem), title, about).with_table(table).wide()
}

fn stretches<'t>(turns: impl Iterator<Item = &'t Turn>, y: f64, grain: u64) -> String {
    let mut d = String::new();
    let (mut at, grain) = (0.0, real(grain));
    for t in turns {
        let (from, to) = (real(t.from) / grain, real(t.to) / grain);
        let long = (to - from).max(0.1);
        let start = if d.is_empty() {
            format!("M{} {}", crate::svg::short(from), crate::svg::short(y))
        } else {
            format!("m{} 0", crate::svg::short(from - at))
        };
        let _ = write!(d, "{start}h{}", crate::svg::short(long));
        // The written value is rounded, so continue from there.
        let round = |v: f64| (v * 10.0).round() / 10.0;
        at = if at == 0.0 && d.starts_with(&start) { round(from) } else { at + round(from - at) }
            + round(long);
    }
    d
}

/// Returns marks that stay a pixel wide, for stretches that are too short to be visible.
fn ticks<'t>(turns: impl Iterator<Item = &'t Turn>, y: f64, grain: u64) -> String {
    let mut d = String::new();
    for t in turns {
        let _ =
            write!(d, "M{} {}v9", crate::svg::short(real(t.from) / real(grain)), crate::svg::short(y - 4.5));
    }
    d
}

/// Returns the reasons of each lane, the most frequent first.
fn table(s: &Shown<'_>, lanes: &[usize], title: &str) -> Table {
    let names = s.recording.participants.lanes();
    let row = |&lane: &usize| {
        let mine = || s.recording.turns.all().iter().filter(move |t| t.lane == lane && !t.is_idle);
        let mut reasons: Vec<(Reason, u64)> = Vec::new();
        for &(reason, n) in mine().flat_map(|t| &t.reasons).filter(|r| r.1 > 0) {
            match reasons.iter_mut().find(|r| r.0 == reason) {
                Some(known) => known.1 += n,
                None => reasons.push((reason, n)),
            }
        }
        reasons.sort_by_key(|r| std::cmp::Reverse(r.1));
        let each = reasons.iter().take(3).map(|(r, n)| format!("{} ({})", words(*r), count(*n)));
        let ns: u64 = mine().map(|t| t.ns).sum();
        vec![
            Cell::label(&names[lane].0),
            Cell::label(each.collect::<Vec<_>>().join(", ")),
            Cell::number(count(mine().map(|t| t.count).sum()), mine().map(|t| t.count).sum()),
            Cell::number(time(Duration::from_ns(ns)), ns),
        ]
    };
    let columns = ["client", "its requests were chosen", "requests", "in the device"];
    Table::new(title, 2, &columns, lanes.iter().map(row).collect())
}

/// Returns the data of the turns for the script, by picture: lanes, the grain, the words, and for each turn
/// its lane, begin and length in nanoseconds, whether it is idling, the count, and the reasons.
pub(crate) fn data(runs: &Runs<'_>) -> Value {
    let lanes = used_lanes(runs);
    let mut known: Vec<Reason> = Vec::new();
    let mut of = serde_json::Map::new();
    for s in &runs.shown {
        let turns: Vec<Value> = s.recording.turns.all().iter().map(|t| turn(t, &lanes, &mut known)).collect();
        of.insert(format!("decisions-{}", s.stem), Value::Array(turns));
    }
    let names = runs.shown.first().map(|s| s.recording.participants.lanes()).unwrap_or_default();
    json!({
        "lanes": lanes.iter().map(|&l| names[l].0.as_str()).collect::<Vec<_>>(),
        "reasons": known.iter().map(|r| words(*r)).collect::<Vec<_>>(),
        "turns": of,
    })
}

fn turn(t: &Turn, lanes: &[usize], known: &mut Vec<Reason>) -> Value {
    let place = lanes.iter().position(|&l| l == t.lane).unwrap_or(0);
    let us = |ns: u64| ns / 1000;
    let mut all = vec![
        json!(place),
        json!(us(t.from)),
        json!(us(t.to - t.from)),
        json!(u8::from(t.is_idle)),
        json!(t.count),
    ];
    for &(reason, n) in t.reasons.iter().filter(|r| r.1 > 0) {
        let i = known.iter().position(|r| *r == reason).unwrap_or_else(|| {
            known.push(reason);
            known.len() - 1
        });
        all.extend([json!(i), json!(n)]);
    }
    Value::Array(all)
}
