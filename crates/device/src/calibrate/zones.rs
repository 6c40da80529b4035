//! Sectors per track, skew and zones: from the times at which a sequential reader gets its pieces.
//!
//! While the drive reads ahead of a sequential reader, pieces of a fixed size come at the speed of the media:
//! at equal intervals, and at each change of track one piece is later by the skew.
//!
//! ```text
//!     time between pieces   _____|_______|_______|____     height: skew      distance: sectors per track
//!                                ^ b     ^ b+spt ^ b+2 spt
//! ```
//!
//! The plain pieces give the time of a sector, so the revolution, known already, gives the sectors per track
//! to a few tenths of a percent; the places of the late ones then decide which whole number it is. A drive
//! that does not read ahead loses a revolution for each piece; whole revolutions are taken off, and the rest
//! is the same.
//!
//! Such profiles are taken in equal steps over the disk. Where two neighbours differ a border is between
//! them; halving finds it.
//!
//! What this does not do: tracks of different lengths beside each other, as surfaces of their own density
//! have. The middle of what is seen counts.
//= N. Talagala, R. Arpaci-Dusseau, D. Patterson, Microbenchmark-based Extraction of Local and Global Disk Characteristics
//= docs/reference/devices.md#51-microbenchmarks steps 3 and 4

use super::Refusal;
use super::drive::{Bench, median, quantile_of, spread};

/// What one place on the disk is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    /// The middle of what was read.
    pub(super) at: u64,
    /// Sectors per track.
    pub(super) spt: u64,
    /// From the end of a track to the start of the next, ns.
    pub(super) skew: f64,
}

/// A run of tracks alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ZoneFit {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) spt: u64,
    /// ns
    pub(super) skew: f64,
}

impl ZoneFit {
    pub(super) fn tracks(&self) -> f64 {
        (self.end - self.start) as f64 / self.spt as f64
    }
}

/// Neighbours that differ by less are alike.
const ALIKE: f64 = 0.004;
/// The longest switch that is looked for, as a share of a revolution.
const SKEW_MOST: f64 = 0.6;

/// Farther than any drive reads ahead: 40 MiB.
const BESIDE: u64 = 80 << 10;

/// How sequential reads are timed: pieces of how many sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// A revolution, ns.
    pub(super) turn: f64,
    /// A hit of a granule, and what each sector more takes, ns.
    pub(super) hit: f64,
    pub(super) per_sector: f64,
    /// Tracks in a profile.
    pub(super) tracks: f64,
}

impl Pace {
    /// Pieces that take the media `times` longer than the bus and the host.
    fn piece(&self, sector: f64, times: f64, bench: &Bench<'_>) -> Option<u64> {
        let room = sector - times * self.per_sector;
        let spt = self.turn / sector;
        let most = ((spt / 5.0) as u64).min(bench.most) / bench.granule * bench.granule;
        if room <= 0.0 || most == 0 {
            return None;
        }
        let n = (times * self.hit / room).ceil() as u64;
        let n = n.max((spt / 40.0) as u64).next_multiple_of(bench.granule);
        (n <= most).then_some(n)
    }
}

/// Reads pieces in sequence; the times from each to the next, less whole revolutions.
fn pieces(b: &mut Bench<'_>, at: u64, n: u64, count: usize, turn: f64) -> Result<Vec<f64>, Refusal> {
    let mut last = b.read(at, n)?.done;
    let mut times = Vec::with_capacity(count);
    for i in 1..=count as u64 {
        let done = b.read(at + i * n, n)?.done;
        let d = done - last;
        times.push(d - (d / turn).floor() * turn);
        last = done;
    }
    Ok(times)
}

/// The time of a sector here, roughly; beside, because what has been read once comes from the buffer.
fn rough_sector(b: &mut Bench<'_>, at: u64, turn: f64) -> Result<f64, Refusal> {
    let aside = BESIDE.min(b.sectors / 64);
    let at = if at > aside { at - aside } else { at + aside } / b.granule * b.granule;
    let n = 32_u64.next_multiple_of(b.granule).min(b.most);
    let times = pieces(b, at, n, 24, turn)?;
    Ok(median(&times[2..]) / n as f64)
}

