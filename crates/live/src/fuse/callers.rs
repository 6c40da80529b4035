//! The client behind a thread, for the scheduler: its I/O priority, and its cgroup as a group.
//!
//! A look-up takes some 10 us, so its result is kept for a second. A thread may have ended by the time that
//! its request is here, and then has no entry in `/proc`; the last result counts, unless its number belongs
//! to another thread by then, which started at another time.
//!
//! Pages that are written back have no thread: the kernel reports thread 0. They belong to the thread that
//! last wrote to that file, or opened it to write.

use crate::engine::Context;
use fairhead_core::Control;
use fairhead_core::units::{Class, Duration, GroupId, Instant, IoPrio, TaskId};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs;

/// On whose account something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Who {
    pub(crate) task: TaskId,
    pub(crate) group: GroupId,
    pub(crate) prio: IoPrio,
    pub(crate) sync: bool,
}

/// How long the result of a look-up is used.
const GOOD: Duration = Duration::from_secs(1);
/// The most threads, and files with a writer, that are remembered.
const MOST: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Known {
    until: Instant,
    /// When the thread started, in ticks.
    start: u64,
    who: Who,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Callers {
    threads: HashMap<u32, Known>,
    /// The keys of `threads`, in the order in which they are looked up again.
    round: VecDeque<u32>,
    /// By node.
    writers: HashMap<u64, Who>,
}

const UNKNOWN: Who = Who {
    task: TaskId(0),
    group: GroupId::ROOT,
    prio: IoPrio { class: Class::BestEffort, level: 4 },
    sync: false,
};

impl Callers {
    /// Returns the task, group and priority of a thread that reads or writes this node.
    pub(crate) fn who(&mut self, context: &mut Context, thread: u32, node: u64, writes: bool) -> Who {
        self.forget_groups(&context.groups.take_gone());
        if thread == 0 {
            let who = self.writers.get(&node).copied().unwrap_or(UNKNOWN);
            return Who { sync: !writes, ..who };
        }
        let who = self.thread(context, thread);
        if writes {
            if self.writers.len() >= MOST {
                self.writers.clear();
            }
            self.writers.insert(node, who);
        }
        who
    }

    fn thread(&mut self, context: &mut Context, thread: u32) -> Who {
        let now = context.now;
        let known = self.threads.get(&thread).copied();
        if let Some(known) = known.filter(|k| k.until > now) {
            return known.who;
        }
        let start = started(thread);
        let who = match (known, start) {
            // Gone, and what was known of it holds.
            (Some(known), None) => known.who,
            _ => {
                let name = fs::read_to_string(format!("/proc/{thread}/cgroup")).unwrap_or_default();
                let group = context.groups.of_caller(now, &mut context.queue, cgroup(&name));
                // To name it may have made others go, one of which may have had its number.
                self.forget_groups(&context.groups.take_gone());
                Who { task: TaskId(thread), group, prio: priority(thread), sync: true }
            }
        };
        let start = start.or(known.map(|k| k.start)).unwrap_or_default();
        if self.threads.insert(thread, Known { until: now + GOOD, start, who }).is_none() {
            self.round.push_back(thread);
        }
        (0..2).for_each(|_| self.look_after_one(context));
        who
    }

    /// These groups are no more, and their numbers may soon be others'.
    fn forget_groups(&mut self, gone: &BTreeSet<GroupId>) {
        if gone.is_empty() {
            return;
        }
        let forget = |who: &mut Who| {
            if gone.contains(&who.group) {
                who.group = GroupId::ROOT;
            }
        };
        self.writers.values_mut().for_each(forget);
        self.threads.values_mut().for_each(|known| forget(&mut known.who));
    }

    /// The scheduler forgets threads that are gone, or it would have no queue of their own for new ones some
    /// day. Each look-up looks after two, so that there are never many more than there are threads.
    fn look_after_one(&mut self, context: &mut Context) {
        let Some(thread) = self.round.pop_front() else { return };
        let known = self.threads[&thread];
        let is_here = known.until > context.now || started(thread) == Some(known.start);
        if is_here && self.threads.len() <= MOST {
            return self.round.push_back(thread);
        }
        self.threads.remove(&thread);
        // It cannot be refused.
        let _ = context.queue.control(context.now, Control::TaskExit(known.who.task));
    }
}

/// When a thread started; `None` if it is gone, or as good as gone.
fn started(thread: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
    // What is in parentheses is a name, and may have parentheses and spaces itself.
    let mut rest = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = rest.next()?;
    (!matches!(state, "Z" | "X")).then_some(())?;
    rest.nth(18)?.parse().ok()
}

/// Whether a thread is to end by a signal that it has got; one that is gone has ended.
pub(super) fn is_ending(thread: u32) -> bool {
    fs::read_to_string(format!("/proc/{thread}/status")).map_or(true, |status| is_ended_by_signal(&status))
}

/// Whether a signal that ends the process is pending, according to `/proc/PID/status`. To a signal that ends
/// a process at once the kernel adds SIGKILL, for each of its threads.
fn is_ended_by_signal(status: &str) -> bool {
    const HARMLESS: [libc::c_int; 8] = [
        libc::SIGCHLD,
        libc::SIGCONT,
        libc::SIGSTOP,
        libc::SIGTSTP,
        libc::SIGTTIN,
        libc::SIGTTOU,
        libc::SIGURG,
        libc::SIGWINCH,
    ];
    let bit = |signal: libc::c_int| 1_u64 << (signal - 1);
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default()
    };
    let pending = set("SigPnd") | set("ShdPnd");
    let harmless = HARMLESS.into_iter().fold(0, |all, signal| all | bit(signal));
    let unheeded = set("SigBlk") | set("SigIgn") | set("SigCgt") | harmless;
    pending & (bit(libc::SIGKILL) | !unheeded) != 0
}

