//! Which rules a scheduler has: chosen from its tunables once, when it is made or retuned.
//!
//! A switch of [`Config`] that turns a rule on, or to its form of another year, is looked at here and nowhere else. The rule has
//! the outcome as its own setting.

use super::config::Config;
use super::rules::Rules;
use super::rules::depth::{self, Depth};
use super::rules::rate::{Method, Rate};
use crate::elevator::Limits;

impl Rules {
    /// The rules for a device of which nothing is known yet.
    pub(super) fn new(config: &Config, limits: &Limits) -> Self {
        Self {
            depth: Depth::new(depth_threshold(config)),
            rate: Rate::new(rate_method(config), limits.rotational),
        }
    }

    /// Takes other tunables over, and keeps what the rules have found out.
    pub(super) fn retune(&mut self, config: &Config) {
        self.depth.threshold = depth_threshold(config);
        self.rate.method = rate_method(config);
    }
}

const fn depth_threshold(config: &Config) -> u32 {
    if config.throughput_boost { depth::THRESHOLD } else { depth::THRESHOLD_2010 }
}

const fn rate_method(config: &Config) -> Method {
    if config.rate_estimator { Method::Intervals } else { Method::BestSlot }
}
