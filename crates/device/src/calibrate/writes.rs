//! What only writes show, and only if the user allows them: what was on the drive is lost.
//!
//! The drive is left alone until its write cache must be empty; then come writes far from each other, one
//! behind the other. Each is accepted at once until the cache has no room for another; the first that waits
//! shows how many it has. Adjacent writes show how many bytes it has, less what went to the media meanwhile.
//! A single write that takes as long as a revolution was not cached.
//!
//! What this does not do: `write_settle`, the order of destaging, and what several writers do to each other.
//= docs/reference/devices.md#51-microbenchmarks step 7

use super::Refusal;
use super::drive::{Bench, median};
use super::file::{Findings, sectors, time};
use super::{Confidence, Fitted, Options, disk::finish};
use crate::params::{CacheMode, DeviceParams};

/// What writes showed.
struct Seen {
    /// Overhead of one that is accepted at once, or of all, ns.
    overhead: f64,
    cached: bool,
    slots: Option<usize>,
    bytes: Option<u64>,
}

/// Long enough for any cache to empty itself, ns.
const EMPTY: f64 = 1.5e9;
/// Extents that are tried.
const SLOTS_MOST: usize = 1024;
/// Bytes that are tried.
const BYTES_MOST: u64 = 256 << 20;

fn look(b: &mut Bench<'_>, per_sector: f64, turn: f64) -> Result<Seen, Refusal> {
    b.step("writes");
    let g = b.granule;
    let mut took = Vec::new();
    for _ in 0..9 {
        b.rest(5e7)?;
        let at = b.fresh();
        took.push(b.write(at, g)?.took());
    }
    let one = median(&took);
    let overhead = (one - g as f64 * per_sector).max(0.0);
    if one > turn / 4.0 {
        return Ok(Seen { overhead, cached: false, slots: None, bytes: None });
    }
    let waits = |took: f64, n: u64| took > overhead + n as f64 * per_sector + turn / 16.0;
    let mut counts = Vec::new();
    for _ in 0..3 {
        b.rest(EMPTY)?;
        let mut accepted = 0;
        while accepted < SLOTS_MOST {
            let at = b.fresh();
            if waits(b.write(at, g)?.took(), g) {
                break;
            }
            accepted += 1;
        }
        counts.push(accepted as f64);
    }
    let slots = median(&counts) as usize;
    b.rest(EMPTY)?;
    let n = b.most;
    // Adjacent, where the media are the slowest.
    let mut at = (b.sectors - b.sectors / 16) / n * n;
    let (from, started) = (at, b.now());
    let mut ended = started;
    while (at - from) * 512 < BYTES_MOST && at + 2 * n < b.sectors {
        let answer = b.write(at, n)?;
        if waits(answer.took(), n) {
            break;
        }
        ended = answer.done;
        at += n;
    }
    // The first to arrive is on its way to the media after a revolution or so.
    let went = ((ended - started - turn) / turn).max(0.0);
    let full = (at - from) * 512 < BYTES_MOST;
    let bytes = full.then_some((at - from) * 512).filter(|b| *b > 0);
    Ok(Seen { overhead, cached: true, slots: Some(slots), bytes: bytes.filter(|_| went < 30.0) })
}

/// Measures writes on a disk that was fitted by reads.
pub(super) fn writes(b: &mut Bench<'_>, o: &Options, fitted: Fitted, turn: f64) -> Result<Fitted, Refusal> {
    let DeviceParams::Disk(p) = &fitted.params else { return Ok(fitted) };
    let per_sector = 512e9 / p.bus_rate as f64;
    let seen = look(b, per_sector, turn)?;
    let mut f = Findings(fitted.findings);
    let mut set = |key: &'static str, value: String, confidence: Confidence, why: &str| {
        if let Some(x) = f.0.iter_mut().find(|x| x.key == key) {
            (x.value, x.confidence, x.why) = (value, confidence, why.to_owned());
        }
    };
    let mode = if seen.cached { CacheMode::WriteBack } else { CacheMode::WriteThrough };
    let word = if mode == CacheMode::WriteBack { "\"write-back\"" } else { "\"write-through\"" };
    set("cache_mode", word.to_owned(), Confidence::High, "whether a write alone waits for the media");
    if seen.cached {
        set(
            "ov_write",
            time(seen.overhead),
            Confidence::Fair,
            "writes that were accepted at once; with the path",
        );
    }
    if let Some(slots) = seen.slots {
        let why = "writes apart that were accepted at once; some went to the media meanwhile";
        set("wc_slots", slots.clamp(1, 65_536).to_string(), Confidence::Low, why);
    }
    if let Some(bytes) = seen.bytes {
        let why = "adjacent writes that were accepted at once; some went to the media meanwhile";
        set("wc_bytes", sectors(bytes / 512), Confidence::Low, why);
    }
    // What comes next must not wait for these.
    b.rest(4.0 * EMPTY)?;
    finish(o, "disk", fitted.params.about(), f, fitted.notes)
}
