//! The seek curve: how long the arm takes over a distance, with rotation taken out.
//!
//! There are two runs of tracks, `A` and `B`, at a given distance. A read in `A` puts the arm there; a read
//! in `B` is then sent a certain time before its sector passes. Sent early enough it is answered when the
//! sector passes; sent too late, one revolution after:
//!
//! ```text
//!     sent …ms before the sector passes    9   6   5   4.5  4.8        least: 4.75 ms = overhead + seek
//!     answered                             yes yes yes  no   yes
//! ```
//!
//! Halving finds the least time to a few microseconds in a dozen pairs. Neither read may hit the drive's
//! buffer, so each pair goes two tracks down from the one before: what a drive reads ahead lies above, and
//! what it picks up while it waits, on the same track. That moves the sector's passing by twice the skew,
//! which is known; each answer says where the sector really is.
//!
//! The overhead without a seek is measured the same way on the last track of the disk, behind which there is
//! nothing to read ahead: the arm stays there.
//!
//! What this does not do: tell the surfaces apart, or heads' switches from short seeks; see `fit.rs`.
//= docs/reference/devices.md#51-microbenchmarks steps 2 and 5

use super::Refusal;
use super::drive::{Bench, Ns};
use super::zones::Map;

/// A least time over a distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Tracks.
    pub(super) tracks: f64,
    /// From the request to the answer, the shortest, less the time of the sectors themselves, ns.
    pub(super) least: f64,
}

/// The half-open question: answered in time for `lo`? no; for `hi`? yes.
struct Halving {
    /// An answer sooner than this came from the buffer, and tells nothing.
    quick: f64,
    lo: f64,
    hi: f64,
    turn: f64,
    /// When the last target's last sector passed, and which one that was.
    passed: f64,
    /// Too late once; a second time counts.
    doubt: bool,
    odd: u32,
    steps: u32,
    /// Answers in time that were no sooner than the best: there is nothing below.
    stale: u32,
}

/// Answers that are neither in time nor a revolution late, and what they may be: then there is no rhythm.
const ODD_MOST: u32 = 12;

impl Halving {
    fn new(first: Ns, turn: f64, quick: f64) -> Self {
        let hi = first.took();
        Self {
            quick,
            lo: (hi - 1.02 * turn).max(0.0),
            hi,
            turn,
            passed: first.done,
            doubt: false,
            odd: 0,
            steps: 0,
            stale: 0,
        }
    }

    /// When to send the next, if its sector is `shift` later on the track than the last one's, but not before
    /// `now`; and when that sector passes then.
    fn send_at(&mut self, shift: f64, now: f64) -> (f64, f64) {
        let target = self.lo.midpoint(self.hi);
        let mut pass = self.passed + shift;
        let least = now + target;
        pass += ((least - pass) / self.turn).ceil() * self.turn;
        (pass - target, pass)
    }

    /// The answer of the one whose sector was to pass at `pass`. It may have been sent later than planned.
    fn learn(&mut self, pass: f64, answer: Ns) {
        self.steps += 1;
        let (took, lead) = (answer.took(), pass - answer.sent);
        if took < self.quick {
            // Nothing passed; the sector is where it was thought to be.
            self.passed = pass;
            self.odd += 1;
            return;
        }
        self.passed = answer.done;
        let slack = self.turn / 5.0;
        if (took - lead).abs() < slack {
            self.stale += u32::from(took > self.hi - 2000.0);
            self.hi = self.hi.min(took);
            self.lo = self.lo.min(self.hi);
            self.doubt = false;
        } else if (took - lead - self.turn).abs() < slack {
            if self.doubt {
                // That late it was; but an answer that was heard late proves nothing.
                self.lo = self.lo.max(lead.min(took - self.turn)).min(self.hi);
            }
            self.doubt = !self.doubt;
        } else {
            self.odd += 1;
        }
    }

    fn is_open(&self, fine: f64) -> bool {
        self.hi - self.lo > fine && self.stale < 2 && self.odd < ODD_MOST && self.steps < 54
    }

    fn result(&self) -> Option<f64> {
        let best = if self.stale < 2 { self.lo.midpoint(self.hi) } else { self.hi };
        (self.odd < ODD_MOST).then_some(best)
    }
}

/// How far the sector that is `down` sectors before another passes after it, on a track of `spt` sectors, ns;
/// less whole revolutions.
fn shift_down(map: &Map, at: u64, down: u64) -> f64 {
    let (spt, sector) = (map.spt(at), map.sector(at));
    let tracks = down / spt;
    -((tracks as f64) * map.skew(at) + (down % spt) as f64 * sector)
}

/// Two tracks, in whole granules.
fn step_down(map: &Map, at: u64, granule: u64) -> u64 {
    (2 * map.spt(at)).next_multiple_of(granule)
}

