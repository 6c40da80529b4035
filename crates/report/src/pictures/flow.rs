//! Draws what the disk did over time: the bytes it moved for each client, and the client that it spent its
//! time on.

use super::Section;
use crate::recording::Flow;
use crate::runs::{Runs, Shown};
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, Frame, Key, Picture, short};
use crate::table::{Cell, Table};
use crate::words::{mib, real, share, time};
use fairhead_core::Duration;
use fairhead_sim::metrics::rate;
use std::fmt::Write as _;

const HEIGHT: u32 = 170;
/// The most intervals in a picture.
const INTERVALS: usize = 120;

/// Returns the flow of each run, with intervals of the same width for all.
fn flows(runs: &Runs<'_>) -> Vec<Flow> {
    let mut flows: Vec<Flow> = runs.shown.iter().map(|s| s.recording.flow.clone()).collect();
    loop {
        let widest = flows.iter().map(|f| f.width_ns).max().unwrap_or(0);
        let is_long = flows.iter().any(|f| f.width_ns == widest && f.len() > INTERVALS);
        let wanted = if is_long { widest * 2 } else { widest };
        if flows.iter().all(|f| f.width_ns == wanted) {
            return flows;
        }
        flows.iter_mut().filter(|f| f.width_ns < wanted).for_each(Flow::coarsen);
    }
}

/// Returns the keys of the clients that used the disk under any scheduler.
pub(super) fn client_keys(runs: &Runs<'_>) -> Vec<Key> {
    let Some(first) = runs.shown.first() else { return Vec::new() };
    let participants = &first.recording.participants;
    let is_there = |who: &usize| {
        *who < participants.names.len()
            || runs.shown.iter().any(|s| s.recording.flow.bytes(*who).any(|b| b > 0))
    };
    (0..participants.count()).filter(is_there).map(|who| participants.key(who)).collect()
}

