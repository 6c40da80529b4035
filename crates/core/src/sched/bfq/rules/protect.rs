//! Protection: what to do about a disk that passes over the requests of a raised queue. Ours, not the
//! kernel's.
//!
//! A disk that queues serves what is nearest first. If it does so whatever the age, a request far from the
//! others waits for as long as others are sent, and raising its queue does not help: the elevator gave it the
//! disk long ago. All that is left is to send nothing else. That costs throughput, so it is done only where
//! it is seen to be needed, and how much the disk reorders is found out by counting, with neither clocks nor
//! knowledge of the disk.
//!
//! One read at the device is *watched*: the oldest of raised queues, or, if there is none, any. Each read
//! that was sent later and completes earlier passes it over. A fair disk with n requests does that to no
//! request for much more than n times, as every round is a new chance to be the nearest. After 8 rounds it is
//! taken for *greedy*, for the next minute:
//!
//! ```text
//!   at the device:  W a b c d e f g      W is watched, n = 8, a..g and those that follow them are near each other
//!   completed:      a c b g d f e        sent earlier, or as many as may be
//!                   h i j k … (64 of them)  sent later: greedy. If W is of a raised queue, nothing is sent ──► W is done
//! ```
//!
//! With a greedy disk
//!
//! - a raised queue's request that was passed over by one round stops everything: nothing is sent until it is
//!   done. The device has only to finish what it has, so the wait is bounded: one round until it is noticed,
//!   one to finish;
//! - a raised queue that has nothing to send keeps the disk if *any* other request is at the device (not only
//!   if four are, as on other disks), also when all busy queues are raised, and always if it is soft
//!   real-time;
//! - no others' requests are injected in its turn but those that it may wait for;
//! - an interactive queue is raised for as long as before the peak rate is known: how fast the disk reads in
//!   sequence says little about how soon it gets through.
//!
//! Between two stops others complete a round of requests, so an endless raised queue starves no other by
//! this. When nothing is raised, nothing is different.
//!
//! What it does not do: count writes, which a disk's cache accepts at once; look at flash, where reads
//! complete out of order for other reasons than distance; shorten the first wait: until a disk is known, one
//! request waits for 8 rounds; help a queue that is not raised, which such a disk still starves. No kernel
//! does this: the switch `ncq_protection` is off by default, and on in live engines.

use crate::parts::fifo::{Fifo, Links};
use crate::sched::bfq::view::{Effect, View};
use crate::table::Table;
use crate::units::{Duration, Instant, Tag};

/// A disk that passes over a request for this many rounds is greedy. If every request were as likely as any
/// other to be the next, one in e^8, about 3000, would be passed over so often. A disk with ageing can seem
/// greedy when all but one are close together: then there it is.
const ROUNDS: u32 = 8;
/// The number of rounds for a raised queue's request at a disk that is known to be greedy.
const ROUNDS_GREEDY: u32 = 1;
/// The fewest requests of a round: streams are continued from a disk's buffer for some requests.
const ROUND_MIN: u32 = 8;
/// A disk that was not seen to be greedy for this long may not be.
const FORGET: Duration = Duration::from_secs(60);

/// What is known of a read at the device.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Its number among the reads that were sent; wraps.
    number: u32,
    /// Whether its queue was raised when it was sent.
    guarded: bool,
}

/// What is known of the disk, and the read that is watched.
#[derive(Clone, Debug)]
pub(crate) struct Protect {
    /// Whether there is anything to watch: it is a disk with a head.
    watches: bool,
    /// Whether a greedy disk is answered: the tunable.
    pub(crate) on: bool,
    sent: Table<Tag, Sent>,
    /// Reads of raised queues at the device but the one that is watched, in the order in which they were
    /// sent.
    raised: Fifo<Tag>,
    links: Links<Tag>,
    /// The number of reads that were sent; wraps.
    count: u32,
    watched: Option<Tag>,
    /// How many reads that were sent after the watched one are done.
    passed: u32,
    /// The watched read is a raised queue's, and was passed over: nothing is sent before it is done.
    late: bool,
    greedy: bool,
    /// Until when the disk is taken for greedy.
    until: Instant,
}

impl Protect {
    /// A disk of which nothing is known. Allocates.
    pub(crate) fn new(watches: bool, on: bool, tags: u16) -> Self {
        Self {
            watches,
            on,
            sent: Table::new(usize::from(tags), Sent::default()),
            raised: Fifo::default(),
            links: Links::new(usize::from(tags)),
            count: 0,
            watched: None,
            passed: 0,
            late: false,
            greedy: false,
            until: Instant::EPOCH,
        }
    }

