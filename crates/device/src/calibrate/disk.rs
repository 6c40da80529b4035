//! The steps for a hard disk, in their order, and what they come to.

use super::cache::{self, Hits};
use super::drive::{Bench, median, spread};
use super::file::{Findings, quoted, rate, sectors, short_time, time};
use super::fit::Curve;
use super::identify::Basics;
use super::rotation::Turn;
use super::seeks::{self, Point};
use super::zones::{self, Map, Pace, Profile};
use super::{Confidence, Fitted, Options, Refusal};
use crate::params::DeviceParams;
use fairhead_core::units::Duration;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Effort {
    samples: usize,
    distances: usize,
    places: usize,
}

const FULL: Effort = Effort { samples: 60, distances: 22, places: 3 };
const LEAST: Effort = Effort { samples: 16, distances: 10, places: 1 };
/// The share of delayed hits above which another program must be using the disk.
const HELD_UP_MOST: f64 = 0.05;
/// Timing noise that is worth a word, ns.
const NOISY: f64 = 60_000.0;
/// Tracks of a profile.
const TRACKS: f64 = 8.0;

impl Effort {
    /// What it takes, ns: reads of mechanics dominate.
    fn cost(self, turn: f64, access: f64) -> f64 {
        let profile = (TRACKS + 3.0) * 1.12 * turn + access;
        let zones = (self.samples as f64 * 2.2) * profile;
        let seeks = (self.distances * self.places) as f64 * 14.0 * 2.1 * access;
        // Large buffers take longer to fill.
        let cache = 1500.0 * access;
        let rest = 800.0 * access;
        zones + seeks + cache + rest
    }

    /// As much as fits into the time that is left.
    fn within(left: Option<Duration>, turn: f64, access: f64) -> Result<Self, Refusal> {
        let Some(left) = left else { return Ok(FULL) };
        let left = left.as_ns() as f64;
        let shrink = |s: f64| Self {
            samples: LEAST.samples + ((FULL.samples - LEAST.samples) as f64 * s) as usize,
            distances: LEAST.distances + ((FULL.distances - LEAST.distances) as f64 * s) as usize,
            places: LEAST.places + ((FULL.places - LEAST.places) as f64 * s) as usize,
        };
        let fits = (0..=20).rev().map(|i| shrink(f64::from(i) / 20.0)).find(|e| e.cost(turn, access) <= left);
        fits.ok_or_else(|| {
            Refusal::TooShort(format!(
                "{:.0} s are left for the least that is needed on this disk, {:.0} s",
                left / 1e9,
                LEAST.cost(turn, access) / 1e9
            ))
        })
    }
}

/// Overhead and bus, from what is in the buffer.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// Overhead alone, ns.
    hit: f64,
    /// A sector on the bus, ns.
    per_sector: f64,
    /// Of the smallest hits.
    spread: f64,
    sizes: usize,
}

impl Interface {
    /// Hardly longer than a hit, ns.
    fn quick(&self, granule: u64, turn: f64) -> f64 {
        let one = self.hit + granule as f64 * self.per_sector;
        (1.3 * one + 4.0 * self.spread.min(one) + 30_000.0).min(turn / 3.0)
    }
}

/// Step 1: the same sectors again, in several sizes.
fn interface(b: &mut Bench<'_>, basics: &Basics, turn: f64) -> Result<Interface, Refusal> {
    let at = b.fresh() / b.granule * b.granule;
    b.read(at, b.most)?;
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut first = Vec::new();
    let mut n = b.granule;
    while n <= b.most {
        let mut took = Vec::new();
        for _ in 0..9 {
            took.push(b.read(at, n)?.took());
        }
        if n == b.granule {
            first.clone_from(&took);
        }
        // Beyond what a segment holds it is not a hit: nearly a revolution.
        if median(&took) < 0.6 * turn {
            points.push((n as f64, median(&took)));
        }
        n *= 2;
    }
    if points.len() < 2 {
        return Ok(Interface { hit: basics.again.min(0.6 * turn), per_sector: 0.0, spread: 0.0, sizes: 0 });
    }
    let k = points.len() as f64;
    let (sx, sy) = points.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    let (sxx, sxy) = points.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0 * p.0, s.1 + p.0 * p.1));
    let slope = ((k * sxy - sx * sy) / (k * sxx - sx * sx)).max(0.0);
    Ok(Interface {
        hit: ((sy - slope * sx) / k).max(0.0),
        per_sector: slope,
        spread: spread(&first),
        sizes: points.len(),
    })
}

