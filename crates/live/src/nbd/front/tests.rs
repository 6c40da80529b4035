//! What one connection makes the front do in a turn, for each number that an option or a command may have: no
//! socket is read, and no clock.

use super::*;
use crate::nbd::connection::{Socket, SocketKind};
use crate::nbd::export_table::Served;
use crate::nbd::session::{Facts, Session};
use crate::neighbours::messages::{choice, command, option};
use crate::peer::{Allowed, Owner};
use crate::stage;
use crate::store::FileTable;
use crate::turns::{STEP, TURN};
use fairhead_core::units::{IoPrio, Sector};
use std::fs::File;
use std::os::unix::net::UnixStream;

/// The bytes that a connection sends in one go.
pub(super) const FLOOD: usize = 48 << 10;

pub(super) struct Place {
    pub(super) front: NbdFront,
    pub(super) context: Context,
    /// The other ends of the connections' sockets.
    clients: Vec<UnixStream>,
}

impl Place {
    pub(super) fn new() -> Self {
        let mut context = stage::context("noop");
        let image = || File::open("/dev/null").unwrap();
        let files = Arc::new(FileTable::default());
        let export = |name: &str| {
            let facts = Facts {
                name: name.to_owned(),
                description: String::new(),
                size: 1 << 30,
                write_end: 1 << 30,
                block_size_min: 1,
                read_only: false,
                rotational: false,
                fast_zero: false,
            };
            let served = Served {
                file: files.add(image()),
                path: name.into(),
                identity: None,
                start: Sector(0),
                group: name.to_owned(),
                prio: IoPrio::default(),
                lock: Arc::new(image()),
                allowed: Allowed::All,
                connections_max: usize::MAX,
                has_pages: false,
                map: None,
                counters: Arc::default(),
            };
            (facts, served)
        };
        let exports = vec![export("evil"), export("good")];
        let mut table = ExportTable::new(exports, std::iter::empty(), Arc::clone(&files), Default::default());
        table.begin(&mut context);
        let (_, orders) = mpsc::channel();
        let front = NbdFront::new(table, orders, Vec::new(), None, (1000, 1000), Pool::new(0));
        context.turns.begin(context.now, context.busy);
        Self { front, context, clients: Vec::new() }
    }

    /// A connection of this user that has sent these bytes.
    pub(super) fn connect(&mut self, user: u32, bytes: &[u8]) -> usize {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.clients.push(theirs);
        let socket = Socket::new(ours.into(), SocketKind::Unix);
        let mut peer = socket.peer();
        peer.owner = Owner::User(user);
        let mut connection = Connection::new(socket, peer, self.context.now);
        connection.session = Session::new();
        let slot = self.front.connections.insert(connection);
        self.sends(slot, &[&3_u32.to_be_bytes()[..], bytes].concat());
        slot
    }

    /// The other end of a connection's socket.
    pub(super) fn client(&self, slot: usize) -> &UnixStream {
        &self.clients[slot]
    }

    pub(super) fn sends(&mut self, slot: usize, bytes: &[u8]) {
        self.front.connections[slot].feed(bytes);
        self.front.to_receive.retain(|&other| other != slot);
        self.front.came(&mut self.context, slot);
    }

    /// Turns of no time follow on each other until the connection has said all that it may at once.
    pub(super) fn turns(&mut self, turns: u32) {
        for _ in 0..turns {
            self.context.turns.begin(self.context.now, self.context.busy);
            self.front.begin_turn(&mut self.context);
            self.front.retry(&mut self.context);
        }
    }

    pub(super) fn left(&self, slot: usize) -> usize {
        self.front.connections[slot].input().len()
    }

    pub(super) fn is_open(&self, slot: usize) -> bool {
        self.front.connections[slot].state == State::Open
    }
}

/// The bytes of a message of this length that one connection handles in one turn: a step costs at least
/// [`STEP`], and the last one may be longer than what is left.
fn most_in_a_turn(len: usize) -> usize {
    (TURN.as_ns() / STEP.as_ns() + 1) as usize * len
}

#[test]
fn connections_of_one_tenant_take_turns_and_share_its_part() {
    let mut place = Place::new();
    let message = option(77, &[]);
    let copies = 500;
    let slots: Vec<usize> = (0..4).map(|_| place.connect(1, &[])).collect();
    slots.iter().for_each(|&slot| place.sends(slot, &message.repeat(copies)));
    let done =
        |place: &Place| slots.iter().map(|&s| copies - place.left(s) / message.len()).collect::<Vec<_>>();
    let before: usize = done(&place).iter().sum();
    place.turns(8);
    let after = done(&place);
    let most = 8 * most_in_a_turn(1);
    assert!(after.iter().sum::<usize>() - before <= most, "{after:?}");
    assert!(after.iter().all(|&n| n > 0 && n < copies), "each had its turn: {after:?}");
}

