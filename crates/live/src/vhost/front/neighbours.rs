//! What each request of a guest has the front do, in counts: no socket, no disk and no clock.

use super::super::command::{Setup, What};
use super::super::request::kind;
use super::super::split_ring::tests::{BASE, Driver};
use super::*;
use crate::counters::Counters;
use crate::neighbours::messages::{GuestRequest, Work, of_guests};
use crate::neighbours::{Done, Fate, judge, judge_limited};
use crate::stage;
use crate::store::FileTable;
use crate::vhost::shared::Shared;
use fairhead_core::units::{Duration, IoPrio, Sector};

/// What a ring has room for: more than a turn does.
const SIZE: u16 = 256;

/// Where the guest has a request's header, its data, and room for data and the status.
const HEADER: u64 = BASE + 0x4000;
const DATA: u64 = BASE + 0x5000;
const ROOM: u64 = BASE + 0x7000;

struct Stage {
    front: VhostFront,
    context: Context,
    driver: Driver,
}

impl Stage {
    /// A guest whose ring has begun, and another device beside it.
    fn new() -> Self {
        let mut context = stage::context("noop");
        let files = FileTable::default();
        let served = |name: &str| Served {
            shared: Arc::new(Shared::new(name, false, 1, (1 << 30, 512))),
            file: files.add(File::open("/dev/null").unwrap()),
            start: Sector(0),
            group: name.to_owned(),
            is_alone_in_group: true,
            prio: IoPrio::default(),
            align: 512,
            counters: Arc::new(Counters::default()),
            _lock: Arc::new(File::open("/dev/null").unwrap()),
        };
        let (_, commands) = mpsc::channel();
        let mut front = VhostFront::new(vec![served("evil"), served("good")], commands, Pool::new(0), false);
        let driver = Driver::sized(SIZE);
        let setup = Setup {
            split: driver.ring(false),
            kick: Arc::new(File::open("/dev/null").unwrap()),
            call: None,
            marks: None,
            is_write_through: false,
        };
        context.turns.begin(context.now, context.busy);
        let say = |what| Command { device: 0, session: 1, what };
        front.obey(&mut context, say(What::Begin));
        front.obey(&mut context, say(What::Start(0, Box::new(setup))));
        Self { front, context, driver }
    }

    /// Describes a request; it is offered as often as wanted, since nothing that it names is its own.
    fn describe(&self, request: &GuestRequest) {
        let header = [request.kind.to_le_bytes(), [0; 4]].concat();
        self.driver.write(HEADER, &[&header[..], &request.sector.to_le_bytes()].concat());
        self.driver.write(DATA, &request.data);
        let (len, room) = (request.data.len() as u32, request.room + 1);
        self.driver.describe(BASE, 0, (HEADER, 16, 1, if len > 0 { 1 } else { 2 }));
        self.driver.describe(BASE, 1, (DATA, len, 1, 2));
        self.driver.describe(BASE, 2, (ROOM, room, 2, 0));
    }

    /// A turn begins and the front looks at its rings. Returns how many requests it read.
    fn turn(&mut self) -> usize {
        self.context.turns.begin(self.context.now, self.context.busy);
        let before = self.read();
        let awake: Vec<Place> = self.front.awake.clone();
        for place in awake {
            let due = find(&mut self.front.devices, place).and_then(|r| r.waits_until);
            if due.is_none_or(|at| at <= self.context.now) {
                self.front.work(&mut self.context, place);
            }
        }
        usize::from(self.read().wrapping_sub(before))
    }

    /// How many chains were read so far.
    fn read(&self) -> u16 {
        let session = self.front.devices[0].session.as_ref().expect("it has begun");
        session.rings[0].as_ref().expect("a ring").setup.split.next_available()
    }

    fn is_broken(&self) -> bool {
        let session = self.front.devices[0].session.as_ref().expect("it has begun");
        session.rings[0].as_ref().expect("a ring").is_broken
    }

    /// The ring is full of requests again.
    fn fill(&mut self) {
        while self.driver.offered().wrapping_sub(self.read()) < SIZE {
            self.driver.offer(0);
        }
    }

    /// The disk does at once what the queue has.
    fn serve(&mut self) {
        let Self { front, context, .. } = self;
        stage::serve(context).into_iter().for_each(|answer| front.answered(context, answer));
    }

    fn open(&self) -> usize {
        self.front.devices[0].open
    }
}

fn flood(request: &GuestRequest) -> Fate {
    let mut stage = Stage::new();
    stage.describe(request);
    stage.fill();
    let in_first_turn = stage.turn();
    if stage.is_broken() {
        return Fate::Ends;
    }
    let mut at_once = in_first_turn;
    for _ in 0..10_000 {
        stage.fill();
        at_once += stage.turn();
    }
    if stage.open() > 0 && request.work == Work::Disk {
        let evil = stage.context.groups.find("evil").expect("a group");
        let is_of_group = stage.context.queue.busy_groups().all(|group| group == evil);
        return Fate::Queued { count: stage.open(), is_of_group };
    }
    stage.context.now = stage.context.now + Duration::from_ms(1);
    stage.fill();
    let later = stage.turn();
    // A ring that the queue has no room for continues when something is answered.
    let has_moment = stage.front.next_timer().is_some() || stage.open() > 0;
    Fate::Done(Done { in_first_turn, at_once, later, has_moment })
}

/// Each type that the table has, and one that it has not.
#[test]
fn what_a_request_makes_the_server_do_in_a_turn_is_bounded() {
    for request in of_guests(kind::ALL) {
        judge(&request.name, request.work, flood(&request));
    }
}

#[test]
fn limits_count_each_request() {
    for request in of_guests(kind::ALL) {
        let mut stage = Stage::new();
        let group = stage.context.groups.find("evil").unwrap();
        stage::limit(&mut stage.context, group, 10);
        stage.describe(&request);
        let mut sent = 0;
        for _ in 0..2000 {
            stage.context.now = stage.context.now + Duration::from_ms(5);
            if stage.open() == 0 && stage.driver.offered() == stage.read() {
                stage.driver.offer(0);
                sent += 1;
            }
            stage.turn();
            stage.serve();
        }
        if !stage.is_broken() {
            judge_limited(&request.name, sent);
        }
    }
}
