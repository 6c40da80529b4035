//! upwards: requests in the order of their sectors, upwards and around; one older than `patience` goes first.

use fairhead_plugin::prelude::*;
fairhead_plugin::export!(Upwards, "upwards", "upwards and around, with patience");

tunables! {
    pub struct Config {
        /// How long a request may wait before it goes first.
        pub patience: Duration = Duration::from_ms(500), 0, 60_000_000_000;
    }
}

/// The requests that wait, by their tags, and where the last one that was issued ends.
pub struct Upwards {
    config: Config,
    waiting: Vec<Tag>,
    head: Sector,
}

impl Scheduler for Upwards {
    const NAME: &'static str = "upwards";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        Ok(Self { config, waiting: Vec::with_capacity(limits.tags.into()), head: Sector(0) })
    }

    fn insert(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        self.waiting.push(tag);
    }

    fn joined(&mut self, _cx: &mut Cx<'_>, _kept: Tag, gone: Tag) {
        self.waiting.retain(|tag| *tag != gone);
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        let (requests, waiting) = (&*cx.requests, self.waiting.iter().copied());
        let Some(oldest) = waiting.clone().min_by_key(|tag| (requests[*tag].since, *tag)) else {
            return Dispatch::Empty;
        };
        let late = cx.now.since(requests[oldest].since) > self.config.patience;
        // Those behind the head come after all that are ahead of it.
        let order = |t: &Tag| (requests[*t].rq.start < self.head, requests[*t].rq.start, *t);
        let next = if late { oldest } else { waiting.min_by_key(order).unwrap_or(oldest) };
        cx.why = if late { Reason::FifoExpired } else { Reason::Batch };
        self.head = requests[next].rq.end();
        self.waiting.retain(|tag| *tag != next);
        Dispatch::Issue(next)
    }
}
