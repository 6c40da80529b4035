//! Which rules a scheduler has: chosen from its tunables once, when it is made or retuned.
//!
//! A switch of [`Config`] that turns a rule on, or to its form of another year, is looked at here and nowhere
//! else. The rule has the outcome as its own setting, and the engine has one too.

use super::config::Config;
use super::engine::setting::{Budgets, Setting};
use super::rules::Rules;
use super::rules::burst::{self, Bursts};
use super::rules::depth::{self, Depth};
use super::rules::early::{self, Early};
use super::rules::history::{self, History};
use super::rules::idle::{self, Boost, Idle};
use super::rules::inject::{self, Inject};
use super::rules::merge::{self, Merge};
use super::rules::protect::Protect;
use super::rules::raise::{self, Raise};
use super::rules::rate::{Method, Rate};
use super::rules::stream::Streams;
use super::rules::waker::{self, Wakers};
use crate::elevator::{Actuators, Limits};
use crate::parts::choose::BackSeek;
use crate::units::Duration;

/// `strict_guarantees` idles for so long at least.
//= linux-6.12 block/bfq-iosched.c bfq_strict_guarantees_store, docs/reference/bfq.md#43-strict-guarantees
const IDLE_STRICT: Duration = Duration::from_ms(8);

/// What an async request costs, in units of its length.
//= linux-6.12 block/bfq-iosched.c bfq_async_charge_factor, docs/reference/bfq.md#23-cost-of-a-request
const ASYNC_COST: u32 = 3;

/// What a brief slot counts as on a disk without a head; on others it is `slice_idle`.
//= linux-6.12 block/bfq-iosched.c BFQ_MIN_TT / 10, docs/reference/bfq.md#24-charge-by-time
const BRIEF_COUNTS_AS: Duration = Duration::from_ms(2);

/// What a brief slot counts as in the kernel, which does not look at the tunable.
//= linux-6.12 block/bfq-iosched.c bfq_slice_idle, docs/reference/bfq.md#b-kernel-quirks
const KERNEL_IDLE: Duration = Duration::from_ms(8);

/// The time for which B sectors are charged in the kernel, which does not look at the tunable.
//= docs/reference/bfq.md#b-kernel-quirks B11
const KERNEL_TIMEOUT: Duration = Duration::from_ms(125);

/// The tick of a kernel with 250 per second, where a rule counts ticks and clocks are exact.
const USUAL_TICK: Duration = Duration::from_ms(4);

impl Rules {
    /// The rules for a device of which nothing is known yet, and as many queues.
    pub(super) fn new(config: &Config, limits: &Limits, queues: usize) -> Self {
        let (slice_idle, timeout) = (slice_idle(config), whole_ticks(config.timeout_sync, config.tick));
        Self {
            bursts: Bursts::new(bursts(config), queues),
            depth: Depth::new(depth_threshold(config)),
            early: Early::new(early(config, timeout)),
            history: History { setting: history(config, slice_idle, limits.rotational) },
            merge: Merge::new(merge(config, limits.rotational)),
            protect: Protect::new(limits.rotational, config.ncq_protection, limits.tags),
            idle: Idle::new(idle(config, slice_idle, limits.rotational)),
            inject: Inject::new(inject(config, slice_idle, limits.rotational), queues),
            raise: Raise { setting: raise(config, slice_idle, limits.rotational) },
            rate: Rate::new(rate_method(config), limits.rotational),
            streams: Streams::new(streams(config), queues),
            wakers: Wakers::new(wakers(config, slice_idle), queues),
        }
    }

    /// Takes other tunables over, and keeps what the rules have found out.
    pub(super) fn retune(&mut self, config: &Config) {
        let (slice_idle, timeout) = (slice_idle(config), whole_ticks(config.timeout_sync, config.tick));
        self.bursts.setting = bursts(config);
        self.depth.threshold = depth_threshold(config);
        self.early.setting = early(config, timeout);
        self.history.setting = history(config, slice_idle, self.history.setting.rotational);
        self.protect.on = config.ncq_protection;
        self.idle.setting = idle(config, slice_idle, self.history.setting.rotational);
        self.merge.setting = merge(config, self.history.setting.rotational);
        self.judge();
        self.inject.setting = inject(config, slice_idle, self.inject.setting.rotational);
        self.raise.setting = raise(config, slice_idle, self.history.setting.rotational);
        self.rate.method = rate_method(config);
        self.streams.on = streams(config);
        self.wakers.setting = wakers(config, slice_idle);
    }
}

const fn bursts(config: &Config) -> burst::Setting {
    burst::Setting { on: config.bursts, counts_exited: !config.repairs }
}

const fn depth_threshold(config: &Config) -> u32 {
    if config.throughput_boost { depth::THRESHOLD } else { depth::THRESHOLD_2010 }
}

fn early(config: &Config, timeout: Duration) -> early::Setting {
    let timeout_async = whole_ticks(early::TIMEOUT_ASYNC, config.tick);
    early::Setting { on: !config.fair_writes, timeout, timeout_async }
}

fn history(config: &Config, slice_idle: Duration, rotational: bool) -> history::Setting {
    let (seeks, short) = if config.throughput_boost {
        (history::Method::Marks, slice_idle / 2)
    } else {
        (history::Method::MeanDistance, slice_idle)
    };
    history::Setting { seeks, ever: slice_idle * 2, short, rotational, wraps: !config.repairs }
}

