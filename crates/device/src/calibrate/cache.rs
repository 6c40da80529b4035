//! The read buffer: segments, look-ahead, and what stops it. Every question is whether a read is answered at
//! once.
//!
//! | question | how it is asked |
//! |---|---|
//! | how many segments | read many places, then the same backwards, until one is no longer there |
//! | how far look-ahead goes | read, wait until it must be done, read so far behind |
//! | when a miss stops it | read, read elsewhere at once, read so far behind the first |
//! | whose hits do not stop it | read, hit the segment of rank r at once, wait, read far behind the first |
//! | how large all segments are | read a run for each, then probe backwards how much is left |
//!
//! An answer at once is one that takes hardly longer than a hit after a rest, by which time the programs
//! on the path have gone to sleep. A miss can be that quick only if it is near and its sector happens
//! to come by, so answers in fresh places vote, up to five.
//= docs/reference/devices.md#51-microbenchmarks step 6

use super::Refusal;
use super::drive::{Bench, median, spread};
use super::zones::Map;

/// What is an answer at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hits {
    /// ns
    most: f64,
}

impl Hits {
    /// At least `most`, which one behind another does not exceed.
    pub(super) fn new(b: &mut Bench<'_>, most: f64, turn: f64) -> Result<Self, Refusal> {
        let mut took = Vec::new();
        for _ in 0..15 {
            let at = b.fresh();
            b.touch(at)?;
            b.rest(2e7)?;
            took.push(b.touch(at)?.took());
        }
        let rested = 1.3 * median(&took) + 4.0 * spread(&took) + 30_000.0;
        // A miss is that quick once in a dozen times at most, and then it is outvoted; one far away never is,
        // as the arm takes longer.
        Ok(Self { most: rested.max(most).clamp(turn / 12.0, turn / 6.0) })
    }

    fn is(self, took: f64) -> bool {
        took < self.most
    }
}

/// The most segments that are counted.
const SEGMENTS_MOST: usize = 512;

/// How many places are remembered.
pub(super) fn segments(b: &mut Bench<'_>, hits: Hits) -> Result<usize, Refusal> {
    let mut counts = Vec::new();
    let mut n = 32;
    while counts.len() < 3 {
        let places: Vec<u64> = (0..n).map(|_| b.fresh()).collect();
        for &p in &places {
            b.touch(p)?;
        }
        // One that is late may have been held up; two in a row are gone.
        let (mut kept, mut gone) = (0, 0);
        for (i, &p) in places.iter().rev().enumerate() {
            if hits.is(b.touch(p)?.took()) {
                (kept, gone) = (i + 1, 0);
            } else {
                gone += 1;
            }
            if gone == 2 {
                break;
            }
        }
        if kept == n && n < SEGMENTS_MOST {
            n *= 2;
        } else {
            counts.push(kept);
        }
    }
    // Reads of other programs displace segments, and never add any.
    Ok(counts.into_iter().max().unwrap_or(0))
}

/// Asks until there are three answers alike.
//= docs/reference/choices.md#calibrate-hits
fn vote(mut ask: impl FnMut() -> Result<bool, Refusal>) -> Result<bool, Refusal> {
    let (mut yes, mut no) = (0, 0);
    while yes < 3 && no < 3 {
        if ask()? { yes += 1 } else { no += 1 }
    }
    Ok(yes == 3)
}

/// The largest multiple of the granule for which `ask` says yes, from 0 to `most`; yes must not come after
/// no.
fn largest(
    granule: u64,
    most: u64,
    mut ask: impl FnMut(u64) -> Result<bool, Refusal>,
) -> Result<u64, Refusal> {
    let (mut lo, mut hi) = (0, granule);
    while hi <= most && ask(hi)? {
        lo = hi;
        hi = (hi * 2).next_multiple_of(granule);
    }
    while hi - lo > granule.max(hi / 64) {
        let mid = lo.midpoint(hi) / granule * granule;
        if mid == lo {
            break;
        }
        if ask(mid)? { lo = mid } else { hi = mid }
    }
    Ok(lo)
}

/// Returns a generous bound for the time to read `sectors` and come to rest, in ns.
fn fill_time(map: &Map, at: u64, sectors: u64) -> f64 {
    let tracks = (sectors / map.spt(at) + 2) as f64;
    1.1 * sectors as f64 * map.sector(at) + tracks * map.skew(at) + 2e6
}