/// Makes the pictures of bytes over time.
pub(super) fn throughput(runs: &Runs<'_>) -> Section {
    let flows = flows(runs);
    let keys = client_keys(runs);
    let width = flows.first().map_or(0, |f| f.width_ns);
    let all = || runs.shown.iter().zip(&flows);
    let most = all().flat_map(|(s, f)| keys.iter().flat_map(move |k| rates(s, f, k.look))).max();
    let left = Scale::up_to_a_tick(real(most.unwrap_or(0).max(1)), Unit::Rate);
    let picture = |(s, f): (&Shown<'_>, &Flow)| bytes_over_time(runs, s, f, &keys, &left);
    Section {
        id: "throughput",
        title: "What the disk moved, for whom",
        about: format!(
            "MiB/s at the disk over time, in intervals of {}. What comes from memory is not counted; what is read ahead counts when it is read, \
             for whom it is read.",
            time(Duration::from_ns(width))
        ),
        pictures: all().map(picture).collect(),
        keys,
    }
}

/// Returns a client's rate in each interval. The last interval may be shorter; one of which there is less
/// than a quarter is left out, because a rate over a sliver says nothing.
fn rates(s: &Shown<'_>, flow: &Flow, look: usize) -> Vec<u64> {
    let long = |x: usize| flow.length_ns(x, s.outcome.elapsed);
    let is_sliver = |x: usize| long(x) * 4 < flow.width_ns;
    let shown = flow.len() - usize::from(flow.len() > 1 && is_sliver(flow.len() - 1));
    let of = |(x, bytes)| rate(bytes, Duration::from_ns(long(x)));
    flow.bytes(look).take(shown).enumerate().map(of).collect()
}

fn bytes_over_time(runs: &Runs<'_>, s: &Shown<'_>, flow: &Flow, keys: &[Key], left: &Scale) -> Picture {
    let span = runs.longest_ns();
    let wide = span / real(flow.width_ns);
    let mut canvas = Canvas::new(Frame::axes(HEIGHT), (wide, f64::from(HEIGHT)));
    axes(&mut canvas, left, span);
    let height = f64::from(HEIGHT);
    let long = |x: usize| flow.length_ns(x, s.outcome.elapsed);
    let y = |rate: u64| height * (1.0 - left.at(real(rate)));
    for (i, k) in keys.iter().enumerate() {
        let mut d = String::new();
        let points = rates(s, flow, k.look);
        for (x, &rate) in points.iter().enumerate() {
            let step = if x == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{step}{x} {}h{}", short(y(rate)), part(long(x), flow.width_ns));
        }
        canvas.path(&format!("l l{}", crate::svg::class(k.look)), &d);
        let at = spread(i, keys.len(), points.len());
        if let Some(&rate) = points.get(at).filter(|_| points.iter().any(|b| *b > 0)) {
            canvas.badge(k.look, &k.sign, (real(at as u64) + 0.5) / wide, y(rate) / height);
        }
    }
    let elapsed = s.outcome.elapsed;
    let sums: Vec<(String, u64)> =
        keys.iter().map(|k| (k.name.clone(), flow.bytes(k.look).sum::<u64>())).collect();
    let each = sums.iter().map(|(name, b)| format!("{name} {} MiB/s", mib(rate(*b, elapsed))));
    let about = format!("Over the whole run: {}.", each.collect::<Vec<_>>().join(", "));
    let rows = sums.iter().map(|(name, bytes)| {
        let per_s = rate(*bytes, elapsed);
        vec![Cell::label(name), Cell::number(mib(per_s), per_s), Cell::number(bytes.to_string(), *bytes)]
    });
    let title = format!("Throughput under {}", s.name());
    let table = Table::new(title.clone(), 1, &["client", "MiB/s at the disk", "bytes"], rows.collect());
    canvas.finish(format!("throughput-{}", s.stem), title, about).with_table(table)
}

/// Returns the part of an interval that a time fills, as text.
fn part(long: u64, width: u64) -> String {
    if long >= width { "1".to_owned() } else { format!("{:.3}", real(long) / real(width)) }
}

/// Returns the `i`th of `count` places in a line of `len` points, so that the badges of lines at one height
/// do not overlap.
fn spread(i: usize, count: usize, len: usize) -> usize {
    (2 * i + 1) * len / (2 * count.max(1))
}

fn axes(canvas: &mut Canvas, left: &Scale, span: f64) {
    canvas.left_axis(left);
    canvas.bottom_axis(&Scale::linear(0.0, span, Unit::Time));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time, positive")]
    canvas.set_span(span as u64);
}

/// Makes the pictures of the disk's time by client.
pub(super) fn disk_time(runs: &Runs<'_>) -> Section {
    let flows = flows(runs);
    let keys = client_keys(runs);
    let width = flows.first().map_or(0, |f| f.width_ns);
    let beside = if runs.shown.iter().all(|s| s.recording.is_rotational) {
        ""
    } else {
        " A flash drive works on many requests at once: a stretch is given to the one that ended it."
    };
    Section {
        id: "disk-time",
        title: "Whose the disk's time was",
        about: format!(
            "Of each interval of {}, the part in which the disk worked for a client, in the order of the key from below; above them, striped, what it idled \
             on purpose. Blank: the disk had nothing to do.{beside}",
            time(Duration::from_ns(width))
        ),
        pictures: runs.shown.iter().zip(&flows).map(|(s, f)| time_of_disk(runs, s, f, &keys)).collect(),
        keys,
    }
}

fn time_of_disk(runs: &Runs<'_>, s: &Shown<'_>, flow: &Flow, keys: &[Key]) -> Picture {
    let span = runs.longest_ns();
    let wide = span / real(flow.width_ns);
    let height = f64::from(HEIGHT);
    let mut canvas = Canvas::new(Frame::axes(HEIGHT), (wide, height));
    axes(&mut canvas, &Scale::linear(0.0, 100.0, Unit::Percent), span);
    let long = |x: usize| flow.length_ns(x, s.outcome.elapsed);
    let whole = |x: usize| real(long(x) * s.recording.members);
    let last = part(long(flow.len().saturating_sub(1)), flow.width_ns);
    let mut below = vec![0.0; flow.len()];
    let mut widest: Vec<(usize, f64, f64)> = Vec::new();
    let layers =
        keys.iter().map(|k| (format!("f{} a", crate::svg::class(k.look)), flow.busy_ns(k.look).collect()));
    let idle: (String, Vec<u64>) = ("idle a".to_owned(), flow.idled_ns().collect());
    for (class, ns) in layers.chain([idle]) {
        let parts: Vec<f64> = ns.iter().enumerate().map(|(x, n)| real(*n) / whole(x)).collect();
        canvas.path(&class, &band(&below, &parts, &last, height));
        // The last interval may be a sliver, whose middle is past the end.
        let even = parts.len().saturating_sub(1).max(1);
        let best = parts.iter().zip(&below).take(even).enumerate().max_by(|a, b| a.1.0.total_cmp(b.1.0));
        widest.push(best.map_or((0, 0.0, 0.0), |(x, (part, from))| (x, *part, from + part / 2.0)));
        below.iter_mut().zip(&parts).for_each(|(b, p)| *b += p);
    }
    for (k, &(x, part, middle)) in keys.iter().zip(&widest) {
        if part * height > 16.0 {
            canvas.badge(k.look, &k.sign, (real(x as u64) + 0.5) / wide, 1.0 - middle.min(1.0));
        }
    }
    let all = s.outcome.elapsed.as_ns() * s.recording.members;
    let mut sums: Vec<(String, u64)> =
        keys.iter().map(|k| (k.name.clone(), flow.busy_ns(k.look).sum())).collect();
    sums.push(("idled on purpose".to_owned(), flow.idled_ns().sum()));
    let used: u64 = sums.iter().map(|s| s.1).sum();
    sums.push(("nothing to do".to_owned(), all.saturating_sub(used)));
    let each = sums.iter().map(|(name, ns)| format!("{name} {}", share(*ns, all)));
    let about = format!("Over the whole run: {}.", each.collect::<Vec<_>>().join(", "));
    let rows = sums.iter().map(|(name, ns)| {
        let shown = time(Duration::from_ns(*ns));
        vec![Cell::label(name), Cell::number(shown, *ns), Cell::label(share(*ns, all))]
    });
    let title = format!("The disk's time under {}", s.name());
    let table = Table::new(title.clone(), 1, &["who", "time", "share"], rows.collect());
    canvas.finish(format!("disk-time-{}", s.stem), title, about).with_table(table)
}

/// Returns a band, in steps: its lower edge is `below`, its height `parts`.
fn band(below: &[f64], parts: &[f64], last: &str, height: f64) -> String {
    if parts.iter().all(|p| *p <= 0.0) {
        return String::new();
    }
    let y = |part: f64| short(height * (1.0 - part.min(1.0)));
    let mut d = String::new();
    let step = |x: usize| if x + 1 == below.len() { last } else { "1" };
    for (x, (from, part)) in below.iter().zip(parts).enumerate() {
        let _ = write!(d, "{}{x} {}h{}", if x == 0 { 'M' } else { 'L' }, y(from + part), step(x));
    }
    for (x, from) in below.iter().enumerate().rev() {
        let _ = write!(d, "V{}h-{}", y(*from), step(x));
    }
    d.push('z');
    d
}
