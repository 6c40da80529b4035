//! The steps for what has no arm and no platter: latency by size, rate by depth, and which model explains
//! them.
//!
//! A device that is no faster with several requests in flight, and whose latency is a straight line over the
//! size, is a *card*: two numbers. Else it is an *SSD*, with more parts than reads from outside can tell
//! apart: link and command processor show in the largest rates, page size and channel in the latency of small
//! reads; for the rest the model itself is asked, with several numbers of dies and several ways to share the
//! latency, and what is nearest at all depths is taken.
//= docs/reference/devices.md#51-microbenchmarks steps 9 and 10

use super::disk::finish;
use super::drive::{Bench, median};
use super::file::{Findings, rate, sectors, short_time, time};
use super::identify::Basics;
use super::modelled::{Modelled, Noise};
use super::{Confidence, Fitted, Options, Refusal};
use crate::params::DeviceParams;
use fairhead_core::units::Duration;

/// Times and rates that a device without mechanics shows.
#[derive(Clone, Debug)]
struct Seen {
    /// Sectors, and the latency alone, ns.
    sizes: Vec<(f64, f64)>,
    /// Requests in flight, and granules per second.
    depths: Vec<(usize, f64)>,
    /// The largest requests, many in flight: bytes per second.
    link: f64,
    /// Of reads in sequence and what comes right behind them.
    run: Run,
}

/// Reads in sequence, as large as possible, and a small one elsewhere behind them: what was read ahead is in
/// its way.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// One of those in sequence, ns.
    each: f64,
    /// The small one, ns.
    after: f64,
}

const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// A device that queues is faster with many in flight by at least this factor.
const QUEUES: f64 = 1.3;
/// A straight line explains the latencies of a card within this part of them.
const STRAIGHT: f64 = 0.04;

fn look(b: &mut Bench<'_>) -> Result<Seen, Refusal> {
    b.step("latency by size");
    let mut sizes = Vec::new();
    let mut n = 8_u64.next_multiple_of(b.granule);
    while n <= b.most {
        let mut took = Vec::new();
        for _ in 0..32 {
            // Within a unit of any size that flash has.
            let at = b.fresh() / 256 * 256;
            took.push(b.read(at, n)?.took());
        }
        sizes.push((n as f64, median(&took)));
        n *= 2;
    }
    b.step("rate by depth");
    let mut depths = Vec::new();
    for d in DEPTHS {
        depths.push((d, b.rate_at(d, 160.max(8 * d), 8)?));
    }
    let most = b.most;
    let link = b.rate_at(16, 128, most)? * most as f64 * 512.0;
    b.step("reads in sequence");
    Ok(Seen { sizes, depths, link, run: run(b)? })
}

fn run(b: &mut Bench<'_>) -> Result<Run, Refusal> {
    let most = b.most;
    let (mut each, mut after) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        let at = (b.fresh() / 256 * 256).min(b.sectors - 8 * most) / b.granule * b.granule;
        for i in 0..6 {
            let took = b.read(at + i * most, most)?.took();
            if i > 2 {
                each.push(took);
            }
        }
        let away = b.fresh();
        after.push(b.read(away, 8)?.took());
        b.rest(2e6)?;
    }
    Ok(Run { each: median(&each), after: median(&after) })
}

/// A straight line through the latencies: at nothing, per sector, and the largest relative error.
fn line(points: &[(f64, f64)]) -> (f64, f64, f64) {
    // Relative errors count.
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &(n, t) in points {
        let q = 1.0 / (t * t);
        w += q;
        x += q * n;
        y += q * t;
        xx += q * n * n;
        xy += q * n * t;
    }
    let slope = ((w * xy - x * y) / (w * xx - x * x)).max(0.0);
    let start = (y - slope * x) / w;
    let worst = points.iter().map(|&(n, t)| ((start + slope * n) / t - 1.0).abs()).fold(0.0, f64::max);
    (start, slope, worst)
}

/// Flash: all of its steps.
pub(super) fn flash(b: &mut Bench<'_>, o: &Options, basics: &Basics) -> Result<Fitted, Refusal> {
    let cost = 1600.0 * basics.access.max(50_000.0);
    b.expect(b.elapsed() + Duration::from_ns(cost as u64));
    let seen = look(b)?;
    let one = seen.depths[0].1;
    let most = seen.depths.iter().map(|d| d.1).fold(0.0, f64::max);
    let (start, slope, worst) = line(&seen.sizes);
    let capacity = b.sectors;
    if most < QUEUES * one && worst < STRAIGHT && start > 0.0 {
        return card(o, capacity, start, slope, worst);
    }
    ssd(b, o, &seen, most / one)
}