#[test]
fn a_limit_holds_for_commands_that_are_no_io() {
    let mut place = Place::new();
    let group = place.context.groups.find("evil").unwrap();
    stage::limit(&mut place.context, group, 10);
    let slot = place.connect(1, &choice("evil"));
    let message = command(0, 0, 0, 0);
    let sent = 1000;
    place.sends(slot, &message.repeat(sent));
    for _ in 0..2000 {
        place.context.now = place.context.now + Duration::from_ms(5);
        place.turns(1);
    }
    let done = sent - place.left(slot) / message.len();
    assert!((100..=103).contains(&done), "{done} reads of 0 bytes in 10 s, of 10 a second");
}

/// Writes as many as come in one go.
fn writes() -> Vec<u8> {
    let message = command(1, 0, 0, 4096);
    message.repeat(FLOOD / message.len())
}

#[test]
fn clients_that_hang_up_are_noticed_whatever_their_limits_say() {
    let mut place = Place::new();
    let group = place.context.groups.find("evil").unwrap();
    stage::limit(&mut place.context, group, 10);
    let slots: Vec<usize> = (0..20).map(|_| place.connect(1, &choice("evil"))).collect();
    for _ in 0..40 {
        for &slot in &slots {
            if place.left(slot) == 0 {
                place.sends(slot, &writes());
            }
        }
        place.turns(100);
    }
    let are_open = |place: &Place| slots.iter().filter(|&&slot| place.is_open(slot)).count();
    assert!(slots.iter().all(|&slot| place.left(slot) > 0), "each has input that is not read");
    // The first one stays.
    place.clients.truncate(1);
    for _ in 0..5 {
        assert!(are_open(&place) > 0);
        place.context.now = place.context.now + Duration::from_secs(1);
        place.turns(1);
        place.front.look_at_clock(&mut place.context);
    }
    assert_eq!(are_open(&place), 1, "the one that is there");
    assert!(place.is_open(slots[0]));
}

#[test]
fn a_write_counts_for_the_memory_that_it_takes() {
    let mut place = Place::new();
    let slots: Vec<usize> = (0..4).map(|_| place.connect(1, &choice("evil"))).collect();
    slots.iter().for_each(|&slot| place.sends(slot, &writes()));
    place.turns(1000);
    let count = place.front.pending.len() as u64;
    assert_eq!(count, 4 * (FLOOD / (28 + 4096)) as u64, "all are in the queue");
    // A block of 4 KiB at a multiple of 4 KiB, and what the allocator cannot use before the next one.
    assert_eq!(place.front.held, count * 8192);
    slots.iter().for_each(|&slot| place.front.end(&mut place.context, slot));
    assert_eq!(place.front.held, 0);
}

#[test]
fn replies_that_are_not_read_hold_a_bounded_amount_of_memory() {
    let mut place = Place::new();
    let connections = 500;
    let before = [option(8, &[]), choice("evil")].concat();
    let slots: Vec<usize> = (0..connections).map(|_| place.connect(1, &before)).collect();
    let message = command(0, 0, 1 << 50, 512);
    for _ in 0..20 {
        for &slot in &slots {
            // Those that are full have not read what they were sent.
            if place.left(slot) == 0 {
                place.context.now = place.context.now + Duration::from_secs(1);
                place.context.turns.begin(place.context.now, place.context.busy);
                place.sends(slot, &message.repeat(FLOOD / message.len()));
            }
        }
        for _ in 0..2000 {
            place.context.now = place.context.now + Duration::from_ms(5);
            place.turns(1);
        }
    }
    let all: u64 = slots.iter().map(|&slot| place.front.connections[slot].replies()).sum();
    assert_eq!(all, place.front.replies, "all are counted");
    assert!(all > 1 << 20 && all <= 17 << 20, "{all} bytes of replies");
    let one = place.front.connections.iter().map(|(_, c)| c.replies()).max().unwrap();
    assert!(one <= (17 << 20) / connections, "{one} bytes of one connection");
    slots.iter().for_each(|&slot| place.front.end(&mut place.context, slot));
    assert_eq!((place.front.replies, place.front.held), (0, 0), "nothing is left");
}
