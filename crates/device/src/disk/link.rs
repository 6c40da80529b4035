//! The link to the host: what crosses it when.
//!
//! One thing crosses at a time, in one direction: SATA and the parallel buses before it are half duplex, so
//! reads and writes together never move more than the link's rate. Two kinds of transfer share it:
//!
//! - data that are in the buffer, or come from the host: as fast as the link is free, from an instant on
//!   ([`Link::burst`]);
//! - data that come from the media, slower than the link: spread over the time that the head takes
//!   ([`Link::spread`]). A burst that comes meanwhile gets the rest of the link.
//!
//! ```text
//!   share  1 ┤      ██████            ░ read from the media, 209 of 550 MB/s
//!   of the   │      ██████            █ burst
//!   link     │░░░░░░░░░░░░░░░░░░░
//!          0 ┼──────────────────────── time
//! ```
//!
//! What is known is kept as a list of spans with the time that is still free in each; outside of them the
//! link is free. With one command at a time nothing can be in the way of a command, and the list stays empty.
//!
//! What this does not do: frames and their overhead, which the rate has to leave out; moving a transfer that
//! was decided.

use alloc::collections::VecDeque;

/// The spans that there is memory for. A transfer cuts the spans at its two ends at most, and a command has a
/// few transfers.
const SPANS_PER_COMMAND: usize = 4;

/// A span of time in which the link is taken, in part or altogether. Nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: u64,
    to: u64,
    /// How much of it is free, evenly spread.
    free: u64,
}

impl Span {
    /// What is free of `[from, to)` inside.
    fn free_in(&self, from: u64, to: u64) -> u64 {
        let (part, whole) = (to - from, self.to - self.from);
        if part == whole { self.free } else { scale(self.free, part, whole) }
    }

    /// The part `[from, to)` of it.
    fn part(&self, from: u64, to: u64) -> Self {
        Self { from, to, free: if from < to { self.free_in(from, to) } else { 0 } }
    }
}

