//! How long the engine looks for news before it sleeps.
//!
//! A processor that sleeps takes 15 to 20 us to wake, longer than many a read takes, and a client that has
//! one request in flight pays for it each time. So an engine that had news within [`Polling::MOST`] polls for
//! that long the next time, yielding to every other thread that wants the processor. Each time that nothing
//! came, it polls for half as long, until not at all: an engine with rare requests pays nothing. Where
//! processors are short, threads that sleep are served sooner than those that yield: if another thread had
//! the processor meanwhile, the engine sleeps the next [`Polling::REST`] times.
//!
//! What it does not do: it is not for an engine at real-time priority, to which yielding means nothing.
//!
//! Where it comes from: the kernel's `haltpoll` governor of guests, which does the same with a processor, and
//! so looks for as long as it takes to wake one, a few times over.

use fairhead_core::units::Duration;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Polling {
    /// For how long to look the next time.
    pub(crate) window: Duration,
    /// How many times not to.
    rest: u32,
}

impl Polling {
    /// The longest.
    pub(crate) const MOST: Duration = Duration::from_us(50);

    /// An engine that was off the processor for longer than this had to wait for it.
    const AWAY: Duration = Duration::from_us(100);

    /// How many times it sleeps where processors are short.
    const REST: u32 = 4000;

    /// No use below this.
    const LEAST: Duration = Duration::from_us(5);

    /// Notes that the thread yielded, and had the processor again after `away`. Returns whether to go on.
    pub(crate) fn gave_way(&mut self, away: Duration) -> bool {
        let is_short = away > Self::AWAY;
        if is_short {
            self.rest = Self::REST;
        }
        !is_short
    }

    /// Notes that the engine had nothing to do for `idle`, and adjusts the window.
    pub(crate) fn learn(&mut self, idle: Duration) {
        if self.rest > 0 {
            self.rest -= 1;
            self.window = Duration::ZERO;
            return;
        }
        self.window = match self.window / 2 {
            _ if idle <= Self::MOST => Self::MOST,
            half if half < Self::LEAST => Duration::ZERO,
            half => half,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_news_at_once_looks_and_who_has_not_sleeps() {
        let mut polling = Polling::default();
        assert_eq!(polling.window, Duration::ZERO);
        polling.learn(Duration::from_us(40));
        assert_eq!(polling.window, Polling::MOST);
        let mut looks = 0;
        while !polling.window.is_zero() {
            polling.learn(Duration::from_us(51));
            looks += 1;
        }
        assert_eq!(looks, 4);
        polling.learn(Duration::from_secs(1));
        assert_eq!(polling.window, Duration::ZERO);
    }

    #[test]
    fn where_processors_are_short_it_sleeps() {
        let mut polling = Polling::default();
        assert!(polling.gave_way(Duration::from_us(3)));
        assert!(!polling.gave_way(Duration::from_ms(3)));
        for _ in 0..Polling::REST {
            polling.learn(Duration::from_us(1));
            assert_eq!(polling.window, Duration::ZERO);
        }
        polling.learn(Duration::from_us(1));
        assert_eq!(polling.window, Polling::MOST);
    }
}
