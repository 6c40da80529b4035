//! The tables of messages that tests go through name what a session knows, and nothing else.

use crate::nbd_client::flagged as request;
use fairhead_live::nbd::{COMMANDS, Facts, OPTIONS, Session, Step};

const STARTTLS: u32 = 5;
const BLOCK_STATUS: u16 = 7;
const UNSUPPORTED: u32 = 1 << 31 | 1;
const FLUSH: u16 = 3;

fn exports() -> Vec<Facts> {
    vec![Facts {
        name: "disk".to_owned(),
        description: String::new(),
        size: 1 << 30,
        write_end: 1 << 30,
        block_size_min: 512,
        read_only: false,
        rotational: false,
        fast_zero: false,
    }]
}

/// The steps that a new session takes over these bytes, and what it writes.
fn steps(bytes: &[u8]) -> (Vec<Step>, Vec<u8>) {
    let (exports, mut out, mut input, mut steps) = (exports(), Vec::new(), bytes, Vec::new());
    let mut session = Session::new();
    loop {
        let (taken, step) = session.step(&exports, input, &mut out);
        input = &input[taken..];
        let is_last = matches!(step, Step::Wait | Step::Leave | Step::Drop(_) | Step::StartTls);
        steps.push(step);
        if is_last {
            return (steps, out);
        }
    }
}

/// The kind of the first reply to an option, if there is one.
fn first_reply(option: u32) -> Option<u32> {
    let bytes = [b"\0\0\0\x03IHAVEOPT", &option.to_be_bytes()[..], &[0; 4]].concat();
    let (_, out) = steps(&bytes);
    let kind = out.get(12..16)?;
    Some(u32::from_be_bytes(kind.try_into().expect("four bytes")))
}

/// An option outside of the table is unsupported; one in it is not. (Without TLS, STARTTLS is left out.)
#[test]
fn the_table_of_options_is_what_a_session_knows() {
    for option in (0..64).filter(|&option| option != STARTTLS) {
        let is_known = OPTIONS.iter().any(|&(_, known)| known == option);
        assert_eq!(first_reply(option) != Some(UNSUPPORTED), is_known, "option {option}");
    }
}

/// A command outside of the table makes no request; one in it does, or ends the connection.
/// (Block status needs structured replies, and is left out.)
#[test]
fn the_table_of_commands_is_what_a_session_knows() {
    for command in (0..64).filter(|&command| command != BLOCK_STATUS) {
        let len = if command == FLUSH { 0 } else { 512 };
        let bytes = [crate::nbd_client::choice("disk"), request(0, command, 1, 0, len)].concat();
        let is_known = COMMANDS.iter().any(|&(_, known)| known == command);
        let (steps, _) = steps(&bytes);
        let is_done = steps.iter().any(|step| matches!(step, Step::Request(_) | Step::Leave));
        assert_eq!(is_done, is_known, "command {command}: {steps:?}");
    }
}
