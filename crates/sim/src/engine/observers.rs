//! Observers of a run: books of where time goes, and the journal. Most runs have none.

use super::lane::Lane;
use super::tap::out_of_line;
use super::{Machine, Scenario};
use crate::job::DiskId;
use crate::journal::{self, Sink};
use crate::metrics::{Outcome, Result};
use crate::why::{self, Recorder};
use fairhead_core::{Duration, GroupId};
use std::cell::RefCell;
use std::rc::Rc;

/// Books of where the time of some clients goes, of a part of the run apart if one is asked about.
#[derive(Clone, Copy)]
pub(crate) struct Books<'b> {
    pub(crate) clients: &'b [usize],
    pub(crate) window: Option<why::Window>,
    /// Calls that took longer are not told among the slowest.
    pub(crate) ceiling: Option<Duration>,
}

/// Simulates; keeps books, and tells a sink what happens.
pub(crate) fn observe<'a>(
    scenario: &'a Scenario,
    books: Option<Books<'_>>,
    sink: Option<&'a mut dyn Sink>,
) -> Result<(Outcome, Option<why::Report>)> {
    let mut machine = Machine::new(scenario, TRACE)?;
    let run = machine.describe(scenario);
    let books = books.map(|books| machine.books(&run, books));
    machine.keeps_books = books.is_some();
    machine.journal = sink.map(|sink| Rc::new(RefCell::new(machine.begin_journal(&run, sink))));
    machine.disks.listen(books, machine.journal.clone());
    machine.run(scenario)
}

/// Events of the elevator that are kept until its call is over: more than any one call makes.
const TRACE: u32 = 1 << 14;

impl<'a> Machine<'a> {
    /// What is known of the run beforehand.
    fn describe(&self, scenario: &Scenario) -> journal::Run {
        // Task 0 stands for no task.
        let unowned =
            |name: &str| journal::Task { name: name.to_owned(), client: None, group: GroupId::ROOT };
        let client = |(i, c): (usize, crate::job::Client<'_>)| journal::Task {
            name: match c.job.numjobs {
                1 => c.job.name.clone(),
                _ => format!("{}.{}", c.job.name, c.clone),
            },
            client: Some(i),
            group: self.clients[i].group,
        };
        let mut tasks = vec![unowned("nobody")];
        tasks.extend(scenario.jobs.clients().enumerate().map(client));
        tasks.extend(self.flushers.threads.iter().map(|_| unowned("the flusher")));
        let facts = self.disks.facts(DiskId::default());
        journal::Run {
            scheduler: scenario.scheduler.clone(),
            seed: scenario.seed,
            tasks,
            groups: scenario.jobs.cgroups.iter().map(|g| g.path.clone()).collect(),
            members: self.disks.members(),
            capacity: facts.capacity,
            rotational: facts.rotational,
            queue_depth: facts.queue_depth,
        }
    }

    /// Books for some clients.
    fn books(&self, run: &journal::Run, books: Books<'_>) -> Recorder {
        let names = run.tasks.iter().map(|t| t.name.clone()).collect();
        let task_of = self.lanes.iter().map(|l| self.clients[l.client as usize].task).collect();
        let mut recorder = Recorder::new(names, task_of);
        recorder.keeps(self.disks.disk_of_members(), self.disks.labels());
        if let Some(window) = books.window {
            recorder.asks_about(window);
        }
        recorder.tells_up_to(books.ceiling);
        for &i in books.clients {
            let client = &self.clients[i];
            recorder.watch(i, client.task, client.first_lane, client.all_lanes);
        }
        recorder
    }

    fn begin_journal(&self, run: &journal::Run, sink: &'a mut dyn Sink) -> journal::Recorder<'a> {
        let lane = |l: &Lane| (l.client as usize, self.clients[l.client as usize].first_lane);
        journal::Recorder::new(run, self.lanes.iter().map(lane), sink)
    }

    /// Calls the journal, if one is kept.
    #[inline]
    pub(super) fn journal(&self, tell: impl FnOnce(&mut journal::Recorder<'a>)) {
        if let Some(journal) = &self.journal {
            out_of_line(|| tell(&mut journal.borrow_mut()));
        }
    }

    /// Calls the books, if any are kept.
    #[inline]
    pub(super) fn why(&mut self, tell: impl FnOnce(&mut Recorder)) {
        if self.keeps_books {
            out_of_line(|| self.disks.why().map(|mut why| tell(&mut why)));
        }
    }
}