fn card(o: &Options, capacity: u64, start: f64, slope: f64, worst: f64) -> Result<Fitted, Refusal> {
    let mut f = Findings::default();
    let why = format!("a straight line over the sizes, {:.1} % off at most", 100.0 * worst);
    f.say("capacity", sectors(capacity), Confidence::High, "what the host says");
    f.say("read_latency", time(start), Confidence::High, why.clone());
    f.say("read_per_kib", short_time(2.0 * slope), Confidence::High, why);
    let (write, per_kib) = (time(start * 1.4), short_time(2.0 * slope * 1.9));
    f.say("write_latency", write, Confidence::Assumed, "1.4 times a read; only writes show it");
    f.say("write_per_kib", per_kib, Confidence::Assumed, "1.9 times a read; only writes show it");
    let about = format!("{:.1} GB of flash without a queue, calibrated", capacity as f64 * 512.0 / 1e9);
    finish(o, "card", &about, f, Vec::new())
}

/// Within a page latency grows by channel and link, beyond by less: the sectors of a page.
fn page(seen: &Seen) -> u64 {
    let slopes: Vec<f64> = seen.sizes.windows(2).map(|w| (w[1].1 - w[0].1) / (w[1].0 - w[0].0)).collect();
    let first = slopes.first().copied().unwrap_or(0.0);
    let same = slopes.iter().take_while(|s| **s > 0.85 * first).count();
    seen.sizes.get(same).map_or(32, |s| s.0 as u64).clamp(8, 128)
}

/// What is tried for the parts that reads do not show one by one.
#[derive(Clone, Copy, Debug)]
struct Guess {
    channels: u32,
    dies: u32,
    /// Thousandths of the rest of the latency that are the flash's.
    sensing: u32,
}

fn ssd(b: &mut Bench<'_>, o: &Options, seen: &Seen, gain: f64) -> Result<Fitted, Refusal> {
    let shapes = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 4), (8, 2), (8, 4), (8, 8), (16, 8)];
    let guesses = shapes.iter().flat_map(|&(channels, dies)| {
        [300, 500, 700, 850, 950].into_iter().map(move |sensing| Guess { channels, dies, sensing })
    });
    let mut best: Option<(f64, Fitted)> = None;
    for guess in guesses {
        let Ok(fitted) = with(b, o, seen, gain, guess) else { continue };
        let error = distance(&fitted.params, seen, b.sectors)?;
        if best.as_ref().is_none_or(|b| error < b.0) {
            best = Some((error, fitted));
        }
    }
    let (error, mut fitted) =
        best.ok_or_else(|| Refusal::Inconsistent("no solid-state device is like this".to_owned()))?;
    if seen.run.each < 0.85 * seen.sizes.last().map_or(0.0, |s| s.1) {
        prefetch(o, seen, &mut fitted)?;
    }
    if error > 0.15 {
        fitted.notes.push(format!("rates by depth and size are {:.0} % off the model's", 100.0 * error));
    }
    Ok(fitted)
}

/// How far it reads ahead: as far as makes the model's reads in sequence, and behind them, the most like the
/// device's.
fn prefetch(o: &Options, seen: &Seen, fitted: &mut Fitted) -> Result<(), Refusal> {
    let mut best: Option<(f64, Fitted)> = None;
    for kib in [128, 256, 512, 1024, 2048, 4096] {
        let mut f = Findings(fitted.findings.clone());
        let why = "reads in sequence are quicker, and what comes behind them is slower, as with this much";
        f.say("prefetch", format!("\"{kib}KiB\""), Confidence::Low, why);
        let Ok(with) = finish(o, "ssd", fitted.params.about(), f, fitted.notes.clone()) else { continue };
        let mut model = Modelled::new(&with.params, Noise::default(), 11)
            .map_err(|e| Refusal::Inconsistent(e.to_string()))?;
        let model = run(&mut Bench::new(&mut model, 11))?;
        let error = (model.each / seen.run.each).ln().powi(2) + (model.after / seen.run.after).ln().powi(2);
        if best.as_ref().is_none_or(|b| error < b.0) {
            best = Some((error, with));
        }
    }
    if let Some((_, with)) = best {
        *fitted = with;
    }
    Ok(())
}