/// Looks at one place; `None` if no profile can be seen there. `sector` is the time of a sector that is
/// expected, ns.
pub(super) fn profile(
    b: &mut Bench<'_>,
    at: u64,
    pace: &Pace,
    sector: Option<f64>,
) -> Result<Option<Profile>, Refusal> {
    let at = at / b.granule * b.granule;
    let sector = match sector {
        Some(s) => s,
        None => rough_sector(b, at, pace.turn)?,
    };
    let Some(n) = pace.piece(sector, 2.5, b).or_else(|| pace.piece(sector, 1.3, b)) else {
        return Ok(None);
    };
    let spt = pace.turn / sector;
    let count = ((pace.tracks * spt / n as f64) as usize + 4).max(24);
    let from = at.min(b.sectors.saturating_sub((count as u64 + 2) * n));
    let times = pieces(b, from, n, count, pace.turn)?;
    Ok(read_off(&times, from + n, n, pace.turn))
}

/// What the times of pieces of `n` sectors, the first starting at `from`, say.
fn read_off(times: &[f64], from: u64, n: u64, turn: f64) -> Option<Profile> {
    // The look-ahead has to get going.
    let first = 2;
    let seen = &times[first..];
    let base = median(seen);
    // How many track changes there must be among them, and how high these are.
    let expected = (seen.len() as f64 * base / turn).max(1.0);
    let height = quantile_of(seen, 1.0 - 0.5 * expected / seen.len() as f64) - base;
    let plain: Vec<f64> = {
        let near = spread(seen).max(1000.0) * 3.0;
        let near = near.min((height * 0.5).max(2000.0));
        seen.iter().copied().filter(|d| (d - base).abs() <= near).collect()
    };
    let piece = plain.iter().sum::<f64>() / plain.len() as f64;
    let sector = piece / n as f64;
    if !(1.0..=turn).contains(&sector) || (plain.len() as f64) < 0.4 * seen.len() as f64 {
        return None;
    }
    let estimate = turn / sector;
    // A switch shorter than the noise cannot be seen, and is none.
    if height < (4.0 * spread(&plain)).max(0.002 * turn).max(0.5 * sector) {
        let (spt, skew) = (estimate.round() as u64, 0.0);
        return Some(Profile { at: from + n * times.len() as u64 / 2, spt, skew });
    }
    let late = |d: &f64| *d - piece > 0.5 * height && *d - piece < SKEW_MOST * turn;
    let jumps: Vec<u64> =
        (0..seen.len()).filter(|&i| late(&seen[i])).map(|i| from + (i + first) as u64 * n).collect();
    let heights: Vec<f64> = seen.iter().filter(|d| late(d)).map(|d| d - piece).collect();
    let spt = best_track(&jumps, n, estimate)?;
    let at = from + n * times.len() as u64 / 2;
    Some(Profile { at, spt, skew: median(&heights) })
}

/// The track length near `estimate` for which the most of the pieces that were late, each from a jump's
/// sector on and `n` long, have the start of a track in them.
fn best_track(jumps: &[u64], n: u64, estimate: f64) -> Option<u64> {
    let first = *jumps.first()?;
    let slack = (estimate * 0.006).max(1.0);
    let (lo, hi) = ((estimate - slack).round().max(1.0) as u64, (estimate + slack).round() as u64);
    let mut best: Vec<(i64, u64)> = Vec::new();
    for spt in lo..=hi {
        // Starts of tracks as offsets into the first late piece: each other one allows a range of them.
        let mut edges: Vec<(i64, i64)> = Vec::new();
        for &j in jumps {
            let tracks = ((j - first) as f64 / spt as f64).round() as i64;
            let from = (j - first) as i64 - tracks * spt as i64;
            edges.push((from.max(0), 1));
            edges.push(((from + n as i64).max(0), -1));
        }
        edges.sort_unstable();
        let (mut open, mut top) = (0, 0);
        for (at, step) in edges {
            open += step;
            if at < n as i64 {
                top = top.max(open);
            }
        }
        best.push((top, spt));
    }
    let most = best.iter().map(|b| b.0).max()?;
    if most * 2 < (jumps.len() as i64).max(2) {
        return None;
    }
    // Several numbers may do: the one nearest to what the plain pieces say.
    let off = |spt: u64| (spt as f64 - estimate).abs();
    let good = best.iter().filter(|b| b.0 == most).map(|b| b.1);
    good.min_by(|a, b| off(*a).total_cmp(&off(*b)))
}