/// `x * part / whole`, rounded down.
fn scale(x: u64, part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(x) * u128::from(part) / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// The link. See the module's text.
#[derive(Clone, Debug)]
pub(super) struct Link {
    /// In order of time, disjoint.
    spans: VecDeque<Span>,
    /// Scratch.
    rebuilt: VecDeque<Span>,
}

impl Link {
    /// For that many commands at a time.
    pub(super) fn new(commands: usize) -> Self {
        let spans = SPANS_PER_COMMAND * commands;
        Self { spans: VecDeque::with_capacity(spans), rebuilt: VecDeque::with_capacity(spans) }
    }

    /// Nothing will be asked about the time before `now` any more.
    pub(super) fn forget(&mut self, now: u64) {
        while self.spans.front().is_some_and(|s| s.to <= now) {
            self.spans.pop_front();
        }
    }

    /// Takes all that is free from `at` on, until `work` has crossed; returns when.
    pub(super) fn burst(&mut self, at: u64, work: u64) -> u64 {
        let end = self.end_of(at, work);
        self.take(at, end, 0, 1);
        end
    }

    /// Takes an equal share of what is free from `from` to `to`; if that is not enough, all of it and what
    /// comes behind. Returns when it has crossed: `to` or later.
    pub(super) fn spread(&mut self, from: u64, to: u64, work: u64) -> u64 {
        let free = self.free_in(from, to);
        if free <= work {
            return self.burst(from, work).max(to);
        }
        self.take(from, to, free - work, free);
        to
    }

    /// What is free between two instants.
    fn free_in(&self, from: u64, to: u64) -> u64 {
        let taken = |s: &Span| {
            let (a, b) = (s.from.max(from), s.to.min(to));
            if a < b { (b - a) - s.free_in(a, b) } else { 0 }
        };
        to.saturating_sub(from) - self.spans.iter().map(taken).sum::<u64>()
    }

    /// When the link has been free for `work` since `at`.
    fn end_of(&self, at: u64, work: u64) -> u64 {
        let (mut at, mut left) = (at, work);
        for s in &self.spans {
            if s.to <= at {
                continue;
            }
            let before = s.from.saturating_sub(at);
            if left <= before {
                break;
            }
            left -= before;
            at = at.max(s.from);
            let free = s.free_in(at, s.to);
            if left <= free && free > 0 {
                // Rounded up: a nanosecond late rather than too much for the link.
                return (at + scale(s.to - at, left, free) + 1).min(s.to);
            }
            left -= free;
            at = s.to;
        }
        at + left
    }

    /// Leaves `keep / of` of what is free between two instants.
    fn take(&mut self, from: u64, to: u64, keep: u64, of: u64) {
        if from >= to {
            return;
        }
        let less = |s: Span| Span { free: scale(s.free, keep, of), ..s };
        let open = |a: u64, b: u64| Span { from: a, to: b.max(a), free: b.saturating_sub(a) };
        // Most transfers come behind all others.
        if self.spans.back().is_none_or(|s| s.to <= from) {
            return put(&mut self.spans, less(open(from, to)));
        }
        let mut out = core::mem::take(&mut self.rebuilt);
        let mut at = from;
        for s in self.spans.drain(..) {
            if s.to <= from {
                put(&mut out, s);
                continue;
            }
            if s.from >= to {
                put(&mut out, less(open(at, to)));
                at = at.max(to);
                put(&mut out, s);
                continue;
            }
            let (a, b) = (s.from.max(from), s.to.min(to));
            put(&mut out, s.part(s.from, a));
            put(&mut out, less(open(at, a)));
            put(&mut out, less(s.part(a, b)));
            at = b;
            put(&mut out, s.part(b, s.to));
        }
        put(&mut out, less(open(at, to)));
        self.rebuilt = core::mem::replace(&mut self.spans, out);
    }
}

/// Appends a span; what is taken altogether stays one span.
fn put(spans: &mut VecDeque<Span>, s: Span) {
    match spans.back_mut() {
        _ if s.from >= s.to => {}
        Some(last) if last.to == s.from && last.free == 0 && s.free == 0 => last.to = s.to,
        _ => spans.push_back(s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_follow_each_other_and_fill_gaps() {
        let mut l = Link::new(4);
        assert_eq!(l.burst(100, 50), 150);
        assert_eq!(l.burst(120, 50), 200, "behind the first");
        assert_eq!(l.burst(0, 60), 60);
        assert_eq!(l.burst(50, 60), 220, "40 before the first, 20 behind the second");
    }

    #[test]
    fn a_burst_gets_what_a_read_from_the_media_leaves() {
        let mut l = Link::new(4);
        assert_eq!(l.spread(1000, 2000, 400), 2000);
        // Free are 60 of 100: 60 take 100, and what is left of 1000 at 2000.
        assert_eq!(l.burst(1000, 60), 1101);
        assert_eq!(l.burst(1101, 1000), 2000 + 1000 - 539);
        assert_eq!(l.spread(1500, 2100, 10), 2471, "nothing is free until 2461");
        l.forget(2471);
        assert!(l.spans.is_empty());
    }

    /// Draws transfers; what crosses between any two instants is no more than the time between them.
    #[test]
    fn no_more_crosses_than_there_is_time() {
        let mut x = 88_172_645_463_325_252_u64;
        let mut below = |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 11) % n
        };
        for _ in 0..200 {
            let (mut l, mut now, mut ends, mut starts) = (Link::new(4), 0, Vec::new(), Vec::new());
            for _ in 0..100 {
                now += below(300);
                l.forget(now);
                let (at, work) = (now + below(500), 1 + below(400));
                let end = match below(2) {
                    0 => l.burst(at, work),
                    _ => l.spread(at, at + work + below(1000), work),
                };
                assert!(end >= at + work);
                ends.push((end, work));
                starts.push((at, work));
            }
            for &(a, _) in &starts {
                for &(b, _) in &ends {
                    let inside = starts.iter().zip(&ends).filter(|(s, e)| s.0 >= a && e.0 <= b);
                    let work: u64 = inside.map(|(_, e)| e.1).sum();
                    // Each division rounds by less than one.
                    assert!(work <= b.saturating_sub(a) + 100, "{work} from {a} to {b}");
                }
            }
        }
    }
}
