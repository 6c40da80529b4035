//! The controller's tunables, and those of the scheduler under it, as one list.

use crate::config::{ConfigError, Tunable, Tunables, Unit};
use crate::parts::fair_tree::Engine;
use crate::units::Duration;
use crate::{choice, tunables};

choice! {
    /// The service that groups share, and are charged.
    pub enum Charge {
        /// Time; on devices without a head that queue requests, sectors, unless `fairness` asks for more.
        Auto = "auto";
        /// Disk time.
        Time = "time";
        /// Sectors.
        Sectors = "sectors";
        /// Requests.
        Requests = "requests";
    }
}

/// The longest time of a tunable: a day, longer than any useful value.
const MAX_TIME: u64 = 86_400_000_000_000;

tunables! {
    /// The controller's own tunables.
    pub struct Layer {
        /// How the tree of groups chooses: cfs (the least service for its weight first; V8 to V10 of the
        /// controller) or wf2q (B-WF2Q+, V1 to V7: heavy and light groups take turns more evenly). Default
        /// cfs.
        pub engine: Engine = Engine::DiskTime, 0, 1;
        /// 0: throughput first. 1: also keep groups apart that only write, and flash that queues requests:
        /// slices and idling there, too. 2: a group's slice begins when the device has finished the requests
        /// of the others. Default 0.
        //= docs/reference/groups.md#5-slices-idling-and-expiry fairness
        pub fairness: u32 = 0, 0, 2;
        /// How long a group has the disk at a time. Default 100 ms.
        //= linux-2.6.33 block/cfq-iosched.c cfq_slice_sync
        pub group_slice: Duration = Duration::from_ms(100), 1_000_000, MAX_TIME;
        /// How long the disk is kept idle for the next request of a group that has run empty, if its tasks
        /// usually think for no longer. Without it a group that blinks loses its share; 0: no idling. Default
        /// 8 ms.
        //= linux-4.20 block/cfq-iosched.c cfq_group_idle
        pub group_idle: Duration = Duration::from_ms(8), 0, MAX_TIME;
        /// The time in which each group with requests should have its turn: with many, slices shrink, down to
        /// twice group_idle. 0: they do not. Default 300 ms.
        //= linux-4.20 block/cfq-iosched.c cfq_target_latency
        pub group_target: Duration = Duration::from_ms(300), 0, MAX_TIME;
        /// How many requests of a kind, sync or async, a group may have in the elevator and at the device.
        /// Default 128.
        //= docs/reference/groups.md#8-request-descriptors-per-group
        pub group_requests: u32 = 128, 1, 65_535;
        /// What groups share: time, sectors or requests; auto is time, but sectors on flash that queues
        /// requests. Default auto.
        pub charge: Charge = Charge::Auto, 0, 3;
        /// Where groups share the device by sectors or requests at the same time, not by slices: how many
        /// requests of one group go in a row. Default 4.
        pub group_quantum: u32 = 4, 1, 65_535;
    }
}

/// The controller's tunables and those of the scheduler under it. Where both have one of a name, as CFQ has
/// `group_idle`, setting it sets both: what a group does that is alone, the scheduler decides as by itself
/// with the same tunables.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Config<C> {
    /// The controller's.
    pub layer: Layer,
    /// The scheduler's.
    pub inner: C,
}

impl<C> Config<C> {
    /// The controller's defaults over these.
    pub fn over(inner: C) -> Self {
        Self { layer: Layer::default(), inner }
    }
}

/// More than any scheduler has together with the controller.
const LIST_MAX: usize = 64;

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

const fn has(list: &[Tunable], name: &str) -> bool {
    let mut i = 0;
    while i < list.len() {
        if is_same(list[i].name, name) {
            return true;
        }
        i += 1;
    }
    false
}

/// The first list, what the second has besides, and how many these are.
const fn concat(first: &[Tunable], second: &[Tunable]) -> ([Tunable; LIST_MAX], usize) {
    let mut all = [Tunable { name: "", unit: Unit::Count, min: 0, max: 0, effect: "" }; LIST_MAX];
    let mut len = 0;
    while len < first.len() {
        all[len] = first[len];
        len += 1;
    }
    let mut i = 0;
    while i < second.len() {
        if !has(first, second[i].name) {
            all[len] = second[i];
            len += 1;
        }
        i += 1;
    }
    (all, len)
}

impl<C: Tunables> Config<C> {
    const ALL: &'static ([Tunable; LIST_MAX], usize) = &concat(Layer::LIST, C::LIST);
}

impl<C: Tunables> Tunables for Config<C> {
    const LIST: &'static [Tunable] = Self::ALL.0.split_at(Self::ALL.1).0;

    fn get(&self, name: &str) -> Option<u64> {
        self.layer.get(name).or_else(|| self.inner.get(name))
    }

    fn set(&mut self, name: &str, raw: u64) -> Result<(), ConfigError> {
        let (layer, inner) = (has(Layer::LIST, name), has(C::LIST, name));
        if layer {
            self.layer.set(name, raw)?;
        }
        if inner || !layer { self.inner.set(name, raw) } else { Ok(()) }
    }
}