fn alike(a: u64, b: u64) -> bool {
    a.abs_diff(b) as f64 <= ALIKE * a.max(b) as f64
}

/// Profiles in `samples` steps over the disk, and more where the zones change.
pub(super) fn survey(b: &mut Bench<'_>, pace: &Pace, samples: usize) -> Result<Vec<Profile>, Refusal> {
    let mut all: Vec<Profile> = Vec::new();
    let mut sector = None;
    for i in 0..samples {
        let at = if i == 0 { 0 } else { (b.sectors as f64 * (i as f64 + 0.5) / samples as f64) as u64 };
        let mut p = profile(b, at, pace, sector)?;
        if p.is_none()
            || sector.is_some_and(|s| p.is_some_and(|p| (pace.turn / p.spt as f64 / s - 1.0).abs() > 0.2))
        {
            let aside = 2 * BESIDE.min(b.sectors / 64);
            p = profile(b, if at > aside { at - aside } else { at + aside }, pace, None)?;
        }
        b.look_around(pace.turn / 3.0)?;
        if let Some(p) = p {
            sector = Some(pace.turn / p.spt as f64);
            all.push(p);
        }
    }
    if all.len() * 4 < samples * 3 || all.is_empty() {
        let (seen, of) = (all.len(), samples);
        return Err(Refusal::Inconsistent(format!(
            "tracks can be seen at {seen} of {of} places only; the interface or the path to it may be slower than the media, or \
             another program is using the disk"
        )));
    }
    Ok(all)
}

/// The zones: borders between neighbours that differ, found by halving down to `fine` sectors.
pub(super) fn borders(
    b: &mut Bench<'_>,
    pace: &Pace,
    profiles: &[Profile],
    fine: u64,
) -> Result<Vec<ZoneFit>, Refusal> {
    let mut known = profiles.to_vec();
    known.sort_unstable_by_key(|p| p.at);
    known.dedup_by_key(|p| p.at);
    let mut work: Vec<(Profile, Profile)> = known.windows(2).map(|w| (w[0], w[1])).collect();
    let mut cuts: Vec<(u64, u64)> = Vec::new();
    while let Some((lo, hi)) = work.pop() {
        if alike(lo.spt, hi.spt) {
            continue;
        }
        if hi.at - lo.at <= fine {
            cuts.push((lo.at, hi.at));
            continue;
        }
        let middle = lo.at.midpoint(hi.at);
        let guess = Some(pace.turn / lo.spt.max(hi.spt) as f64);
        let Some(mid) = profile(b, middle, pace, guess)?.filter(|m| lo.at < m.at && m.at < hi.at) else {
            cuts.push((lo.at, hi.at));
            continue;
        };
        // Between a zone and the next there is nothing else: what was read across the border looks like
        // neither.
        let within = (hi.spt.min(lo.spt)..=hi.spt.max(lo.spt)).contains(&mid.spt);
        if !within {
            cuts.push((lo.at, hi.at));
            continue;
        }
        known.push(mid);
        work.push((lo, mid));
        work.push((mid, hi));
    }
    cuts.sort_unstable();
    Ok(join(&known, &cuts, b.sectors, fine))
}

