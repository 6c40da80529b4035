//! What a plan is made of.

use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_sim::journal::{self, Caps, Collector};
use fairhead_sim::metrics::ClientStats;
use fairhead_sim::{Host, Outcome, Scenario, SimError, job, simulate, why};

/// A plan in the making: a load, a disk, a host, and the schedulers to try.
pub(crate) struct Plan {
    told: Vec<String>,
    scenario: Scenario,
    outcome: Option<Outcome>,
}

impl Plan {
    /// A machine: a built-in disk with the host of its time, and deadline.
    pub(crate) fn on(disk: &str) -> Self {
        let scheduler = "deadline";
        let scenario = Scenario {
            interval: Some(Duration::from_secs(1)),
            time_max: Some(Duration::from_secs(3600)),
            ..Scenario::new(
                job::parse("[none]\nsize=4k\n", "plan").expect("a valid job file"),
                DeviceParams::preset(disk).expect("a built-in disk"),
                Host::for_disk(disk),
                scheduler,
                (preset(scheduler).expect("a built-in scheduler").config)(),
            )
        };
        Self { told: vec![format!("on {disk}")], scenario, outcome: None }
    }

    fn tell(mut self, what: &str) -> Self {
        self.told.push(what.to_owned());
        self
    }

    /// Another scheduler.
    pub(crate) fn scheduler(mut self, name: &str) -> Self {
        self.scenario.scheduler = name.into();
        self.scenario.config = (preset(name).expect("a built-in scheduler").config)();
        self.tell(&format!("under {name}"))
    }

    /// A tunable of the scheduler.
    pub(crate) fn set(mut self, name: &str, value: u64) -> Self {
        self.scenario.config.set(name, value).expect("a tunable within its range");
        self.tell(&format!("with {name} = {value}"))
    }

    /// A change of the host, and why.
    pub(crate) fn host(mut self, why: &str, change: impl FnOnce(&mut Host)) -> Self {
        change(&mut self.scenario.host);
        self.tell(why)
    }

    /// A change of the disk, and why.
    pub(crate) fn disk(mut self, why: &str, change: impl FnOnce(&mut DeviceParams)) -> Self {
        change(&mut self.scenario.disk);
        self.tell(why)
    }

    /// Another seed.
    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.scenario.seed = seed;
        self.tell(&format!("with seed {seed}"))
    }

    /// Ends the run after `ms` milliseconds, whatever is in flight.
    pub(crate) fn stop_at(mut self, ms: u64) -> Self {
        self.scenario.time_max = Some(Duration::from_ms(ms));
        self.tell(&format!("for {ms} ms"))
    }

    /// Samples the disk time of groups every `ms` milliseconds.
    pub(crate) fn watch(mut self, ms: u64) -> Self {
        self.scenario.watch = Some(Duration::from_ms(ms));
        self.tell(&format!("watched every {ms} ms"))
    }

    /// The load, as a job file, and what it is.
    pub(crate) fn load(mut self, what: &str, text: &str) -> Self {
        self.scenario.jobs = job::parse(text, "plan").unwrap_or_else(|e| panic!("{e}"));
        self.tell(what)
    }

    /// Runs with a recorded start-up, which replaces any trace that the job file names.
    pub(crate) fn traced(self, what: &str, text: &str, trace: &str) -> Self {
        let mut plan = self.load(what, text);
        let read = plan.scenario.jobs.read_traces(|_| Ok(trace.as_bytes().to_vec()));
        read.unwrap_or_else(|e| panic!("{e}"));
        plan
    }

    /// Runs it.
    pub(crate) fn run(mut self) -> Self {
        self.outcome =
            Some(simulate(&self.scenario).unwrap_or_else(|e| panic!("{}: {e}", self.told.join(", "))));
        self
    }

    /// Runs it, and says where the time of these clients went. Both ways of running must come to the same.
    pub(crate) fn explain(mut self, clients: &[usize]) -> (Self, why::Report) {
        self = self.run();
        let (outcome, report) = why::explain(&self.scenario, clients).expect("it ran");
        assert!(outcome == *self.outcome(), "{}: being watched changes the outcome", self.told.join(", "));
        (self, report)
    }

    /// Runs it, and says where the time of these clients went, in a part of the run apart. The outcome must
    /// be the same.
    pub(crate) fn answer(mut self, clients: &[usize], when: why::When) -> (Self, why::Report) {
        if self.outcome.is_none() {
            self = self.run();
        }
        let nobody = &mut journal::Sinks::default();
        let (outcome, report) = why::answer(&self.scenario, clients, when, nobody).expect("it ran");
        assert!(outcome == *self.outcome(), "{}: being asked changes the outcome", self.told.join(", "));
        (self, report)
    }

    /// Runs it, and says what happened. Both ways of running must come to the same.
    pub(crate) fn record(mut self) -> (Self, Collector) {
        if self.outcome.is_none() {
            self = self.run();
        }
        let mut journal = Collector::new(Caps::each(4_000_000));
        let outcome = journal::record(&self.scenario, &mut journal).expect("it ran");
        assert!(outcome == *self.outcome(), "{}: recording changes the outcome", self.told.join(", "));
        (self, journal)
    }

    /// Expects that it cannot be run.
    pub(crate) fn refused(self) -> SimError {
        match simulate(&self.scenario) {
            Err(e) => e,
            Ok(_) => panic!("{}: runs, but should not", self.told.join(", ")),
        }
    }

    /// Why it cannot be run, if so.
    pub(crate) fn error(&self) -> Option<String> {
        let mut short = self.scenario.clone();
        short.time_max = Some(Duration::from_ns(1));
        simulate(&short).err().map(|e| e.to_string())
    }

    /// How many clients the load has.
    pub(crate) fn clients(&self) -> usize {
        self.scenario.jobs.client_count()
    }

    /// What must hold.
    pub(crate) fn check(self, what: &str, holds: impl FnOnce(&Outcome) -> bool) -> Self {
        let o = self.outcome();
        assert!(
            holds(o),
            "{}: {what} does not hold\n{:?}\n{:?}\n{:#?}",
            self.told.join(", "),
            o.cache,
            o.disk,
            o.clients.iter().map(|c| (&c.name, c.elapsed, c.bytes(), c.latency_max())).collect::<Vec<_>>()
        );
        self.tell(what)
    }

    /// What came of it.
    pub(crate) fn outcome(&self) -> &Outcome {
        self.outcome.as_ref().expect("run() comes first")
    }

    /// How many calls all clients made.
    pub(crate) fn calls(&self) -> u64 {
        let of = |c: &ClientStats| c.read.calls + c.write.calls + c.trim.calls + c.sync.calls;
        self.outcome().clients.iter().map(of).sum()
    }
}

/// MiB in bytes.
pub(crate) const MIB: u64 = 1 << 20;
