//! Messages that a neighbour may send without end, made from the tables of a protocol's numbers: for each
//! number one that is right, one that is refused and one that is malformed. A new number is among them by
//! itself.
//!
//! Bytes are put together by hand here, after the protocols' descriptions, and not by the code that is
//! tested.

#![allow(dead_code, reason = "no user of this module needs all of it")]

/// What a message that is right has the disk do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Nothing: it is the engine's alone.
    None,
    Disk,
    Flush,
}

/// A message, and what a connection sends before the first one.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) before: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) work: Work,
}

const EXPORT_NAME: u32 = 1;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED: u32 = 8;
const LIST_CONTEXTS: u32 = 9;
const SET_CONTEXTS: u32 = 10;
const WRITE: u16 = 1;
const DISC: u16 = 2;
const FLUSH: u16 = 3;
/// A flag of a command that no command has.
const NO_FLAG: u16 = 1 << 12;
const LEN: u32 = 4096;

/// An option of the handshake.
pub(crate) fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &kind.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

/// A command, and the data of a write.
pub(crate) fn command(kind: u16, flags: u16, offset: u64, len: u32) -> Vec<u8> {
    let head = [&0x2560_9513_u32.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes(), &[7; 8]];
    let data = if kind == WRITE { len } else { 0 };
    [head.concat(), offset.to_be_bytes().to_vec(), len.to_be_bytes().to_vec(), vec![b'n'; data as usize]]
        .concat()
}

fn name(export: &str) -> Vec<u8> {
    [&(export.len() as u32).to_be_bytes()[..], export.as_bytes()].concat()
}

/// What chooses an export.
pub(crate) fn choice(export: &str) -> Vec<u8> {
    option(GO, &[name(export), vec![0, 0]].concat())
}

/// What chooses an export with structured replies and block status.
fn long_choice(export: &str) -> Vec<u8> {
    [option(STRUCTURED, &[]), option(SET_CONTEXTS, &contexts(export)), choice(export)].concat()
}

fn contexts(export: &str) -> Vec<u8> {
    [name(export), vec![0, 0, 0, 1], name("base:allocation")].concat()
}

/// All messages of NBD, behind the client's flags: for each option and command that the tables have, and for
/// one of each that they do not have.
pub(crate) fn of_nbd(options: &[(&str, u32)], commands: &[(&str, u16)], export: &str) -> Vec<Message> {
    let beyond = |n: usize| u32::try_from(n).expect("a small table") + 100;
    let options = options.iter().copied().chain([("unknown", beyond(options.len()))]);
    let commands = commands.iter().copied().chain([("unknown", beyond(commands.len()) as u16)]);
    options.flat_map(|o| of_option(o, export)).chain(commands.flat_map(|c| of_command(c, export))).collect()
}

fn of_option((what, kind): (&str, u32), export: &str) -> [Message; 3] {
    let right = match kind {
        EXPORT_NAME => export.as_bytes().to_vec(),
        INFO | GO => [name(export), vec![0, 0]].concat(),
        LIST_CONTEXTS | SET_CONTEXTS => contexts(export),
        _ => Vec::new(),
    };
    let refused = match kind {
        EXPORT_NAME => b"nowhere".to_vec(),
        LIST_CONTEXTS | SET_CONTEXTS => contexts("nowhere"),
        _ => [name("nowhere"), vec![0, 0]].concat(),
    };
    // A name that is longer than the option.
    let malformed = vec![0xff; 7];
    [("right", right), ("refused", refused), ("malformed", malformed)].map(|(how, data)| Message {
        name: format!("option {what}, {how}"),
        before: Vec::new(),
        bytes: option(kind, &data),
        work: Work::None,
    })
}