/// What the mechanics came to.
struct Mechanics {
    map: Map,
    profiles: Vec<Profile>,
    points: Vec<Point>,
    curve: Curve,
    /// Overhead of a miss, all of the path in it, ns; and whether it was measured without a seek.
    overhead: f64,
    overhead_alone: bool,
    /// What passes while the head waits is kept.
    arrival: bool,
    skew: f64,
}

/// Steps 3 to 5.
fn mechanics(b: &mut Bench<'_>, effort: Effort, turn: &Turn, io: &Interface) -> Result<Mechanics, Refusal> {
    b.step("zones and skew");
    let granule = b.granule as f64;
    let pace = Pace {
        turn: turn.ns,
        hit: io.hit + granule * io.per_sector,
        per_sector: io.per_sector,
        tracks: TRACKS,
    };
    let profiles = zones::survey(b, &pace, effort.samples)?;
    let fine = (b.sectors / 1500).max(profiles[0].spt * 20);
    let zones = zones::borders(b, &pace, &profiles, fine)?;
    let skew = median(&profiles.iter().map(|p| p.skew).collect::<Vec<_>>());
    let map = Map { zones, turn: turn.ns };
    b.step("seeks");
    let fine = (turn.jitter / 4.0).clamp(3000.0, 40_000.0);
    let tail = tail(b.granule, io.per_sector);
    let mut points = Vec::new();
    let quick = io.quick(b.granule, turn.ns);
    let all = seeks::distances(map.tracks(), effort.distances);
    for i in 0..effort.places {
        for (k, &d) in all.iter().enumerate() {
            if let Some(p) = seeks::measure(b, &map, d, (i + k) % 2 == 0, fine, quick)? {
                points.push(Point { least: p.least - tail, ..p });
            }
        }
    }
    if points.len() * 3 < all.len() * effort.places * 2 {
        return Err(Refusal::Inconsistent(format!(
            "only {} of {} seeks could be timed: the sectors do not come by when they should; another program is using the disk, or its \
             layout is not one of zones and tracks",
            points.len(),
            all.len() * effort.places
        )));
    }
    let least = points.iter().map(|p| p.least).fold(turn.ns, f64::min) + tail;
    let arrival = seeks::reads_on_arrival(b, quick)?;
    // What passes by would be in the buffer.
    let end =
        if arrival { None } else { seeks::without_seek(b, &map, fine, 1.05 * least)? }.map(|t| t - tail);
    let (curve, overhead, overhead_alone) = curve(&points, end, io, skew)?;
    Ok(Mechanics { map, profiles, points, curve, overhead, overhead_alone, arrival, skew })
}

/// What of a read crosses the bus after the media are done.
fn tail(sectors: u64, per_sector: f64) -> f64 {
    sectors.min(8) as f64 * per_sector
}

