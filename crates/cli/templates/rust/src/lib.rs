//! upwards: requests in the order of their sectors, upwards and around; but one that has waited for longer
//! than `patience` goes first.

use fairhead_core::config::ConfigError;
use fairhead_core::sched::Scheduler;
use fairhead_core::{Cx, Dispatch, Duration, Instant, Limits, Reason, Sector, Tag, tunables};

fairhead_plugin::export!(Upwards, "upwards", "upwards and around, with patience");

tunables! {
    /// The tunables.
    pub struct Config {
        /// How long a request may wait before it goes first.
        pub patience: Duration = Duration::from_ms(500), 0, 60_000_000_000;
    }
}

/// The scheduler. Requests themselves are in `cx.requests`, by tag.
pub struct Upwards {
    config: Config,
    /// The end of the request that was issued last.
    head: Sector,
    /// Since when each tag waits.
    since: Vec<Option<Instant>>,
}

impl Upwards {
    fn take(&mut self, cx: &Cx<'_>, tag: Tag) -> Tag {
        self.since[usize::from(tag.0)] = None;
        self.head = cx.requests[tag].rq.end();
        tag
    }
}

impl Scheduler for Upwards {
    const NAME: &'static str = "upwards";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        Ok(Self { config, head: Sector(0), since: vec![None; usize::from(limits.tags)] })
    }

    fn insert(&mut self, cx: &mut Cx<'_>, tag: Tag) {
        self.since[usize::from(tag.0)] = Some(cx.now);
    }

    fn joined(&mut self, _cx: &mut Cx<'_>, kept: Tag, gone: Tag) {
        let gone = self.since[usize::from(gone.0)].take();
        let kept = &mut self.since[usize::from(kept.0)];
        *kept = (*kept).min(gone);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let waiting = self.since.iter().zip(0..).filter_map(|(since, i)| since.map(|s| (Tag(i), s)));
        let Some((oldest, since)) = waiting.clone().min_by_key(|(_, since)| *since) else {
            return Dispatch::Empty;
        };
        if cx.now.since(since) > self.config.patience {
            cx.why = Reason::FifoExpired;
            return Dispatch::Issue(self.take(cx, oldest));
        }
        // Those behind the head come after all that are ahead of it.
        let order = |(tag, _): &(Tag, Instant)| {
            let rq = cx.requests[*tag].rq;
            (rq.start < self.head, rq.start)
        };
        let (next, _) = waiting.min_by_key(order).expect("one waits");
        cx.why = Reason::Batch;
        Dispatch::Issue(self.take(cx, next))
    }

    fn drain(&mut self, cx: &mut Cx<'_>) -> Option<Tag> {
        match self.dispatch(cx) {
            Dispatch::Issue(tag) => Some(tag),
            _ => None,
        }
    }
}
