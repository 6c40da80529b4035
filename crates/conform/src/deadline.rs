//! mq-deadline beside the kernel's: the same arrivals and completions, and which request each sends next.
//!
//! The kernel's log tells no classes: the header does, or the load's commands (see [`super::load`]). It tells
//! no attempts, either, so ours is asked whenever the kernel sends a request. What it answers differently is
//! put right by sending the kernel's request too: requests that ours sent ahead of the kernel are held back
//! by the harness until the kernel sends them, and then count as agreed upon no more.

use super::first_reads::FirstReads;
use super::header::Header;
use super::line::Io;
use super::log::LogError;
use super::report::{Tally, Topic};
use super::reruns::Reruns;
use super::step::{Kind, Step};
use super::steps::Steps;
use super::tags::Tags;
use fairhead_core::sched::mq_deadline::{Config, MqDeadline};
use fairhead_core::{Class, Dispatch, Duration, Elevator, Instant, IoPrio, Limits, Request, TaskId};
use std::collections::BTreeMap;
use std::io::BufRead;

/// More than `nr_requests` ever is, many times over.
const TAGS: u16 = 8192;

/// The replay of one log.
struct Replay {
    elevator: Elevator<MqDeadline>,
    tags: Tags,
    tally: Tally,
    header: Header,
    /// The class of each task that has sent a request.
    classes: BTreeMap<u32, Class>,
    /// When the kernel asks again by itself.
    reruns: Reruns,
    reads: FirstReads,
    /// Its next turn, after an attempt that gave nothing although requests wait.
    due: Option<Instant>,
}

/// Replays the log.
pub(super) fn compare<R: BufRead>(
    mut steps: Steps<R>,
    reruns: Reruns,
    reads: FirstReads,
    progress: &mut dyn FnMut(u64),
) -> Result<(Tally, u64), LogError> {
    let limits = Limits { tags: TAGS, queue_depth: TAGS, ..Limits::default() };
    let header = steps.log().header().clone();
    let config = config(&header);
    let mut elevator = Elevator::new(limits, config).map_err(|e| steps.log().error_at(0, &e.to_string()))?;
    elevator.override_state(Instant::EPOCH, |mq: &mut MqDeadline, _| mq.age_as_the_kernel());
    let mut replay = Replay {
        elevator,
        tags: Tags::new(TAGS),
        tally: Tally::default(),
        header,
        classes: BTreeMap::new(),
        reruns,
        reads,
        due: None,
    };
    while let Some(step) = steps.next_step()? {
        replay.step(&step).map_err(|message| steps.log().error_at(step.line, &message))?;
        progress(steps.log().bytes());
    }
    Ok((replay.tally, steps.log().lost()))
}

/// The tunables of the header; the kernel's defaults for those that are not there.
fn config(header: &Header) -> Config {
    let default = Config::default();
    let ms = |name, default| header.time(name, Duration::from_ms(1)).unwrap_or(default);
    let count = |name, default| header.setting(name).and_then(|v| u32::try_from(v).ok()).unwrap_or(default);
    Config {
        read_expire: ms("read_expire", default.read_expire),
        write_expire: ms("write_expire", default.write_expire),
        prio_aging_expire: ms("prio_aging_expire", default.prio_aging_expire),
        writes_starved: count("writes_starved", default.writes_starved),
        fifo_batch: count("fifo_batch", default.fifo_batch),
        front_merges: header.setting("front_merges").map_or(default.front_merges, |v| v != 0),
        ..default
    }
}

impl Replay {
    fn step(&mut self, step: &Step) -> Result<(), String> {
        while let Some(due) = self.due.filter(|due| *due <= step.at) {
            self.ask(due);
        }
        match step.kind {
            Kind::Insert(io) if io.len > 0 => self.insert(step, &io)?,
            Kind::Merge(io) if io.len > 0 && self.tags.neighbour(&io).is_some() => self.insert(step, &io)?,
            Kind::Issue(io) => self.issue(step, &io),
            Kind::Complete(io) => {
                if let Some(tag) = self.tags.completed(&io) {
                    let freed: Vec<_> = self.elevator.complete(self.reruns.clock(step.at), tag).collect();
                    self.tags.free(&freed);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn insert(&mut self, step: &Step, io: &Io) -> Result<(), String> {
        let rq = self.request(step.thread.pid, io)?;
        let tag = self.tags.claim().ok_or("more requests at a time than any device has tags")?;
        let inserted = self.elevator.insert(self.reruns.clock(step.at), tag, rq);
        self.tags.inserted(tag, rq, inserted, self.elevator.requests());
        self.ask(step.at);
        Ok(())
    }

    /// The kernel asks, and if that gives nothing although requests wait, it asks again at the next tick.
    fn ask(&mut self, at: Instant) {
        let now = self.reruns.clock(at);
        let is_vain = self.elevator.override_state(now, |mq, cx| mq.asked_in_vain(cx.requests, now));
        self.due = is_vain.then(|| self.reruns.after(at));
    }

    /// The request, of its task's class.
    fn request(&mut self, pid: u32, io: &Io) -> Result<Request, String> {
        let class = match self.classes.get(&pid) {
            Some(class) => *class,
            None => {
                let owner = self.header.owner(pid, self.reads.place(pid, io.start), None)?;
                *self.classes.entry(pid).or_insert(owner.class.unwrap_or(Class::BestEffort))
            }
        };
        let rq = io.request(TaskId(pid));
        Ok(Request { prio: IoPrio::new(class, rq.prio.level), ..rq })
    }

    /// Asks ours until the kernel's request is out.
    fn issue(&mut self, step: &Step, io: &Io) {
        let Some(theirs) = self.tags.queued(io) else {
            // Sent ahead of the kernel, or there before the log began.
            return;
        };
        self.tally.requests += 1;
        let mut first = None;
        while let Dispatch::Issue(tag) = self.elevator.dispatch(self.reruns.clock(step.at)) {
            first.get_or_insert(tag);
            self.tags.issued(tag);
            if tag == theirs {
                break;
            }
        }
        self.ask(step.at);
        if first == Some(theirs) {
            self.tally.agree(Topic::Requests);
        } else {
            let elevator = &self.elevator;
            self.tally.differ(Topic::Requests, step.line, &step.text, || {
                let ours =
                    first.map_or("none".to_owned(), |tag| format!("{:?}", elevator.requests()[tag].rq));
                (ours, format!("{} requests wait", elevator.requests().queued()))
            });
        }
    }
}
