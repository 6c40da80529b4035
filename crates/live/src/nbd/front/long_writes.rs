//! How much of a long write the engine's thread receives at a time, in counts: sockets and a ring, no clock.

use super::tests::Place;
use super::*;
use crate::neighbours::messages::{choice, command};
use crate::ring::Token;
use std::io::Write;

const LEN: u32 = 2 << 20;

/// What one connection may have received at a time while there are others: some 50 us of copying.
const AT_A_TIME: i32 = 128 << 10;

/// A connection writes [`LEN`] bytes, beside some others. Returns what it was that arrived at a time.
fn received(ring: &mut Ring, others: u32) -> Vec<i32> {
    let mut place = Place::new();
    (0..others).for_each(|user| _ = place.connect(user + 2, &choice("good")));
    let slot = place.connect(1, &choice("evil"));
    let message = command(1, 0, 0, LEN);
    let (head, mut data) = message.split_at(28);
    place.sends(slot, head);
    let mut client = place.client(slot).try_clone().unwrap();
    client.set_nonblocking(true).unwrap();
    let mut all = Vec::new();
    while place.front.connections[slot].writing.is_some() {
        // As much as the socket takes.
        while let Ok(sent) = client.write(data) {
            data = &data[sent..];
            if data.is_empty() {
                break;
            }
        }
        let Place { front, context, .. } = &mut place;
        front.to_receive.retain(|&other| other == slot);
        front.rest(context, ring).unwrap();
        ring.wait(Some(Duration::from_ms(100))).unwrap();
        while let Some(outcome) = ring.next() {
            let Token::Front(number) = outcome.token else { unreachable!("there is no other") };
            all.push(outcome.result);
            front.outcome(context, ring, number, outcome).unwrap();
        }
        context.turns.begin(context.now, context.busy);
    }
    assert_eq!(all.iter().sum::<i32>(), LEN as i32);
    all
}

#[test]
fn a_long_write_arrives_part_by_part_beside_others() {
    let mut ring = match Ring::new() {
        Ok(ring) => ring,
        Err(e) => return println!("skipped: io_uring: {e}"),
    };
    let alone = received(&mut ring, 0);
    assert!(alone.iter().any(|&bytes| bytes > AT_A_TIME), "a socket has more than that: {alone:?}");
    let beside = received(&mut ring, 1);
    assert!(beside.iter().all(|&bytes| bytes <= AT_A_TIME), "{beside:?}");
}