const fn merge(config: &Config, rotational: bool) -> merge::Setting {
    merge::Setting {
        by_position: config.queue_merge,
        for_good: config.stable_merge,
        sorts: !rotational && config.ncq_flash,
        spares_streams: streams(config),
        as_kernel: !config.repairs,
    }
}

fn raise(config: &Config, slice_idle: Duration, rotational: bool) -> raise::Setting {
    //= deviates bfq-soft-ticks
    let tick = if config.tick.is_zero() { USUAL_TICK } else { config.tick };
    raise::Setting {
        on: config.low_latency,
        interactive: config.interactive,
        soft: config.soft_realtime,
        factor: config.wr_coeff,
        len: config.wr_max_time,
        soft_len: config.wr_rt_max_time,
        service_max: if config.wr_max_service.0 == 0 { u64::MAX } else { config.wr_max_service.0.into() },
        idle_min: config.wr_min_idle_time,
        async_quiet: config.wr_min_inter_arr_async,
        soft_rate: config.wr_max_softrt_rate,
        greedy_within: whole_ticks(slice_idle, config.tick) + tick * 4,
        tick: config.tick.max(Duration::from_ns(1)),
        rotational,
        as_kernel: !config.repairs,
    }
}

const fn rate_method(config: &Config) -> Method {
    if config.rate_estimator { Method::Intervals } else { Method::BestSlot }
}

const fn idle(config: &Config, slice_idle: Duration, rotational: bool) -> idle::Setting {
    let (unqueued, queued) = match rotational {
        _ if !config.throughput_boost => (Boost::Early, Boost::Early),
        true if config.ncq_random => (Boost::All, Boost::Sequential),
        true => (Boost::All, Boost::All),
        false if config.ncq_flash => (Boost::Sequential, Boost::None),
        false => (Boost::Sequential, Boost::Sequential),
    };
    idle::Setting {
        slice_idle,
        always: config.strict_guarantees,
        unqueued,
        queued,
        for_raised: config.ncq_latency,
        by_shares: config.asymmetric_idling,
        raised_first: config.pool_limits,
        raised_stream: streams(config),
    }
}

const fn inject(config: &Config, slice_idle: Duration, rotational: bool) -> inject::Setting {
    inject::Setting { on: config.injection, tries: config.repairs, slice_idle, rotational }
}

const fn streams(config: &Config) -> bool {
    //= deviates bfq-streams
    config.streams && config.low_latency
}

const fn wakers(config: &Config, slice_idle: Duration) -> waker::Setting {
    waker::Setting { on: config.wakers, slice_idle }
}

/// The actuators that have queues of their own, and the number of groups that are scheduled.
pub(super) fn size(config: &Config, limits: &Limits) -> (Actuators, u32) {
    let actuators = if config.actuators { limits.actuators } else { Actuators::default() };
    (actuators, if config.hierarchy { limits.groups } else { 1 })
}

impl Setting {
    /// What the engine is set to, on a device with a head or without one.
    pub(super) fn new(config: &Config, rotational: bool) -> Self {
        let (slice_idle, timeout) = (slice_idle(config), whole_ticks(config.timeout_sync, config.tick));
        let kernel = !config.repairs;
        Self {
            back: BackSeek {
                max: 2 * u64::from(config.back_seek_max.0),
                penalty: u64::from(config.back_seek_penalty),
            },
            fifo_expire: [config.fifo_expire_async, config.fifo_expire_sync],
            slice_idle,
            timeout,
            clock_runs_at_once: config.fair_writes,
            tick: config.tick,
            groups: config.hierarchy,
            strict: config.strict_guarantees,
            limits_tags: config.pool_limits,
            preempts: config.interactive || config.soft_realtime,
            budgets: if config.throughput_boost { Budgets::Factors } else { Budgets::Steps },
            max_budget: Some(config.max_budget.0).filter(|&sectors| sectors > 0),
            async_cost: if config.fair_writes { ASYNC_COST } else { 1 },
            brief_counts_as: match rotational {
                true if kernel => KERNEL_IDLE,
                true => slice_idle,
                false => BRIEF_COUNTS_AS,
            },
            charged_time: if kernel { whole_ticks(KERNEL_TIMEOUT, config.tick) } else { timeout },
            decides: true,
            as_kernel: kernel,
        }
    }
}

/// How long the disk idles for a queue.
fn slice_idle(config: &Config) -> Duration {
    if config.strict_guarantees { config.slice_idle.max(IDLE_STRICT) } else { config.slice_idle }
}

/// `d` rounded down to a multiple of `tick`, unless that is zero.
fn whole_ticks(d: Duration, tick: Duration) -> Duration {
    if tick.is_zero() { d } else { tick * (d / tick) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Tunables;
    use std::format;

    /// What a scheduler keeps from when it was made: `retune` refuses to change these.
    const FIXED: [&str; 4] = ["hierarchy", "actuators", "tick", "repairs"];

    #[test]
    fn a_tunable_reaches_the_rules_when_they_are_made_and_when_they_are_retuned() {
        let limits = Limits { rotational: true, ..Limits::default() };
        for t in Config::LIST.iter().filter(|t| !FIXED.contains(&t.name)) {
            for raw in [t.min, t.max] {
                let mut config = Config::default();
                config.set(t.name, raw).expect("in range");
                let made = Rules::new(&config, &limits, 4);
                let mut retuned = Rules::new(&Config::default(), &limits, 4);
                retuned.retune(&config);
                let (made, retuned) = (format!("{made:?}"), format!("{retuned:?}"));
                assert_eq!(made, retuned, "{} = {raw}: `new` and `retune` must set the same", t.name);
            }
        }
    }
}
