//! What each message of NBD has the front do, in counts: no socket is read, and no clock.

use super::tests::{FLOOD, Place};
use super::*;
use crate::nbd::session::Command;
use crate::nbd::{COMMANDS, OPTIONS};
use crate::neighbours::messages::{Message, Work, choice, command, of_nbd, option};
use crate::neighbours::{Done, Fate, judge, judge_limited};
use crate::stage;

/// All numbers that an option or a command may have, in or out of the tables.
const KINDS: std::ops::Range<u32> = 0..64;

fn all() -> Vec<Message> {
    of_nbd(OPTIONS, COMMANDS, "evil")
}

/// A connection that has sent what comes before the message, and that is done.
fn connect(place: &mut Place, message: &Message) -> usize {
    let slot = place.connect(1, &message.before);
    place.turns(3);
    assert_eq!(place.left(slot), 0, "{}: what comes before it is done", message.name);
    slot
}

/// Sends a message again and again; and in the middle of all that, another user's connection is served.
fn flood(message: &Message) -> Fate {
    let Message { name, bytes, .. } = message;
    let mut place = Place::new();
    let slot = connect(&mut place, message);
    let copies = (FLOOD / bytes.len()).max(8);
    place.context.turns.begin(place.context.now, place.context.busy);
    place.sends(slot, &bytes.repeat(copies));
    let done = |place: &Place| copies - place.left(slot).div_ceil(bytes.len());
    let in_first_turn = done(&place);
    place.turns(1);
    let honest = place.connect(2, &choice("good"));
    let is_served = place.front.connections[honest].session.export() == Some(1);
    assert!(is_served, "{name}: another is served at once");
    if !place.is_open(slot) {
        return Fate::Ends;
    }
    let evil = place.context.groups.find("evil").expect("a group");
    place.turns(10_000);
    if !place.is_open(slot) {
        return Fate::Ends;
    }
    let c = &place.front.connections[slot];
    let count = c.open as usize + usize::from(c.writing.is_some());
    let flushes = place.front.pending.iter().filter(|(_, p)| p.request.command == Command::Flush).count();
    // Most of a flood of flushes is work of the thread alone.
    if count > 0 && flushes == 0 {
        let is_of_group = place.context.queue.busy_groups().all(|group| group == evil);
        return Fate::Queued { count, is_of_group };
    }
    let at_once = done(&place);
    place.context.now = place.context.now + Duration::from_ms(1);
    place.turns(1);
    let later = done(&place) - at_once;
    let has_moment = place.front.next_timer().is_some() || at_once + later == copies;
    Fate::Done(Done { in_first_turn, at_once, later, has_moment })
}

/// Each message that the tables have, and each number that they have not.
#[test]
fn what_a_message_makes_the_server_do_in_a_turn_is_bounded() {
    for message in all() {
        judge(&message.name, message.work, flood(&message));
    }
    let name = |len: usize| [&(len as u32).to_be_bytes()[..], &vec![b'x'; len], &[0, 0]].concat();
    for kind in KINDS {
        for data in [Vec::new(), vec![0; 3], name(4), name(300)] {
            let what = format!("option {kind} with {} bytes", data.len());
            let message =
                Message { name: what, before: Vec::new(), bytes: option(kind, &data), work: Work::None };
            judge(&message.name, message.work, flood(&message));
        }
    }
}

#[test]
fn what_a_command_that_is_no_io_makes_the_server_do_in_a_turn_is_bounded() {
    for structured in [false, true] {
        let before = [if structured { option(8, &[]) } else { Vec::new() }, choice("evil")].concat();
        for kind in KINDS.map(|kind| kind as u16).filter(|&kind| kind != 3) {
            for (flags, offset, len) in [(0, 0, 0), (0, 1 << 50, 512), (1 << 12, 0, 512)] {
                let what = format!("command {kind} of {len} bytes at {offset}");
                let bytes = command(kind, flags, offset, len);
                let message = Message { name: what, before: before.clone(), bytes, work: Work::None };
                judge(&message.name, message.work, flood(&message));
            }
        }
    }
}

/// The disk does at once what the queue has, and clients read what they get.
fn serve(place: &mut Place) {
    let Place { front, context, .. } = place;
    for answer in stage::serve(context) {
        front.answer(context, answer);
    }
    for slot in front.connections.iter().map(|(slot, _)| slot).collect::<Vec<_>>() {
        while front.connections[slot].has_output() {
            let len = front.connections[slot].next_len();
            front.gone(context, slot, len);
        }
    }
    front.retry(context);
}

#[test]
fn limits_count_each_message() {
    for message in all().into_iter().filter(|m| !m.before.is_empty()) {
        let mut place = Place::new();
        let group = place.context.groups.find("evil").unwrap();
        stage::limit(&mut place.context, group, 10);
        let slot = connect(&mut place, &message);
        let copies = 200;
        // One at a time, as more would be one flush.
        let (mut sent, mut is_over) = (0, false);
        for _ in 0..2000 {
            place.context.now = place.context.now + Duration::from_ms(5);
            place.turns(1);
            serve(&mut place);
            is_over = !place.is_open(slot);
            let c = &place.front.connections[slot];
            if is_over || sent == copies {
                break;
            }
            if c.open == 0 && c.input().is_empty() {
                place.sends(slot, &message.bytes);
                sent += 1;
            }
        }
        if !is_over {
            judge_limited(&message.name, sent);
        }
    }
}

/// Whatever a crowd that never reads has sent, its replies have a bound, and go with it.
#[test]
fn replies_of_each_message_have_a_bound() {
    for message in all() {
        let mut place = Place::new();
        let slots: Vec<usize> = (0..200).map(|_| place.connect(1, &message.before)).collect();
        place.turns(2000);
        let flood = message.bytes.repeat((FLOOD / message.bytes.len()).max(1));
        for &slot in slots.iter().filter(|&&slot| place.is_open(slot)).collect::<Vec<_>>() {
            if place.left(slot) == 0 {
                place.sends(slot, &flood);
            }
        }
        for _ in 0..200 {
            place.context.now = place.context.now + Duration::from_ms(100);
            place.turns(1);
        }
        let held = place.front.replies;
        assert!(held <= 17 << 20, "{}: {held} bytes of replies", message.name);
        let (front, context) = (&mut place.front, &mut place.context);
        slots.iter().for_each(|&slot| front.end(context, slot));
        assert_eq!((front.replies, front.held), (0, 0), "{}: nothing is left", message.name);
    }
}
