//! Tunables that change while requests wait.
//!
//! What the scheduler was sized for stays: groups, actuators, the steps of its clocks, and whether the
//! kernel's rules are repaired. All else takes effect at the next decision that asks for it; a slot or an
//! idle period that has begun ends as it began. With `low_latency` off, or other factors, no queue is raised
//! any more; their weights follow when they are next put on a tree.
//
//= linux-6.12 block/bfq-iosched.c bfq_low_latency_store, bfq_strict_guarantees_store, bfq_max_budget_store
//= docs/reference/bfq.md#713-tunables-and-shutdown

use super::Bfq;
use super::config::Config;
use super::engine::setting::Setting;
use crate::config::{ConfigError, Tunables};
use crate::elevator::Cx;

impl Bfq {
    /// Takes other tunables over; answers whether they are such as can be.
    pub(super) fn retune(&mut self, cx: &mut Cx<'_>, config: Config) -> Result<bool, ConfigError> {
        config.validate()?;
        let old = core::mem::replace(&mut self.config, config);
        let fixed = |c: &Config| (c.hierarchy, c.actuators, c.tick, c.repairs);
        if fixed(&old) != fixed(&config) {
            self.config = old;
            return Ok(false);
        }
        let setting = Setting::new(&config, self.limits.rotational);
        self.setting = Setting { decides: self.setting.decides, ..setting };
        self.rules.retune(&config);
        self.rules_retuned(cx);
        let slot_rules = |c: &Config| (c.max_budget, c.timeout_sync, c.throughput_boost);
        if slot_rules(&old) != slot_rules(&config) {
            self.recompute_bmax();
        }
        if let Some(q) = self.in_service.filter(|_| old.fair_writes != config.fair_writes) {
            self.start_slot(cx.now, q);
        }
        let idles = |c: &Config| (c.slice_idle, c.strict_guarantees);
        if idles(&old) != idles(&config) {
            self.idles_less = false;
        }
        if !config.low_latency || old.wr_coeff != config.wr_coeff {
            self.end_all_raising(cx);
        }
        Ok(true)
    }

    /// No queue is raised any more.
    fn end_all_raising(&mut self, cx: &mut Cx<'_>) {
        for q in self.all_queues() {
            let queue = &self.queues[q];
            if queue.in_use && queue.raise.is_raised() {
                self.end_raising(cx, q);
            }
        }
        // What a split would give back is not raised either.
        for (_, link) in self.links.iter_mut() {
            if let Some(saved) = &mut link.saved {
                saved.raise.forget();
            }
        }
    }
}