/// The path that counts for I/O: that of the old controller where there is one, else that of the only
/// hierarchy.
fn cgroup(text: &str) -> &str {
    let path = |of: &dyn Fn(&str) -> bool| {
        text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            of(controllers).then_some(path)
        })
    };
    path(&|c| c.split(',').any(|c| c == "blkio")).or_else(|| path(&|c| c.is_empty())).unwrap_or_default()
}

/// A thread's I/O priority; best effort 4 if it has none.
fn priority(thread: u32) -> IoPrio {
    const WHO_PROCESS: libc::c_int = 1;
    // SAFETY: it answers a number.
    let value = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, thread) };
    let level = (value & 7) as u8;
    //= linux-6.12 include/uapi/linux/ioprio.h IOPRIO_CLASS_SHIFT
    match value >> 13 {
        1 => IoPrio { class: Class::RealTime, level },
        2 => IoPrio { class: Class::BestEffort, level },
        3 => IoPrio { class: Class::Idle, level },
        _ => IoPrio::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_is_that_of_io() {
        assert_eq!(cgroup("12:cpu,cpuacct:/x\n3:blkio:/a/b\n0::/user\n"), "/a/b");
        assert_eq!(cgroup("0::/user.slice/a:b\n"), "/user.slice/a:b");
        assert_eq!(cgroup(""), "");
        assert_eq!(cgroup("nonsense"), "");
    }

    #[test]
    fn a_thread_ends_by_what_it_neither_handles_nor_blocks_nor_ignores() {
        let status = |pending: u64, shared: u64, blocked: u64, ignored: u64, caught: u64| {
            is_ended_by_signal(&format!(
                "Name:\tSigPnd: ff\nSigPnd:\t{pending:016x}\nShdPnd:\t{shared:016x}\nSigBlk:\t{blocked:016x}\n\
                 SigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\n"
            ))
        };
        let bit = |signal: i32| 1 << (signal - 1);
        let (int, kill, stop, alarm) =
            (bit(libc::SIGINT), bit(libc::SIGKILL), bit(libc::SIGSTOP), bit(libc::SIGALRM));
        assert!(!status(0, 0, 0, 0, 0));
        assert!(status(0, int, 0, 0, 0) && status(alarm, 0, int, int, int));
        assert!(!status(0, int, int, 0, 0) && !status(0, int, 0, int, 0) && !status(int, int, 0, 0, int));
        assert!(!status(0, stop, 0, 0, 0) && !status(bit(libc::SIGCHLD), bit(libc::SIGWINCH), 0, 0, 0));
        assert!(status(kill, alarm, u64::MAX, 0, alarm) && status(stop, int | alarm, 0, 0, alarm));
        assert!(is_ending(u32::MAX) && !is_ending(std::process::id()));
    }

    #[test]
    fn the_number_of_a_removed_group_is_remembered_of_no_caller() {
        let mut context = crate::stage::context("bfq");
        let mut callers = Callers::default();
        let group = context.groups.ensure(context.now, &mut context.queue, "user").unwrap();
        let who = Who { group, ..UNKNOWN };
        callers.writers.insert(9, who);
        callers.threads.insert(7, Known { until: context.now + GOOD, start: 0, who });
        assert_eq!(callers.who(&mut context, 0, 9, true).group, group);
        assert_eq!(callers.who(&mut context, 7, 9, false).group, group);
        context.groups.remove(context.now, &mut context.queue, "user").unwrap();
        assert_eq!(callers.who(&mut context, 0, 9, true).group, GroupId::ROOT);
        assert_eq!(callers.who(&mut context, 7, 9, false).group, GroupId::ROOT);
    }

    #[test]
    fn threads_that_are_gone_are_known_to_be() {
        let me = std::process::id();
        assert!(started(me).is_some());
        assert_eq!(started(me), started(me));
        assert_eq!(started(u32::MAX), None);
    }
}
