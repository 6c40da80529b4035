//! A scheduler that is written here, outside the crates of the built-in ones, runs in the lab as they do:
//! over many seeds, with tunables by name, and as a candidate of the advice.

use fairhead_core::config::{ConfigError, Tunables};
use fairhead_core::sched::Scheduler;
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_core::sched::outside::{Factory, Of};
use fairhead_core::{Cx, Dispatch, Limits, Tag, tunables};
use fairhead_device::DeviceParams;
use fairhead_sim::advise::{Question, WORK_PER_S, advise};
use fairhead_sim::satisfaction::Emphasis;
use fairhead_sim::{Host, Scenario, job, simulate};

tunables! {
    /// For the tests.
    pub struct Config {
        /// 1: the request that came last goes first.
        pub reverse: bool = false, 0, 1;
    }
}

/// Order of arrival, or the reverse.
struct Stack {
    waiting: Vec<Tag>,
    config: Config,
}

impl Scheduler for Stack {
    const NAME: &'static str = "stack";
    type Config = Config;

    fn new(limits: Limits, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self { waiting: Vec::with_capacity(usize::from(limits.tags)), config })
    }
    fn insert(&mut self, _cx: &mut Cx<'_>, tag: Tag) {
        self.waiting.push(tag);
    }
    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Dispatch {
        self.drain(cx).map_or(Dispatch::Empty, Dispatch::Issue)
    }
    fn drain(&mut self, _cx: &mut Cx<'_>) -> Option<Tag> {
        match self.config.reverse {
            true => self.waiting.pop(),
            false => (!self.waiting.is_empty()).then(|| self.waiting.remove(0)),
        }
    }
    fn joined(&mut self, _cx: &mut Cx<'_>, _kept: Tag, gone: Tag) {
        self.waiting.retain(|t| *t != gone);
    }
}

static STACK: Of<Stack> = Of::new("order of arrival, or the reverse");
static OUTSIDE: [&dyn Factory; 1] = [&STACK];

const JOBS: &str = "[readers]\nrw=randread\nbs=4k\nsize=256m\niodepth=16\nioengine=libaio\ndirect=1\n\
                    runtime=500ms\ntime_based\n[writer]\nrw=write\nbs=64k\nsize=64m\ndirect=1\n\
                    runtime=500ms\ntime_based\n";

fn scenario(scheduler: &str, reverse: u64, seed: u64) -> Scenario {
    let mut named = Catalogue::new(&OUTSIDE).unwrap().find(scheduler).unwrap();
    if matches!(named.config, AnyConfig::Outside(_)) {
        named.config.set("reverse", reverse).unwrap();
    }
    Scenario {
        seed,
        ..Scenario::new(
            job::parse(JOBS, "test").unwrap(),
            DeviceParams::preset("ide2004").unwrap(),
            Host::for_disk("ide2004"),
            named.name,
            named.config,
        )
    }
}

fn text(scenario: &Scenario) -> String {
    format!("{:?}", simulate(scenario).unwrap())
}

#[test]
fn a_scenario_with_it_can_be_cloned_and_run_again_over_many_seeds() {
    let mut all = Vec::new();
    for seed in 1..4 {
        let scenario = scenario("stack", 0, seed);
        let first = text(&scenario);
        assert_eq!(text(&scenario.clone()), first, "the same scenario gives the same bytes");
        let on_another_thread = std::thread::spawn(move || text(&scenario)).join().unwrap();
        assert_eq!(on_another_thread, first);
        assert!(!all.contains(&first), "the seed has an effect");
        all.push(first);
    }
    assert!(!all.contains(&text(&scenario("stack", 1, 1))), "the tunable has an effect");
}

#[test]
fn advice_has_it_as_a_candidate() {
    let scenario = scenario("stack", 0, 1);
    let find = |name: &str| Catalogue::new(&OUTSIDE).unwrap().find(name).unwrap();
    let question = Question {
        jobs: scenario.jobs,
        disk: scenario.disk,
        host: scenario.host,
        emphasis: Emphasis::Even,
        seed: 1,
        work: WORK_PER_S * 60,
        rounds: Some(1),
        against: Some(find("stack")),
        only: Some(vec![find("mq-deadline"), find("stack")]),
    };
    let (_, advice) = advise(&question, 2, &(), &|_| {}).unwrap().unwrap();
    let names: Vec<String> = advice.candidates.iter().map(|c| c.name()).collect();
    assert_eq!(names, ["stack", "mq-deadline"]);
    let unasked = Question { against: preset("mq-deadline").map(Into::into), only: None, ..question };
    let (_, advice) = advise(&unasked, 2, &(), &|_| {}).unwrap().unwrap();
    assert!(advice.candidates.iter().all(|c| c.preset != "stack"), "only if it is asked for");
}