    /// Whether the disk passes over what is far away.
    #[inline]
    pub(crate) const fn is_greedy(&self) -> bool {
        self.greedy && self.on
    }

    /// Whether nothing may be sent now. A completion ends that.
    #[inline]
    pub(crate) const fn holds_all(&self) -> bool {
        self.late && self.on
    }

    /// A read that someone waits for goes to the device; `raised` says whether its queue is.
    #[inline(always)]
    pub(crate) fn dispatched(&mut self, view: &View, tag: Tag, raised: bool) {
        if self.watches {
            self.note_sent(view.now, tag, raised);
        }
    }

    #[inline(always)]
    fn note_sent(&mut self, now: Instant, tag: Tag, raised: bool) {
        if !self.on {
            // It may be done after the rule is on again, and then counts as sent before everything.
            self.sent[tag] = Sent::default();
            return;
        }
        self.count = self.count.wrapping_add(1);
        self.sent[tag] = Sent { number: self.count, guarded: raised };
        if self.greedy && now >= self.until {
            self.greedy = false;
        }
        if self.watched.is_none_or(|w| raised && !self.sent[w].guarded) {
            self.watch(Some(tag));
        } else if raised {
            self.links.push_back(&mut self.raised, tag);
        }
    }

    const fn watch(&mut self, tag: Option<Tag>) {
        self.watched = tag;
        self.passed = 0;
        self.late = false;
    }

    /// A read that someone waits for completes.
    #[inline]
    pub(crate) fn completed(&mut self, view: &View, tag: Tag) -> Effect {
        if self.watched.is_some() { self.note_completed(view.now, view.in_flight, tag) } else { Effect::None }
    }

    #[inline]
    fn note_completed(&mut self, now: Instant, in_flight: u32, tag: Tag) -> Effect {
        let watched = match self.watched {
            Some(watched) if watched != tag => watched,
            _ => {
                let next = self.links.pop_front(&mut self.raised);
                self.watch(next);
                return Effect::None;
            }
        };
        let done = self.sent[tag];
        if done.guarded {
            self.links.remove(&mut self.raised, tag);
        }
        // Less than half of the numbers are in use at a time.
        let later = done.number.wrapping_sub(self.sent[watched].number) < u32::MAX / 2;
        if later { self.passed_over(now, in_flight, watched) } else { Effect::None }
    }

    /// One more was done before `tag`, which was sent earlier.
    fn passed_over(&mut self, now: Instant, in_flight: u32, tag: Tag) -> Effect {
        let round = in_flight.max(ROUND_MIN);
        let guarded = self.sent[tag].guarded;
        self.passed += 1;
        let rounds = if guarded && self.greedy { ROUNDS_GREEDY } else { ROUNDS };
        if self.late || self.passed < rounds.saturating_mul(round) {
            return Effect::None;
        }
        self.greedy = true;
        self.until = now + FORGET;
        self.late = guarded;
        if guarded { Effect::Protect(tag) } else { Effect::None }
    }

