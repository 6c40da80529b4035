//! Commands that wait for the media, and completions that wait for their time.
//!
//! With one command at a time both hold at most one entry. With a queue (NCQ) the media take the command that
//! is nearest in time, position and rotation together, less a share of its age; one that is too old goes
//! first. Rotational order is what makes a queue worth having: about 1.4 times the rate at depth 4 and 2.2 to
//! 2.5 times at depth 32.
//!
//! What waits is bounded ([`DiskParams::longest_wait`]). A command that is older than `age_max` goes before
//! all that are younger, and cached writes have one turn at most between two commands: an extent, or as much
//! of it as `stream_burst`.
//= docs/reference/devices.md#16-queueing

use crate::geometry::Place;
use crate::params::DiskParams;
use crate::seek::SeekCurve;
use alloc::vec::Vec;
use fairhead_core::units::{Duration, Tag};

impl DiskParams {
    /// The longest that a read of up to `max_request` waits in a drive with a queue, from its arrival to its
    /// completion, if `others` commands are in the queue when it comes. Not counted are cached extents that
    /// have some of its own sectors, which go to the media before it.
    ///
    /// It is `age_max`, and then, for each command that is older and for the read itself, a turn of cached
    /// writes and a command. Each begins with a seek over the whole disk and a revolution. A turn of cached
    /// writes lasts for `stream_burst` or a revolution, at the innermost tracks. With `nas2020` this is 0.66
    /// s for a read alone, and 3.1 s behind 30 others.
    #[must_use]
    pub fn longest_wait(&self, others: u16) -> Duration {
        let t_rev = 60_000_000_000 / u64::from(self.rpm);
        let tracks: u64 = self.zones.iter().map(|z| z.tracks).sum();
        let cylinders = tracks / u64::from(self.heads);
        let slowest = self.zones.iter().map(|z| u64::from(z.spt)).min().unwrap_or(1).max(1);
        let time = |sectors: u64| (sectors / slowest + 1) * (t_rev + self.t_switch.as_ns());
        let seek = SeekCurve::new(self).longest(cylinders) + self.write_settle.as_ns() + t_rev;
        let overhead = (self.ov_miss + self.ov_dest + self.ov_write).as_ns();
        let longest = u64::from(self.max_request.0);
        let bus = 512 * longest * 1_000_000_000 / self.bus_rate;
        let command = seek + overhead + time(longest + u64::from(self.min_ra.0)) + bus;
        let turn = seek + overhead + time(u64::from(self.stream_burst.0));
        // What is done when the read comes, the older ones, and it.
        let rounds = u64::from(others) + 2;
        self.age_max + Duration::from_ns(rounds.saturating_mul(command.saturating_add(turn)))
    }
}

/// A command that needs the media.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) tag: Tag,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) write: bool,
    /// When the drive took it up.
    pub(crate) since: u64,
    /// When its seek may start.
    pub(crate) ready: u64,
    /// When its data begin to cross the link, if it is a write.
    pub(crate) data: u64,
    pub(crate) place: Place,
}

/// Index of the command to serve next. `access` gives the time from now to its first sector.
pub(crate) fn choose(
    pending: &[Pending],
    now: u64,
    age_weight_permille: u32,
    age_max: u64,
    access: impl Fn(&Pending) -> u64,
) -> Option<usize> {
    if pending.len() <= 1 {
        return pending.len().checked_sub(1);
    }
    // In order of arrival, so the first is the oldest.
    if now.saturating_sub(pending[0].since) > age_max {
        return Some(0);
    }
    let cost = |p: &Pending| {
        let age = u128::from(now.saturating_sub(p.since)) * u128::from(age_weight_permille) / 1000;
        i128::from(access(p)) - i128::try_from(age).unwrap_or(i128::MAX)
    };
    // The first of equals: the oldest.
    pending.iter().enumerate().min_by_key(|(_, p)| cost(p)).map(|(i, _)| i)
}

/// Completions by time; equals in the order in which they were decided.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    /// Latest first, so that the next is at the end.
    list: Vec<(u64, Tag)>,
    /// The latest completion ever decided.
    pub(crate) last: u64,
}

impl Done {
    pub(crate) fn new(depth: usize) -> Self {
        Self { list: Vec::with_capacity(depth), last: 0 }
    }

    pub(crate) fn push(&mut self, at: u64, tag: Tag) {
        self.last = self.last.max(at);
        let i = self.list.partition_point(|d| d.0 > at);
        self.list.insert(i, (at, tag));
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.list.last().map(|d| d.0)
    }

    pub(crate) fn pop(&mut self, now: u64) -> Option<(u64, Tag)> {
        self.list.pop_if(|d| d.0 <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Arm;

    fn pending(tag: u16, since: u64) -> Pending {
        let place = Place { phase: 0, arm: Arm::default(), sector_time: 0 };
        Pending { tag: Tag(tag), start: 0, end: 8, write: false, since, ready: since, data: since, place }
    }

    #[test]
    fn nearest_first_unless_age_decides() {
        let q = [pending(0, 0), pending(1, 500), pending(2, 900)];
        let access = |p: &Pending| [5000, 3000, 3000][usize::from(p.tag.0)];
        assert_eq!(choose(&q, 1000, 0, 10_000, access), Some(1), "the older of two equals");
        assert_eq!(choose(&q, 1000, 0, 999, access), Some(0), "too old");
        // Ages 1000, 500, 100: at a weight of 5 the far one costs 0, the others 500 and 2500.
        assert_eq!(choose(&q, 1000, 5000, 10_000, access), Some(0));
        assert_eq!(choose(&[], 1000, 0, 0, access), None);
    }

    #[test]
    fn completions_come_in_time_order_and_equals_in_decision_order() {
        let mut d = Done::new(4);
        for (at, tag) in [(30, 0), (10, 1), (30, 2), (20, 3)] {
            d.push(at, Tag(tag));
        }
        assert_eq!(d.next(), Some(10));
        assert_eq!(d.pop(9), None);
        let order: Vec<_> = std::iter::from_fn(|| d.pop(30)).map(|(_, t)| t.0).collect();
        assert_eq!(order, [1, 3, 0, 2]);
        assert_eq!(d.last, 30);
    }
}