/// Step 5: the curve, and what of the times is not seek.
fn curve(
    points: &[Point],
    end: Option<f64>,
    io: &Interface,
    skew: f64,
) -> Result<(Curve, f64, bool), Refusal> {
    let none = || {
        Refusal::Inconsistent(
            "the seek times do not grow with distance as those of an arm do: not one disk, or one that other programs use".to_owned(),
        )
    };
    let seeks_over = |overhead: f64| -> Vec<Point> {
        points.iter().map(|p| Point { least: (p.least - overhead).max(1.0), ..*p }).collect()
    };
    if let Some(overhead) = end.filter(|e| *e > 0.5 * io.hit)
        && let Some(c) = Curve::through(&seeks_over(overhead))
        && c.a > 0.4 * skew
    {
        return Ok((c, overhead, true));
    }
    // The shortest seek takes as long as the skew allows, in drives that are well formatted.
    let whole = Curve::through(points).ok_or_else(none)?;
    let overhead = (whole.a - skew).max(io.hit).min(0.9 * whole.a);
    let c = Curve::through(&seeks_over(overhead)).ok_or_else(none)?;
    Ok((c, overhead, false))
}

/// What the buffer and the queue came to.
struct Buffer {
    hits: bool,
    segments: usize,
    ahead: u64,
    abort: Option<f64>,
    keep: usize,
    bytes: u64,
    could_hold_more: bool,
}

/// Step 6.
fn buffer(b: &mut Bench<'_>, map: &Map, io: &Interface, turn: &Turn) -> Result<Buffer, Refusal> {
    b.step("read buffer");
    let hits = Hits::new(b, io.quick(b.granule, turn.ns), turn.ns)?;
    let segments = if io.sizes == 0 { 0 } else { cache::segments(b, hits)? };
    if segments == 0 {
        let bytes = 512 * b.most;
        return Ok(Buffer {
            hits: false,
            segments: 1,
            ahead: 0,
            abort: None,
            keep: 1,
            bytes,
            could_hold_more: false,
        });
    }
    let ahead = cache::look_ahead(b, map, hits)?;
    if ahead == 0 {
        let bytes = 512 * b.most * segments as u64;
        return Ok(Buffer {
            hits: true,
            segments,
            ahead,
            abort: None,
            keep: 1,
            bytes,
            could_hold_more: true,
        });
    }
    let abort = cache::abort(b, map, hits, ahead, tail(b.granule, io.per_sector))?;
    let keep = cache::kept(b, map, hits, segments, ahead)?;
    let (held, could_hold_more) = cache::size(b, hits, segments, ahead)?;
    let bytes = (held * 512).max(ahead * 512);
    Ok(Buffer { hits: true, segments, ahead, abort: Some(abort), keep, bytes, could_hold_more })
}

/// Step 8: how much faster with 4 and with 32 in flight.
fn queue(b: &mut Bench<'_>) -> Result<(f64, f64), Refusal> {
    b.step("queue");
    let n = b.granule;
    let one = b.rate_at(1, 64, n)?;
    let four = b.rate_at(4, 96, n)?;
    let many = b.rate_at(32, 160, n)?;
    Ok((four / one, many / one))
}