/// Measures the look-ahead after a read that no other read follows, in sectors.
pub(super) fn look_ahead(b: &mut Bench<'_>, map: &Map, hits: Hits) -> Result<u64, Refusal> {
    // 32 MiB.
    let most = (1 << 16).min(b.sectors / 8);
    let g = b.granule;
    largest(g, most, |k| {
        vote(|| {
            let at = b.fresh().min(b.sectors - most - 2 * g) / g * g;
            b.touch(at)?;
            b.rest(fill_time(map, at, k))?;
            Ok(hits.is(b.touch(at + k)?.took()))
        })
    })
}

/// Measures how long the look-ahead of the previous read continues after a miss is sent, in ns.
pub(super) fn abort(b: &mut Bench<'_>, map: &Map, hits: Hits, ahead: u64, tail: f64) -> Result<f64, Refusal> {
    let mut times = Vec::new();
    let g = b.granule;
    for _ in 0..5 {
        let mut gap = Vec::new();
        // Far out, where tracks are the longest, so that few changes are in it.
        let room = b.sectors / 16;
        let kept = largest(g, ahead, |k| {
            vote(|| {
                let at = b.chance.below(room / g) * g;
                let first = b.touch(at)?;
                let away = b.sectors / 2 + b.fresh() / 3;
                gap.push(b.touch(away)?.sent - first.done);
                Ok(hits.is(b.touch(at + k)?.took()))
            })
        })?;
        // Half a granule more than was seen, on average.
        let sectors = kept as f64 + g as f64 / 2.0;
        times.push(sectors * map.sector(0) - median(&gap) - tail);
    }
    Ok(median(&times).max(0.0))
}

/// Measures the number of most recently used segments in which a hit leaves look-ahead alone.
pub(super) fn kept(
    b: &mut Bench<'_>,
    map: &Map,
    hits: Hits,
    segments: usize,
    ahead: u64,
) -> Result<usize, Refusal> {
    let g = b.granule;
    let far = (ahead * 3 / 4 / g * g).max(g);
    let mut goes_on = |rank: usize| {
        vote(|| {
            let places: Vec<u64> = (0..rank).map(|_| b.fresh()).collect();
            for &p in &places {
                b.touch(p)?;
            }
            let at = b.fresh().min(b.sectors - 2 * ahead - g) / g * g;
            b.touch(at)?;
            b.touch(places[0])?;
            b.rest(fill_time(map, at, far))?;
            Ok(hits.is(b.touch(at + far)?.took()))
        })
    };
    let (mut lo, mut hi) = (0, segments);
    while hi - lo > 1 {
        // Few, as a rule; so from below.
        let mid = match lo {
            0 => 1,
            _ if hi == segments => (2 * lo).min(hi - 1),
            _ => lo.midpoint(hi),
        };
        if goes_on(mid)? { lo = mid } else { hi = mid }
    }
    Ok(hi)
}

/// Sectors that are left of a run for each segment: what the buffer holds; and whether it could hold more.
pub(super) fn size(
    b: &mut Bench<'_>,
    hits: Hits,
    segments: usize,
    ahead: u64,
) -> Result<(u64, bool), Refusal> {
    let run = (5 * ahead).max(b.most);
    let step = (ahead / 4).max(b.granule) / b.granule * b.granule;
    // No more than 2 GiB are read for this.
    let streams = segments.min(((4 << 20) / run) as usize).max(1);
    let mut places = Vec::new();
    for _ in 0..streams {
        let at = b.fresh().min(b.sectors - run - ahead - b.most) / b.granule * b.granule;
        let mut x = at;
        while x < at + run {
            b.read(x, b.most)?;
            x += b.most;
        }
        places.push(x);
    }
    let (mut total, mut before) = (0, None);
    for (i, &end) in places.iter().rev().enumerate() {
        let mut back = b.granule;
        let mut found = 0;
        while back <= run && hits.is(b.touch(end - back)?.took()) {
            found = back;
            back += step;
        }
        // The last one continued when no read followed.
        let found = found + if i == 0 { ahead } else { 0 };
        let is_short = found < 3 * ahead;
        match before {
            // Where the buffer ends two in a row are short. One alone was held up, and has as much as the
            // next.
            Some(short) if is_short => return Ok((total + short, false)),
            Some(_) => total += found,
            None => {}
        }
        before = is_short.then_some(found);
        if !is_short {
            total += found;
        }
    }
    Ok((total + before.unwrap_or(0), before.is_none()))
}