    /// What must hold between events; `at_device` are the tags of the reads there that someone waits for.
    pub(crate) fn check(&self, at_device: impl Iterator<Item = Tag>) {
        let (mut guarded, mut watched) = (0, None);
        for tag in at_device {
            if Some(tag) == self.watched {
                watched = Some(tag);
            } else {
                guarded += u32::from(self.sent[tag].guarded);
            }
        }
        assert_eq!(guarded, self.raised.len(), "guarded requests");
        assert_eq!(watched, self.watched, "the watched request is not at the device");
        assert!(!self.holds_all() || self.watched.is_some(), "a hold without end");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that takes 8 requests at a time, so that a round is 8.
    fn view(at_ms: u64) -> View {
        View { in_flight: 8, ..View::at(Instant::EPOCH + Duration::from_ms(at_ms)) }
    }

    fn new() -> Protect {
        Protect::new(true, true, 64)
    }

    fn send(protect: &mut Protect, tags: impl Iterator<Item = u16>, raised: bool) {
        for tag in tags {
            protect.dispatched(&view(0), Tag(tag), raised);
        }
    }

    /// Sends and completes this many later reads; answers after how many the watched one is protected.
    fn pass_over(protect: &mut Protect, reads: u32) -> Option<u32> {
        (1..=reads).find(|_| {
            protect.dispatched(&view(0), Tag(60), false);
            protect.completed(&view(0), Tag(60)) != Effect::None
        })
    }

    #[test]
    fn a_raised_queues_read_that_is_passed_over_for_eight_rounds_stops_everything() {
        let mut protect = new();
        send(&mut protect, 0..1, true);
        assert_eq!(pass_over(&mut protect, 63), None);
        assert!(!protect.is_greedy() && !protect.holds_all());
        protect.dispatched(&view(0), Tag(60), false);
        assert_eq!(protect.completed(&view(0), Tag(60)), Effect::Protect(Tag(0)));
        assert!(protect.is_greedy() && protect.holds_all());
        assert_eq!(pass_over(&mut protect, 100), None, "once is enough");
        assert_eq!(protect.completed(&view(0), Tag(0)), Effect::None);
        assert!(protect.is_greedy() && !protect.holds_all(), "it is done");
        // The disk is known by now: the next one waits for one round.
        send(&mut protect, 1..2, true);
        assert_eq!(pass_over(&mut protect, 100), Some(8));
    }

    #[test]
    fn a_round_is_what_the_device_has_and_at_least_eight() {
        for (in_flight, round) in [(1, 8), (8, 8), (20, 20)] {
            let (mut protect, view) = (new(), View { in_flight, ..view(0) });
            protect.dispatched(&view, Tag(0), true);
            let passed = (1..).find(|_| {
                protect.dispatched(&view, Tag(1), false);
                protect.completed(&view, Tag(1)) != Effect::None
            });
            assert_eq!(passed, Some(8 * round), "{in_flight} at the device");
        }
    }

    #[test]
    fn the_oldest_read_of_a_raised_queue_is_watched_then_any() {
        let mut protect = new();
        send(&mut protect, 0..2, false);
        assert_eq!(protect.watched, Some(Tag(0)));
        send(&mut protect, 2..5, true);
        assert_eq!((protect.watched, protect.raised.len()), (Some(Tag(2)), 2), "a raised one matters more");
        let _ = protect.completed(&view(0), Tag(3));
        let _ = protect.completed(&view(0), Tag(2));
        assert_eq!((protect.watched, protect.raised.len()), (Some(Tag(4)), 0));
        let _ = protect.completed(&view(0), Tag(4));
        assert_eq!(protect.watched, None);
        send(&mut protect, 5..6, false);
        assert_eq!(protect.watched, Some(Tag(5)));
    }

    #[test]
    fn reads_that_were_sent_earlier_pass_nothing_over() {
        let mut protect = new();
        send(&mut protect, 0..40, false);
        send(&mut protect, 40..41, true);
        for tag in 0..40 {
            assert_eq!(protect.completed(&view(0), Tag(tag)), Effect::None);
        }
        assert_eq!(protect.passed, 0);
        protect.count = u32::MAX - 2;
        let _ = protect.completed(&view(0), Tag(40));
        send(&mut protect, 41..42, true);
        assert_eq!(pass_over(&mut protect, 100), Some(64), "numbers wrap");
    }

    #[test]
    fn a_read_that_is_not_raised_shows_a_greedy_disk_and_stops_nothing() {
        let mut protect = new();
        send(&mut protect, 0..1, false);
        assert_eq!(pass_over(&mut protect, 64), None);
        assert!(protect.is_greedy() && !protect.holds_all());
    }

    #[test]
    fn after_a_minute_a_disk_is_no_longer_greedy() {
        for (at_ms, greedy) in [(59_999, true), (60_000, false)] {
            let mut protect = new();
            send(&mut protect, 0..1, false);
            pass_over(&mut protect, 64);
            protect.dispatched(&view(at_ms), Tag(1), false);
            assert_eq!(protect.is_greedy(), greedy, "after {at_ms} ms");
        }
    }

    #[test]
    fn nothing_is_watched_without_a_head_or_answered_while_off() {
        let mut flash = Protect::new(false, true, 64);
        send(&mut flash, 0..1, true);
        assert_eq!(pass_over(&mut flash, 1000), None);
        let mut protect = new();
        send(&mut protect, 0..1, true);
        assert_eq!(pass_over(&mut protect, 1000), Some(64));
        protect.on = false;
        assert!(!protect.is_greedy() && !protect.holds_all());
        send(&mut protect, 1..2, true);
        assert_eq!(protect.raised.len(), 0, "while off nothing new is watched");
    }

    #[test]
    fn a_read_that_was_sent_while_the_rule_was_off_passes_nothing_over() {
        let mut protect = new();
        send(&mut protect, 0..2, true);
        let _ = protect.completed(&view(0), Tag(0));
        let _ = protect.completed(&view(0), Tag(1));
        protect.on = false;
        send(&mut protect, 1..2, true);
        protect.on = true;
        send(&mut protect, 2..3, true);
        let _ = protect.completed(&view(0), Tag(1));
        assert_eq!((protect.watched, protect.passed, protect.raised.len()), (Some(Tag(2)), 0, 0));
    }
}