fn of_command((what, kind): (&str, u16), export: &str) -> [Message; 3] {
    let work = match kind {
        FLUSH => Work::Flush,
        DISC => Work::None,
        _ if what == "unknown" => Work::None,
        _ => Work::Disk,
    };
    let right = command(kind, 0, 0, if kind == FLUSH { 0 } else { LEN });
    let refused = command(kind, 0, 1 << 50, LEN);
    let malformed = command(kind, NO_FLAG, 0, LEN);
    [("right", right, work), ("refused", refused, Work::None), ("malformed", malformed, Work::None)].map(
        |(how, bytes, work)| Message {
            name: format!("command {what}, {how}"),
            before: long_choice(export),
            bytes,
            work,
        },
    )
}

/// A request of a guest: its type, its first sector, the data that it brings and the room that it has.
#[derive(Clone, Debug)]
pub(crate) struct GuestRequest {
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) sector: u64,
    pub(crate) data: Vec<u8>,
    pub(crate) room: u32,
    pub(crate) work: Work,
}

const IN: u32 = 0;
const GUEST_FLUSH: u32 = 4;
const ID: u32 = 8;
const DISCARD: u32 = 11;
const ZEROES: u32 = 13;

/// All requests of guests: for each type that the table has, and for one that it does not have.
pub(crate) fn of_guests(kinds: &[(&str, u32)]) -> Vec<GuestRequest> {
    kinds.iter().copied().chain([("unknown", 99)]).flat_map(of_kind).collect()
}

fn of_kind((what, kind): (&str, u32)) -> [GuestRequest; 3] {
    let (data, room, work) = match kind {
        IN => (Vec::new(), LEN, Work::Disk),
        GUEST_FLUSH => (Vec::new(), 0, Work::Flush),
        ID => (Vec::new(), 20, Work::None),
        DISCARD | ZEROES => (range(0), 0, Work::Disk),
        _ if what == "unknown" => (Vec::new(), 0, Work::None),
        _ => (vec![b'n'; LEN as usize], 0, Work::Disk),
    };
    let behind = match kind {
        DISCARD | ZEROES => range(1 << 50),
        _ => data.clone(),
    };
    // A flush and a question are about no sector: nothing of them can be refused.
    let is_elsewhere = !matches!(kind, GUEST_FLUSH | ID);
    let refused = if is_elsewhere { Work::None } else { work };
    let (odd, odd_room) = (vec![b'n'; if data.is_empty() { 0 } else { 7 }], if room == 0 { 0 } else { 7 });
    [
        ("right", 0, data, room, work),
        ("refused", 1 << 50, behind, room, refused),
        ("malformed", 0, odd, odd_room, refused),
    ]
    .map(|(how, sector, data, room, work)| GuestRequest {
        name: format!("request {what}, {how}"),
        kind,
        sector,
        data,
        room,
        work,
    })
}

fn range(sector: u64) -> Vec<u8> {
    [&sector.to_le_bytes()[..], &8_u32.to_le_bytes(), &0_u32.to_le_bytes()].concat()
}

/// All lines of control: for each word that the table has, with the words that it may need, and for one that
/// it does not have.
pub(crate) fn of_control(words: &[&str]) -> Vec<(String, String)> {
    words.iter().copied().chain(["unknown"]).flat_map(of_word).collect()
}

fn of_word(word: &str) -> [(String, String); 3] {
    let right = match word {
        "make" | "set" => r#","group":"neighbour","weight":100"#,
        "remove" => r#","group":"neighbour""#,
        "sched" => r#","name":"bfq""#,
        "tune" => r#","tunables":{"low_latency":1}"#,
        "depth" => r#","requests":32"#,
        "export add" => r#","name":"neighbour","file":"/dev/null""#,
        "export remove" => r#","name":"neighbour""#,
        "export resize" => r#","name":"neighbour","size":4096"#,
        _ => "",
    };
    let line = |rest: &str| format!("{{\"do\":\"{word}\"{rest}}}\n");
    [
        (format!("control {word}, right"), line(right)),
        (format!("control {word}, refused"), line(r#","group":"nowhere","no":1"#)),
        (format!("control {word}, malformed"), format!("{{\"do\":\"{word}\n")),
    ]
}