/// The least time from a track around `from` to one around `to`; also how many tracks the drive read ahead at
/// most before it was sent on.
fn between(
    b: &mut Bench<'_>,
    map: &Map,
    from: u64,
    to: u64,
    fine: f64,
    quick: f64,
) -> Result<Option<(f64, f64)>, Refusal> {
    let down = (step_down(map, from, b.granule), step_down(map, to, b.granule));
    let g = b.granule;
    let start = |x: u64| x / g * g;
    let (mut x, mut y) = (start(from), start(to));
    b.touch(x)?;
    let mut h = Halving::new(b.touch(y)?, map.turn, quick);
    let (mut skipped, mut travel) = (0.0, 0.0);
    while h.is_open(fine) {
        let (Some(next_x), Some(next_y)) = (x.checked_sub(down.0), y.checked_sub(down.1)) else { break };
        skipped += shift_down(map, y, down.1);
        (x, y) = (next_x, next_y);
        let here = b.touch(x)?;
        if here.took() < quick {
            // The arm is not there.
            h.odd += 1;
            continue;
        }
        let here = here.done;
        let (send, pass) = h.send_at(skipped, here + 3000.0);
        b.wait_until(send)?;
        let answer = b.touch(y)?;
        travel = (answer.sent - here) / (map.turn + map.skew(x));
        h.learn(pass, answer);
        skipped = 0.0;
    }
    Ok(h.result().map(|t| (t - g as f64 * map.sector(y), travel)))
}

/// The number of reads elsewhere that displace a used-up track from the buffer, so that it can be used again.
const OTHERS: usize = 130;
const ROUNDS: usize = 5;

/// The least time of a read on the track where the arm is: on the last track, behind which there is nothing.
/// It is known to be at most `most`.
pub(super) fn without_seek(
    b: &mut Bench<'_>,
    map: &Map,
    fine: f64,
    most: f64,
) -> Result<Option<f64>, Refusal> {
    let g = b.granule;
    let last = b.sectors - g;
    let spt = map.spt(last);
    if spt < 6 * g {
        return Ok(None);
    }
    let shift = -(g as f64) * map.sector(last);
    let mut h: Option<Halving> = None;
    for _ in 0..ROUNDS {
        b.touch(last / 2)?;
        let mut x = last - 2 * g;
        b.touch(x)?;
        x -= g;
        let first = b.touch(x)?;
        let h = h.get_or_insert_with(|| {
            let h = Halving::new(first, map.turn, 0.0);
            Halving { lo: 0.0, hi: h.hi.min(most + g as f64 * map.sector(last)), ..h }
        });
        h.passed = first.done;
        // A try uses up one granule of the track.
        while h.is_open(fine) && last - x < spt - 3 * g {
            x -= g;
            let (send, pass) = h.send_at(shift, b.now() + 3000.0);
            b.wait_until(send)?;
            h.learn(pass, b.touch(x)?);
        }
        if !h.is_open(fine) {
            break;
        }
        for _ in 0..OTHERS {
            let away = b.fresh();
            b.touch(away)?;
        }
    }
    let Some(h) = h else { return Ok(None) };
    let is_done = h.stale > 1 || h.hi - h.lo <= 4.0 * fine;
    Ok(h.result().filter(|_| is_done).map(|t| t - g as f64 * map.sector(last)))
}

/// Distances in tracks, evenly on a logarithmic scale.
pub(super) fn distances(tracks: f64, n: usize) -> Vec<f64> {
    let (lo, hi) = (6.0_f64, tracks * 0.97);
    if hi <= lo {
        return Vec::new();
    }
    // Odd, so that going down by two tracks never comes where the other run has been.
    let odd = |x: f64| 2.0 * (x / 2.0).floor() + 1.0;
    (0..n).map(|i| odd(lo * (hi / lo).powf(i as f64 / (n - 1) as f64))).collect()
}

/// Tracks that a run of tries and what is read ahead of it may take up.
const NEAR: f64 = 150.0;

/// Whether what passes under the head while it waits for a sector is kept, too.
pub(super) fn reads_on_arrival(b: &mut Bench<'_>, most: f64) -> Result<bool, Refusal> {
    let mut hits = 0;
    for _ in 0..7 {
        let at = b.fresh().max(4 * b.granule);
        b.touch(at)?;
        hits += u32::from(b.touch(at - 2 * b.granule)?.took() < most);
    }
    Ok(hits > 3)
}

/// The least time over a distance somewhere, up or down.
pub(super) fn measure(
    b: &mut Bench<'_>,
    map: &Map,
    tracks: f64,
    upwards: bool,
    fine: f64,
    quick: f64,
) -> Result<Option<Point>, Refusal> {
    // Room for the steps down, on both sides.
    let margin = 110.0_f64.min(map.tracks() / 20.0);
    let room = map.tracks() - tracks - margin - 2.0;
    let low = margin + b.chance.unit() * room.max(0.0);
    let (lower, upper) = (map.lba(low), map.lba((low + tracks).min(map.tracks() - 1.0)));
    // Going up and down by turns, what is read ahead meanwhile makes seeks shorter as often as longer. But
    // going up a little leads to where the other run has read ahead.
    let upwards = upwards && tracks > NEAR;
    let (from, to) = if upwards { (lower, upper) } else { (upper, lower) };
    let tracks = (map.track(from) - map.track(to)).abs();
    let found = between(b, map, from, to, fine, quick)?;
    for _ in 0..2 {
        b.look_around(map.turn / 3.0)?;
    }
    Ok(found.map(|(least, travel)| Point {
        tracks: if upwards { tracks - travel } else { tracks + travel },
        least,
    }))
}