/// A disk: all of its steps.
pub(super) fn disk(b: &mut Bench<'_>, o: &Options, basics: &Basics, turn: &Turn) -> Result<Fitted, Refusal> {
    let spent = b.elapsed();
    let left = o.budget.map(|t| t.saturating_sub(spent));
    let effort = Effort::within(left, turn.ns, basics.access)?;
    b.expect(spent + Duration::from_ns(effort.cost(turn.ns, basics.access) as u64));
    b.step("hits");
    let io = interface(b, basics, turn.ns)?;
    let m = mechanics(b, effort, turn, &io)?;
    let buf = buffer(b, &m.map, &io, turn)?;
    let gain = queue(b)?;
    let held_up = if buf.hits { f64::from(b.held_up) / f64::from(b.again.max(1)) } else { 0.0 };
    if held_up > HELD_UP_MOST {
        return Err(Refusal::Inconsistent(format!(
            "{} of {} reads that the drive has in its buffer were held up: another program is using the disk",
            b.held_up, b.again
        )));
    }
    let mut f = Findings::default();
    geometry(&mut f, turn, &m);
    seek(&mut f, &m);
    overheads(&mut f, &io, &m);
    cache_findings(&mut f, &buf);
    let why = "whether sectors before one that was waited for are hits";
    f.say("read_on_arrival", m.arrival.to_string(), Confidence::Fair, why);
    writes(&mut f);
    queueing(&mut f, gain);
    let most = u64::from(b.most as u32).max(8);
    f.assume("max_request", &sectors(most.max(1024)), "what hosts send at most");
    let capacity = b.sectors as f64 * 512.0 / 1e9;
    let about = format!("{capacity:.1} GB disk at {:.0} rpm, calibrated", 60e9 / turn.ns);
    let mut notes = Vec::new();
    if turn.outliers > 0.05 {
        notes.push(format!(
            "{:.0} % of the first answers did not fit the rotation: something else may have used the disk",
            100.0 * turn.outliers
        ));
    }
    if held_up > 0.0 {
        notes.push(format!(
            "{} of {} reads that the drive has in its buffer were held up: something else may have used the disk",
            b.held_up, b.again
        ));
    }
    if turn.jitter > NOISY {
        notes.push(format!(
            "the way to the drive takes a time that varies by {:.0} us: short seeks are that uncertain",
            turn.jitter / 1000.0
        ));
    }
    if m.curve.error > 0.08 {
        notes.push(format!("the seek curve is {:.0} % off its points", 100.0 * m.curve.error));
    }
    finish(o, "disk", &about, f, notes)
}

/// The findings as a device: through its own file, so that this is what every command will read.
pub(super) fn finish(
    o: &Options,
    kind: &str,
    about: &str,
    f: Findings,
    notes: Vec<String>,
) -> Result<Fitted, Refusal> {
    let mut text = format!("kind = \"{kind}\"\nname = {}\nabout = {}\n", quoted(&o.name), quoted(about));
    for x in &f.0 {
        text.push_str(&format!("{} = {}\n", x.key, x.value));
    }
    let params = DeviceParams::from_toml(&text, &o.name)
        .map_err(|e| Refusal::Inconsistent(format!("what was measured is no possible device: {e}")))?;
    Ok(Fitted { params, findings: f.0, notes })
}

fn geometry(f: &mut Findings, turn: &Turn, m: &Mechanics) {
    let rpm = 60e9 / turn.ns;
    f.say(
        "rpm",
        format!("{}", rpm.round() as u64),
        Confidence::High,
        format!("measured {rpm:.2}, one passing {:.0} us off", turn.jitter / 1000.0),
    );
    f.say(
        "heads",
        format!("{}", m.curve.heads),
        Confidence::Low,
        "what the first cylinders of the seek curve fit best; seeks over tracks are right for any number",
    );
    let zones: Vec<String> = m
        .map
        .zones
        .iter()
        .map(|z| format!("    {{ tracks = {}, spt = {} }},", (z.tracks().round() as u64).max(1), z.spt))
        .collect();
    let confidence = if m.profiles.len() >= 40 { Confidence::High } else { Confidence::Fair };
    f.say(
        "zones",
        format!("[\n{}\n]", zones.join("\n")),
        confidence,
        format!("sectors per track at {} places, borders by halving", m.profiles.len()),
    );
    let skews: Vec<f64> = m.profiles.iter().map(|p| p.skew).collect();
    f.say(
        "t_switch",
        time(m.skew),
        if m.skew > 0.0 { Confidence::High } else { Confidence::Low },
        format!("skew between tracks, {:.0} us spread", spread(&skews) / 1000.0),
    );
}

fn seek(f: &mut Findings, m: &Mechanics) {
    let c = &m.curve;
    let confidence = if c.error < 0.03 { Confidence::High } else { Confidence::Fair };
    let why = format!("{} distances, {:.1} % rms off the curve", m.points.len(), 100.0 * c.error);
    f.say("seek_a", time(c.a), if m.overhead_alone { confidence } else { Confidence::Low }, why.clone());
    f.say("seek_b", time(c.b), confidence, "of the same curve");
    f.say("seek_knee", format!("{}", c.knee as u64), confidence, "of the same curve");
    f.say("seek_c", short_time(c.c), confidence, "of the same curve");
    f.assume("write_settle", "\"0.5ms\"", "reads do not show it");
}