/// Zones between the cuts, each as its profiles are in the middle. What lies between two cuts that are hardly
/// apart was read across a border.
fn join(profiles: &[Profile], cuts: &[(u64, u64)], sectors: u64, fine: u64) -> Vec<ZoneFit> {
    let mut edges = vec![0];
    let mut run: Option<(u64, u64)> = None;
    for &(lo, hi) in cuts {
        run = match run {
            Some((from, to)) if lo <= to + fine => Some((from, hi)),
            Some((from, to)) => {
                edges.push(from.midpoint(to));
                Some((lo, hi))
            }
            None => Some((lo, hi)),
        };
    }
    edges.extend(run.map(|(from, to)| from.midpoint(to)));
    edges.push(sectors);
    let mut zones: Vec<ZoneFit> = Vec::new();
    for w in edges.windows(2) {
        let inside: Vec<&Profile> = profiles.iter().filter(|p| w[0] <= p.at && p.at < w[1]).collect();
        if inside.is_empty() {
            if let Some(z) = zones.last_mut() {
                z.end = w[1];
            }
            continue;
        }
        let spt = median(&inside.iter().map(|p| p.spt as f64).collect::<Vec<_>>()) as u64;
        let skew = median(&inside.iter().map(|p| p.skew).collect::<Vec<_>>());
        match zones.last_mut() {
            // Noise that looked like a border, or a slower zone outside: the model has none.
            Some(z) if alike(z.spt, spt) || spt > z.spt => z.end = w[1],
            _ => zones.push(ZoneFit { start: zones.last().map_or(0, |z| z.end), end: w[1], spt, skew }),
        }
    }
    zones
}

/// The tracks of a disk, and where they are.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) zones: Vec<ZoneFit>,
    pub(super) turn: f64,
}

impl Map {
    fn zone(&self, lba: u64) -> &ZoneFit {
        let i = self.zones.partition_point(|z| z.start <= lba).max(1) - 1;
        &self.zones[i]
    }

    pub(super) fn spt(&self, lba: u64) -> u64 {
        self.zone(lba).spt
    }

    pub(super) fn skew(&self, lba: u64) -> f64 {
        self.zone(lba).skew
    }

    /// The time of a sector, ns.
    pub(super) fn sector(&self, lba: u64) -> f64 {
        self.turn / self.spt(lba) as f64
    }

    pub(super) fn tracks(&self) -> f64 {
        self.zones.iter().map(ZoneFit::tracks).sum()
    }

    /// The number of a sector's track.
    pub(super) fn track(&self, lba: u64) -> f64 {
        let before = self.zones.iter().take_while(|z| z.end <= lba).map(ZoneFit::tracks).sum::<f64>();
        let z = self.zone(lba);
        before + (lba.min(z.end) - z.start) as f64 / z.spt as f64
    }

    /// A sector of that track.
    pub(super) fn lba(&self, track: f64) -> u64 {
        let mut left = track.max(0.0);
        for z in &self.zones {
            if left < z.tracks() {
                return z.start + (left * z.spt as f64) as u64;
            }
            left -= z.tracks();
        }
        self.zones.last().map_or(0, |z| z.end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_off_a_made_up_drive() {
        // 533 sectors of 15,635 ns, then 1.2 ms.
        let (turn, spt, skew) = (8_333_333.0, 533_u64, 1_200_000.0);
        let phase = |lba: u64| (lba / spt) as f64 * (turn + skew) + (lba % spt) as f64 * turn / spt as f64;
        let (from, n) = (1000, 24);
        let end = |i: u64| phase(from + i * n - 1);
        let times: Vec<f64> = (1..240).map(|i| end(i + 1) - end(i)).collect();
        let p = read_off(&times, from + n, n, turn).unwrap();
        assert_eq!(p.spt, 533, "{p:?}");
        assert!((p.skew - skew).abs() < 0.01 * skew, "{p:?}");
    }
}
