//! A media player: a soft real-time reader.
//!
//! ```text
//!   frame     0      1      2      3        4      5
//!   due              |      |      |        |      |          every 1/24 s after the first was there
//!   reads    ▓▓▓    ▓      ▓      ▓▓▓▓▓▓▓▓▓▓▓▓▓ ▓  ▓
//!   result   start  shown  shown  dropped  dropped shown
//! ```
//!
//! A frame's data are read when the frame before has been shown, and have until its own turn: 41.7 ms. A
//! frame whose data come later is dropped; the player reads on at once, without decoding, until it has caught
//! up. The film lies in one file and is read through the page cache with ordinary read-ahead, so the disk
//! sees batches: at 4 Mbit/s a window of 128 KiB every sixth frame, and nothing in between.
//!
//! What it does not do: buffer ahead itself (as with mplayer's -nocache), audio, and frames of different
//! sizes.
//
//= docs/reference/benchmarks.md#5-video

use super::program::{Step, Turn};
use crate::metrics::Frames;
use fairhead_core::{Duration, Instant};

/// Frames per second.
const RATE: u64 = 24;
/// CPU time for decoding a frame: an assumption.
const DECODE: Duration = Duration::from_ms(5);
/// How long the film is, unless `runtime` or `size` say otherwise.
//= docs/reference/benchmarks.md#5-video: 20 s
pub(super) const LENGTH: Duration = Duration::from_secs(20);

