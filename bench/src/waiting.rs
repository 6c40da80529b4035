//! What an io of a busy client costs in the live engine's request queue while many other clients wait.
//!
//! The clients that wait are in a group that may read once a second, one read each. So some wait in front of
//! the scheduler, and the rest has no tag. The busy client keeps eight reads in flight at a disk that has
//! eight at a time and needs 20 us for each. What is counted is everything that the queue does for one of its
//! reads: handed in, issued, done, answered.
//!
//! In a *crowd* no client has a limit and each is busy, with one read at a time. What is counted is what the
//! queue does for one of these. More clients than there are tags wait for a tag, and whatever the scheduler
//! turns away waits for that.

use fairhead_core::sched::any::Preset;
use fairhead_core::units::{Duration, GroupId, Instant, IoPrio, Sector, TaskId};
use fairhead_core::{Control, Limits, Max};
use fairhead_live::{Bio, ClientId, FileId, Op, RequestQueue, Settings, Start};
use std::num::NonZeroU64;

/// Of the busy client and its group.
const BUSY: u32 = 2;
const UNDER_WAY: u64 = 8;
const TIME: Duration = Duration::from_us(20);

struct Rig {
    queue: RequestQueue<()>,
    now: Instant,
    busy: ClientId,
    asked: u64,
    /// Clients that ask again when they are answered. A cookie is the index of one.
    crowd: Vec<ClientId>,
}

fn bio(task: u32, group: u32, n: u64) -> Bio {
    // Places that do not touch each other.
    let block = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
    Bio {
        op: Op::Read,
        file: FileId(0),
        offset: block * 8192,
        len: 4096,
        sector: Sector(block * 16),
        fua: false,
        sync: true,
        task: TaskId(task),
        group: GroupId(group),
        prio: IoPrio::default(),
        cookie: n,
    }
}

impl Rig {
    /// A queue with a group that may read once a second, another that may do as it likes, and one client.
    fn empty(preset: &Preset) -> Self {
        let tags = Limits { tags: 1024, tasks: 1024, groups: 16, queue_depth: 8, ..Limits::default() };
        let settings = Settings { limits: tags, ..Settings::default() };
        let mut queue = RequestQueue::new(settings, (preset.config)()).expect("a preset");
        let now = Instant::EPOCH;
        let once = NonZeroU64::new(1);
        for (group, max) in [(1, Max { riops: once, ..Max::default() }), (BUSY, Max::default())] {
            queue.control(now, Control::SetParent(GroupId(group), GroupId::ROOT)).expect("a group");
            queue.control(now, Control::SetMax(GroupId(group), max)).expect("a limit");
        }
        let busy = queue.join();
        Self { queue, now, busy, asked: 0, crowd: Vec::new() }
    }

    fn new(preset: &Preset, clients: u32) -> Self {
        let mut rig = Self::empty(preset);
        for n in 0..clients {
            let client = rig.queue.join();
            rig.queue.submit(rig.now, client, bio(100 + n, 1, u64::from(n) + (1 << 32)), None);
        }
        (0..UNDER_WAY).for_each(|_| rig.ask());
        rig
    }

    /// Makes a crowd of `clients` clients without limits, and no other.
    fn crowd(preset: &Preset, clients: u32) -> Self {
        let mut rig = Self::empty(preset);
        rig.crowd = (0..clients).map(|_| rig.queue.join()).collect();
        (0..u64::from(clients)).for_each(|client| rig.ask_for(client));
        rig
    }

    /// The next read of one of the crowd.
    fn ask_for(&mut self, client: u64) {
        self.asked += 1;
        let mut bio = bio(100 + client as u32, BUSY, self.asked);
        bio.cookie = client;
        self.queue.submit(self.now, self.crowd[client as usize], bio, None);
    }

    fn ask(&mut self) {
        self.asked += 1;
        self.queue.submit(self.now, self.busy, bio(BUSY, BUSY, self.asked), None);
    }

    /// Returns how many of the busy client's reads have been answered.
    fn turn(&mut self) -> u64 {
        let Some(Start::Io(io)) = self.queue.next(self.now) else {
            // The scheduler holds the disk for another client.
            self.now = self.now.max(self.queue.next_timer().expect("something waits"));
            self.queue.timer(self.now);
            return 0;
        };
        self.now = self.now + TIME;
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now);
        }
        self.queue.finished(self.now, io, &[Ok(())]);
        let mut answered = 0;
        while let Some(answer) = self.queue.answer() {
            if !self.crowd.is_empty() {
                answered += 1;
                self.ask_for(answer.cookie);
            } else if answer.client == self.busy {
                answered += 1;
                self.ask();
            }
        }
        answered
    }
}

mod phase {
    /// Told from the warm-up by its name.
    #[inline(never)]
    pub(super) fn io(rig: &mut super::Rig) -> u64 {
        rig.turn()
    }
}

/// Does `requests` reads of the busy client beside `clients` waiting clients, and returns the number done.
pub(crate) fn run(preset: &Preset, clients: u32, requests: u64) -> u64 {
    run_in(Rig::new(preset, clients), requests)
}

/// Does `requests` reads of a crowd, and returns the number done.
pub(crate) fn run_crowd(preset: &Preset, clients: u32, requests: u64) -> u64 {
    let rig = Rig::crowd(preset, clients);
    run_in(rig, requests)
}

fn run_in(mut rig: Rig, requests: u64) -> u64 {
    let mut turns = 0;
    // Each client has been answered, and all tags have been used, a few times.
    let warm = 2 * (1024 + rig.crowd.len() as u64);
    while rig.asked < warm {
        rig.turn();
        turns += 1;
        assert!(turns < 100_000 + 8 * warm, "the disk has nothing to do");
    }
    let mut done = 0;
    while done < requests {
        done += phase::io(&mut rig);
        turns += 1;
        assert!(turns < 100_000 + 8 * (warm + requests), "the disk has nothing to do");
    }
    done
}