/// Root mean square of the relative distance of the model's rates and latencies from what was seen.
fn distance(params: &DeviceParams, seen: &Seen, capacity: u64) -> Result<f64, Refusal> {
    let impossible = |e: crate::ParamError| Refusal::Inconsistent(e.to_string());
    let mut squares = Vec::new();
    for &(depth, rate) in &seen.depths {
        let mut model = Modelled::new(params, Noise::default(), 7).map_err(impossible)?;
        let mut bench = Bench::new(&mut model, 7);
        bench.sectors = capacity.min(bench.sectors);
        squares.push((bench.rate_at(depth, 120.max(4 * depth), 8)? / rate).ln().powi(2));
    }
    let mut model = Modelled::new(params, Noise::default(), 9).map_err(impossible)?;
    let mut bench = Bench::new(&mut model, 9);
    for &(n, t) in &seen.sizes {
        let at = bench.fresh() / 256 * 256;
        squares.push((bench.read(at, n as u64)?.took() / t).ln().powi(2));
        bench.rest(1e7)?;
    }
    Ok((squares.iter().sum::<f64>() / squares.len() as f64).sqrt())
}

/// The parameters with one guess.
fn with(b: &Bench<'_>, o: &Options, seen: &Seen, gain: f64, guess: Guess) -> Result<Fitted, Refusal> {
    let small = seen.sizes[0];
    let queues = gain >= QUEUES;
    // One at a time the link rests between requests; what large reads take more for each sector is the
    // link's, or the channels'.
    let link = match seen.sizes.as_slice() {
        [.., a, z] if !queues => 512e9 * (z.0 - a.0) / (z.1 - a.1).max(1.0),
        _ => seen.link,
    };
    let link_sector = 512e9 / link;
    let page = page(seen);
    let slope = (seen.sizes[1].1 - small.1) / (seen.sizes[1].0 - small.0);
    let channel_sector = (slope - link_sector).max(link_sector / 8.0);
    let peak = seen.depths.iter().map(|d| d.1).fold(0.0, f64::max);
    let fixed = (small.1 - small.0 * (link_sector + channel_sector)).max(1000.0);
    let command = if queues { (1e9 / peak).min(0.9 * fixed) } else { 0.4 * fixed };
    let rest = (fixed - command).max(500.0);
    let sensing = rest * f64::from(guess.sensing) / 1000.0;
    let deepest = seen.depths.iter().find(|d| d.1 > 0.97 * peak).map_or(1, |d| d.0);
    let depth = match () {
        () if !queues => 1,
        () if deepest > 32 => 1023,
        () => 31,
    };
    let mut f = Findings::default();
    let nearest = "what is nearest at all depths";
    f.say("capacity", sectors(b.sectors), Confidence::High, "what the host says");
    f.say("channels", guess.channels.to_string(), Confidence::Low, nearest);
    f.say("dies_per_channel", guess.dies.to_string(), Confidence::Low, nearest);
    f.say(
        "page",
        sectors(page.next_power_of_two()),
        Confidence::Low,
        "up to which latency grows the fastest",
    );
    f.say("t_read", time(sensing), Confidence::Low, nearest);
    f.assume("t_prog", "\"900us\"", "only writes show it");
    f.assume("t_erase", "\"5ms\"", "only writes show it");
    f.say(
        "channel_rate",
        rate(512e9 / channel_sector),
        Confidence::Low,
        "latency of small reads by size, less the link",
    );
    let from =
        if queues { "the largest reads, 16 in flight" } else { "latency of the largest reads by size" };
    f.say("link_rate", rate(link), Confidence::Fair, from);
    let why = if queues { "the most reads in a second" } else { "a share of the latency" };
    f.say("t_cmd", time(command), if queues { Confidence::Fair } else { Confidence::Low }, why);
    f.say("t_fix", time(rest - sensing), Confidence::Low, nearest);
    f.say("t_fix_write", time(rest - sensing), Confidence::Assumed, "as t_fix");
    let why = format!("{gain:.1} times the rate with many in flight");
    f.say("queue_depth", depth.to_string(), Confidence::Low, why);
    f.assume("write_buffer", "\"64MiB\"", "only writes show it");
    let about = format!("{:.1} GB of flash, calibrated", b.sectors as f64 * 512.0 / 1e9);
    finish(o, "ssd", &about, f, Vec::new())
}