/// The bytes of a film of this length.
pub(super) fn film_bytes(bits_per_s: u64, length: Duration) -> u64 {
    let bits = u128::from(bits_per_s) * u128::from(length.as_ns()) / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// A player and its film.
#[derive(Clone, Debug)]
pub(super) struct Player {
    bits_per_s: u64,
    /// The film's length in sectors.
    sectors: u64,
    /// The next frame to be read.
    frame: u64,
    /// Whether the frame before it is still to be judged.
    is_reading: bool,
    /// When the first frame was there: from then on the others are due.
    clock: Option<Instant>,
    frames: Frames,
}

impl Player {
    pub(super) fn new(bits_per_s: u64, sectors: u64) -> Self {
        let frames = Frames { shown: 0, dropped: 0 };
        Self { bits_per_s, sectors, frame: 0, is_reading: false, clock: None, frames }
    }

    /// The next thing to do, when the one before is done.
    pub(super) fn next(&mut self, now: Instant) -> Turn {
        if std::mem::take(&mut self.is_reading) {
            self.judge(now);
        }
        if let Some(shown) = self.due(self.frame.saturating_sub(1)).filter(|&t| t > now) {
            return Turn::Pause(shown);
        }
        let (start, end) = (self.starts_at(self.frame), self.starts_at(self.frame + 1));
        if end > self.sectors {
            return Turn::End;
        }
        let is_late = self.due(self.frame).is_some_and(|due| due <= now);
        let cpu = if is_late { Duration::ZERO } else { DECODE };
        (self.frame, self.is_reading) = (self.frame + 1, true);
        #[allow(clippy::cast_possible_truncation, reason = "a second of the fastest film is below 2 TB")]
        let len = (end - start) as u32;
        Turn::Read(Step { offset: start, len, cpu, burst: 0, meta: false })
    }

    /// The data of the frame before `self.frame` have come.
    fn judge(&mut self, now: Instant) {
        let due = self.due(self.frame - 1);
        self.clock = self.clock.or(Some(now));
        if due.is_some_and(|due| now > due) {
            self.frames.dropped += 1;
        } else {
            self.frames.shown += 1;
        }
    }

    /// When the frame is to be shown.
    fn due(&self, frame: u64) -> Option<Instant> {
        self.clock.map(|t| t + Duration::from_ns(frame * 1_000_000_000 / RATE))
    }

    /// Where the frame starts, in sectors.
    fn starts_at(&self, frame: u64) -> u64 {
        let bits = u128::from(frame) * u128::from(self.bits_per_s) / u128::from(RATE);
        u64::try_from(bits / (8 * 512)).unwrap_or(u64::MAX)
    }

    /// Stops. A frame that is late already is dropped, and so are those that should have been shown
    /// meanwhile.
    pub(super) fn give_up(&mut self, now: Instant) {
        let unread = if std::mem::take(&mut self.is_reading) { self.frame - 1 } else { self.frame };
        let is_in_film = |f: &u64| self.starts_at(f + 1) <= self.sectors;
        let is_late = |f: &u64| self.due(*f).is_some_and(|due| due < now);
        let late = (unread..).take_while(|f| is_in_film(f) && is_late(f)).count();
        self.frames.dropped += late as u64;
        self.sectors = 0;
    }

    /// Returns the frames shown and dropped so far.
    pub(super) const fn frames(&self) -> Frames {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_ms;

    /// Plays a film of a second at 4 Mbit/s, each frame's data coming after `delay(frame)`.
    fn play(delay: impl Fn(u64) -> Duration) -> (Player, Instant) {
        let mut player = Player::new(4_000_000, film_bytes(4_000_000, Duration::from_secs(1)) / 512);
        let (mut now, mut frame) = (Instant::EPOCH, 0);
        loop {
            match player.next(now) {
                Turn::Read(step) => {
                    now = now + step.cpu + delay(frame);
                    frame += 1;
                }
                Turn::Pause(until) => now = until,
                Turn::Begin => panic!("a film has no start-ups"),
                Turn::End => return (player, now),
            }
        }
    }

    #[test]
    fn a_film_of_a_second_has_24_frames_and_takes_a_second() {
        let (player, end) = play(|_| MS(1));
        assert_eq!(player.frames, Frames { shown: 24, dropped: 0 });
        // The first starts the clock after 5 + 1 ms; the last is shown 23 periods later.
        let expected = 6_000_000 + 23 * 1_000_000_000 / 24;
        assert!(end.since(Instant::EPOCH).as_ns().abs_diff(expected) <= 1);
    }

    #[test]
    fn a_frame_is_late_after_its_period_less_decoding() {
        // Decoded and read in 41.6 of 41.67 ms, or in 41.7.
        for (delay_us, dropped) in [(36_600, 0), (36_700, 1)] {
            let (player, _) = play(|f| if f == 10 { Duration::from_us(delay_us) } else { MS(1) });
            assert_eq!(player.frames.dropped, dropped, "{delay_us} us");
        }
    }

    #[test]
    fn a_stall_drops_what_should_have_been_shown_meanwhile() {
        // Read from 125 ms on, frame 4 comes at 320 instead of 167, 5 to 7 at 321 to 323; those were due at
        // 208, 250 and
        // 292. Frame 8 is due at 333 and decoded at 329.
        let (player, _) = play(|f| if f == 4 { MS(190) } else { MS(1) });
        assert_eq!(player.frames, Frames { shown: 20, dropped: 4 });
    }

    #[test]
    fn frames_that_nobody_read_are_dropped_when_the_run_ends() {
        let mut player = Player::new(4_000_000, film_bytes(4_000_000, Duration::from_secs(1)) / 512);
        assert!(matches!(player.next(Instant::EPOCH), Turn::Read(_)));
        let start = Instant::EPOCH + MS(10);
        assert!(matches!(player.next(start), Turn::Read(_)));
        // Frame 1 was due at 41.7 ms, 2 at 83.3, 3 at 125.
        let mut soon = player.clone();
        soon.give_up(start + MS(100));
        assert_eq!(soon.frames(), Frames { shown: 1, dropped: 2 });
        assert_eq!(soon.next(start + MS(100)), Turn::End);
        player.give_up(start + Duration::from_secs(9));
        player.give_up(start + Duration::from_secs(10));
        assert_eq!(player.frames(), Frames { shown: 1, dropped: 23 });
    }

    #[test]
    fn frames_lie_one_behind_the_other() {
        let mut player = Player::new(4_000_000, 100_000);
        let (mut now, mut at, mut frames) = (Instant::EPOCH, 0, 0);
        while frames < 50 {
            match player.next(now) {
                Turn::Read(step) => {
                    assert_eq!(step.offset, at);
                    (at, frames) = (at + u64::from(step.len), frames + 1);
                }
                Turn::Pause(until) => now = until,
                turn => panic!("{turn:?}: the film is longer"),
            }
        }
        assert_eq!(at, 50 * 20_833 / 512, "50 frames of 20 833 bytes");
    }
}
