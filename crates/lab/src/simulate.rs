//! One run of a plan, with everything that is wanted beside its outcome.

use fairhead_core::Duration;
use fairhead_core::sched::any::shown;
use fairhead_report::{Participants, Recorder, Recording};
use fairhead_sim::journal::{Sink, Sinks, fio_log};
use fairhead_sim::satisfaction::{Alone, Emphasis, Load};
use fairhead_sim::sweep::Base;
use fairhead_sim::{Outcome, Scenario, SimError, journal, simulate, why};

use crate::plan::{Plan, Why};

/// What is wanted beside outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The clients whose time is to be explained.
    pub why: Option<&'a Why>,
    /// Whether to record what pictures need.
    pub pictures: bool,
}

/// What came of one scenario.
#[derive(Debug)]
pub struct One {
    /// The figures.
    pub outcome: Outcome,
    /// Where the time went, if that was wanted.
    pub why: Option<why::Report>,
    /// What pictures need, if they were wanted.
    pub pictured: Option<Recording>,
    /// fio's logs, if the jobs ask for them.
    pub logs: Option<fio_log::Recorder>,
}

/// Simulates one scenario, and passes its events to all recorders and to `sink`.
///
/// # Errors
/// If the scenario is impossible: see [`SimError`].
pub fn one(scenario: &Scenario, wanted: Wanted<'_>, sink: Option<&mut dyn Sink>) -> Result<One, SimError> {
    let mut recorder = wanted.pictures.then(|| Recorder::new(Participants::new(&scenario.jobs)));
    let has_logs = scenario.jobs.jobs.iter().any(|j| !j.logs.is_empty());
    let mut logs = has_logs.then(|| fio_log::Recorder::new(&scenario.jobs));
    let mut sinks = Sinks::default();
    sinks.0.extend(logs.as_mut().map(|r| r as &mut dyn Sink));
    if let Some(sink) = sink {
        sinks.0.push(sink);
    }
    sinks.0.extend(recorder.as_mut().map(|r| r as &mut dyn Sink));
    let (outcome, why) = match (wanted.why, sinks.0.is_empty()) {
        (None, true) => (simulate(scenario)?, None),
        (None, false) => (journal::record(scenario, &mut sinks)?, None),
        (Some(why), _) => {
            why::answer(scenario, &why.clients, why.when, &mut sinks).map(|(o, why)| (o, Some(why)))?
        }
    };
    Ok(One { outcome, why, pictured: recorder.map(Recorder::finish), logs })
}

/// What each job of a plan gets alone over the time of the longest of these runs, for pages and pictures.
///
/// # Errors
/// If a job does not fit its disk.
pub fn alone(plan: &Plan, outcomes: &[Outcome], threads: usize) -> Result<Base, SimError> {
    let longest = outcomes.iter().map(|o| o.elapsed).max().unwrap_or_default();
    // So that what ends with the longest run was not cut off.
    let load = Load::new(&plan.jobs, longest + Duration::from_ns(1), &Emphasis::Even);
    let first = plan.schedulers.first().ok_or_else(|| SimError::Group("no scheduler".to_owned()))?;
    let base = Scenario { watch: None, interval: None, ..plan.scenario(first) };
    let alone = Alone::measure(&load, &base, threads)?;
    Ok(Base { load, alone })
}

/// Names the schedulers of an outcome as users know them: `none`, not `noop`.
pub fn name_as_shown(outcome: &mut Outcome) {
    let of_disks = outcome.disks.iter_mut().map(|d| &mut d.scheduler);
    for name in of_disks.chain([&mut outcome.scheduler]) {
        *name = shown(name).to_owned();
    }
}