fn overheads(f: &mut Findings, io: &Interface, m: &Mechanics) {
    let hit = if io.sizes == 0 { m.overhead } else { io.hit };
    let confidence = if io.sizes < 3 { Confidence::Low } else { Confidence::Fair };
    f.say("ov_hit", time(hit), confidence, "with the path to the drive");
    let (confidence, why) = if m.overhead_alone {
        (Confidence::Fair, "on the last track, where no seek is; with the path")
    } else {
        (Confidence::Low, "shortest seek less skew; with the path")
    };
    f.say("ov_miss", time(m.overhead), confidence, why);
    f.assume("ov_write", "\"0.015ms\"", "reads do not show it");
    f.say("ov_dest", time(m.overhead), Confidence::Assumed, "as ov_miss");
    let bus = if io.per_sector > 0.0 { 512e9 / io.per_sector } else { 250e6 };
    let (confidence, why) = match io.sizes {
        0 | 1 => (Confidence::Assumed, "no hits to time".to_owned()),
        n => (Confidence::Fair, format!("hits of {n} sizes")),
    };
    f.say("bus_rate", rate(bus), confidence, why);
}

fn cache_findings(f: &mut Findings, b: &Buffer) {
    let (sure, seen) = match b.hits {
        true => (Confidence::High, "places remembered"),
        false => (Confidence::Low, "nothing read is remembered"),
    };
    let bytes = (b.bytes / 4096 * 4096).max(4096).max(b.ahead * 512);
    let (confidence, why) = match (b.hits, b.could_hold_more) {
        (true, false) => (Confidence::Fair, "runs that were still there"),
        (true, true) => (Confidence::Low, "at least: all segments were full and still there"),
        (false, _) => (Confidence::Assumed, "nothing read is remembered"),
    };
    f.say("buffer", format!("\"{bytes}B\""), confidence, why);
    f.say("nseg", format!("{}", b.segments.clamp(1, 1024)), sure, seen);
    f.say("ra_max", sectors(b.ahead), sure, "how far behind a read a later one is a hit");
    f.assume("low_water", "0.5", "not measured");
    match b.abort {
        Some(ns) => {
            f.say("ra_abort", time(ns), Confidence::Low, "what was read until a miss elsewhere began")
        }
        None => f.assume("ra_abort", "\"ov_miss\"", "no look-ahead to stop"),
    }
    f.say(
        "ra_keep",
        format!("{}", b.keep.max(1)),
        Confidence::Fair,
        "hits in which segments leave look-ahead alone",
    );
}

fn writes(f: &mut Findings) {
    f.assume("cache_mode", "\"write-back\"", "usual; only writes show it");
    f.assume("wc_slots", "64", "only writes show it");
    f.assume("wc_bytes", "\"2MiB\"", "only writes show it");
}

/// A queue that the drive sorts makes 32 at a time faster by at least this factor.
//= docs/reference/devices.md#16-queueing: 1.4 at depth 4, 2.2 to 2.5 at depth 32
const SORTED: f64 = 1.25;

fn queueing(f: &mut Findings, (four, many): (f64, f64)) {
    let why = format!("{four:.2} times the rate with 4 in flight, {many:.2} times with 32");
    let depth = if many >= SORTED { 31 } else { 1 };
    f.say("queue_depth", depth.to_string(), if depth == 1 { Confidence::Fair } else { Confidence::Low }, why);
    f.assume("age_weight", "0.02", "usual");
    f.assume("age_max", "\"500ms\"", "usual");
    f.assume("stream_burst", "\"2MiB\"", "usual");
}
