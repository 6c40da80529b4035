//! The requests of a run, as columns.

use fairhead_core::{Duration, Reason};
use fairhead_sim::journal::{Request, Run, Sink};

use crate::columns::Columns;

/// What happened to each request of a run.
#[derive(Default)]
pub(crate) struct Requests {
    tasks: Vec<String>,
    all: Vec<Request>,
}

impl Sink for Requests {
    fn begins(&mut self, run: &Run) {
        self.tasks = run.tasks.iter().map(|t| t.name.clone()).collect();
    }

    fn request(&mut self, request: &Request) {
        self.all.push(*request);
    }
}

impl Requests {
    fn task(&self, request: &Request) -> &str {
        self.tasks.get(request.task.0 as usize).map_or("nobody", String::as_str)
    }
}

/// The requests of several runs, each with the name of its scheduler.
pub(crate) fn table(runs: &[(String, Requests)]) -> Columns {
    let mut table = Columns::new(runs.iter().map(|(_, r)| r.all.len()).sum());
    let all = || runs.iter().flat_map(|(name, r)| r.all.iter().map(move |rq| (name, r, rq)));
    let time =
        |of: fn(&Request) -> Option<Duration>| all().map(move |(_, _, rq)| of(rq).map(Duration::as_ns));
    table.texts("scheduler", all().map(|(name, _, _)| name));
    table.counts("id", all().map(|(_, _, rq)| rq.id));
    table.counts("disk", all().map(|(_, _, rq)| u64::from(rq.member)));
    table.texts("task", all().map(|(_, r, rq)| r.task(rq)));
    table.numbers("call", all().map(|(_, _, rq)| rq.call));
    table.texts("op", all().map(|(_, _, rq)| format!("{:?}", rq.kind.op).to_lowercase()));
    table.counts("sync", all().map(|(_, _, rq)| u64::from(rq.kind.sync)));
    table.counts("sector", all().map(|(_, _, rq)| rq.sector.0));
    table.counts("sectors", all().map(|(_, _, rq)| u64::from(rq.sectors.0)));
    table.numbers("made_ns", time(|rq| Some(rq.made)));
    table.numbers("inserted_ns", time(|rq| rq.inserted));
    table.numbers("issued_ns", time(|rq| rq.issued));
    table.numbers("finished_ns", time(|rq| rq.finished));
    table.numbers("completed_ns", time(|rq| rq.completed));
    table.numbers("merged_into", all().map(|(_, _, rq)| rq.merged_into));
    let reason = |reason| if reason == Reason::None { String::new() } else { format!("{reason:?}") };
    table.texts("chosen", all().map(|(_, _, rq)| reason(rq.chosen)));
    table
}
