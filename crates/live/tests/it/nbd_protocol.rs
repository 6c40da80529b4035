//! The protocol without sockets: bytes written by hand after its description, and bytes that no proper client
//! would send.

use crate::nbd_client::flagged as request;
use fairhead_live::nbd::{Command, Errno, Facts, INPUT_MAX, Request, Session, Step, TRANSFER_MAX};

fn exports() -> Vec<Facts> {
    let facts = |name: &str, size, read_only| Facts {
        name: name.to_owned(),
        description: format!("the {name}"),
        size,
        write_end: size,
        block_size_min: 512,
        read_only,
        rotational: true,
        fast_zero: name == "disk",
    };
    vec![facts("disk", 1 << 30, false), facts("cd", 1 << 20, true)]
}

/// What a session made of some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    out: Vec<u8>,
    begun: Vec<usize>,
    requests: Vec<Request>,
    data: Vec<u8>,
    end: Option<Step>,
}

/// Feeds a session, in pieces of these lengths, as a driver would.
fn feed(session: &mut Session, bytes: &[u8], pieces: impl IntoIterator<Item = usize>) -> Made {
    let exports = exports();
    let (mut made, mut input, mut rest) = (Made::default(), Vec::new(), bytes);
    for piece in pieces.into_iter().chain([usize::MAX]) {
        let (head, tail) = rest.split_at(piece.min(rest.len()));
        input.extend_from_slice(head);
        rest = tail;
        while made.end.is_none() {
            let before = session.data_left();
            let (taken, step) = session.step(&exports, &input, &mut made.out);
            assert!(taken <= input.len(), "{taken} bytes of {}", input.len());
            match step {
                Step::Wait => {
                    assert_eq!(taken, 0);
                    assert!(input.len() < INPUT_MAX, "it asks for more than it may");
                    break;
                }
                Step::Next => assert!(taken > 0, "it moves on"),
                Step::Begin(export) => made.begun.push(export),
                Step::Request(request) => {
                    let len = if request.command == Command::Write { request.len } else { 0 };
                    assert_eq!(u64::from(session.data_left()), len);
                    made.requests.push(request);
                }
                Step::Data => {
                    assert_eq!(before - session.data_left(), taken as u32);
                    made.data.extend(&input[..taken]);
                }
                Step::Leave | Step::Drop(_) | Step::StartTls => made.end = Some(step),
            }
            input.drain(..taken);
        }
    }
    made
}

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", &kind.to_be_bytes()[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

fn go(kind: u32, name: &str, wishes: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((wishes.len() as u16).to_be_bytes());
    wishes.iter().for_each(|w| data.extend(w.to_be_bytes()));
    option(kind, &data)
}

fn contexts(kind: u32, name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((queries.len() as u32).to_be_bytes());
    for q in queries {
        data.extend((q.len() as u32).to_be_bytes());
        data.extend(q.as_bytes());
    }
    option(kind, &data)
}

/// The types and data of the replies to an option.
fn replies(out: &[u8], kind: u32) -> Vec<(u32, Vec<u8>)> {
    let (mut at, mut found) = (0, Vec::new());
    let number = |at: usize| u32::from_be_bytes(out[at..at + 4].try_into().unwrap());
    while at < out.len() {
        assert_eq!(out[at..at + 8], [0, 3, 0xe8, 0x89, 4, 0x55, 0x65, 0xa9]);
        assert_eq!(number(at + 8), kind);
        let len = number(at + 16) as usize;
        found.push((number(at + 12), out[at + 20..at + 20 + len].to_vec()));
        at += 20 + len;
    }
    found
}

const HELLO: [u8; 4] = [0, 0, 0, 3];
const LIST: u32 = 3;
const INFO: u32 = 6;
const GO: u32 = 7;
const STRUCTURED: u32 = 8;
const LIST_CONTEXT: u32 = 9;
const SET_CONTEXT: u32 = 10;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;

/// A session that has said hello.
fn greeted() -> Session {
    let mut session = Session::new();
    assert_eq!(feed(&mut session, &HELLO, []), Made::default());
    session
}

/// A session in transmission, with or without structured replies and block status.
fn begun(export: &str, is_structured: bool) -> Session {
    let mut session = greeted();
    if is_structured {
        let more = [option(STRUCTURED, b""), contexts(SET_CONTEXT, export, &["base:allocation"])].concat();
        assert!(feed(&mut session, &more, []).end.is_none());
    }
    assert_eq!(feed(&mut session, &go(GO, export, &[]), []).begun.len(), 1);
    session
}

#[test]
fn the_greeting_is_fixed_newstyle() {
    assert_eq!(Session::greeting(), b"NBDMAGICIHAVEOPT\0\x03");
}

#[test]
fn export_name_has_zeroes_only_for_who_wants_them() {
    for (hello, zeroes) in [([0, 0, 0, 1], 124), ([0, 0, 0, 3], 0), ([0, 0, 0, 0], 124)] {
        let mut session = Session::new();
        let made = feed(&mut session, &[&hello[..], &option(1, b"cd")].concat(), []);
        assert_eq!(made.begun, [1]);
        assert_eq!(made.out.len(), 10 + zeroes);
        assert_eq!(made.out[..8], (1_u64 << 20).to_be_bytes());
        // HAS_FLAGS, READ_ONLY, FLUSH, FUA, ROTATIONAL, DF, MULTI_CONN.
        assert_eq!(made.out[8..10], 0b1_1001_1111_u16.to_be_bytes());
    }
    let made = feed(&mut greeted(), &option(1, b"floppy"), []);
    assert!(matches!(made.end, Some(Step::Drop(_))), "an unknown name cannot be refused otherwise");
}

#[test]
fn go_tells_what_there_is_to_know() {
    let mut session = greeted();
    let made = feed(&mut session, &go(INFO, "disk", &[1, 2, 3, 77]), []);
    assert!(made.begun.is_empty(), "to ask is not to go");
    let told = replies(&made.out, INFO);
    let (ack, infos) = told.split_last().unwrap();
    assert_eq!(*ack, (1, vec![]));
    assert!(infos.iter().all(|i| i.0 == 3));
    // HAS_FLAGS, FLUSH, FUA, ROTATIONAL, TRIM, WRITE_ZEROES, DF, MULTI_CONN, FAST_ZERO.
    let export = [&[0, 0][..], &(1_u64 << 30).to_be_bytes(), &0b1001_1111_1101_u16.to_be_bytes()].concat();
    let sizes = [512, 4096, TRANSFER_MAX].map(u32::to_be_bytes).concat();
    let expected =
        [export, [&[0, 3][..], &sizes].concat(), b"\0\x01disk".to_vec(), b"\0\x02the disk".to_vec()];
    assert_eq!(infos.iter().map(|i| i.1.clone()).collect::<Vec<_>>(), expected);
    assert_eq!(feed(&mut session, &go(GO, "disk", &[]), []).begun, [0]);
}

#[test]
fn options_are_refused_politely() {
    let mut session = greeted();
    let mut ask = |bytes: Vec<u8>, kind| {
        let made = feed(&mut session, &bytes, []);
        assert_eq!(made.end, None, "option {kind}");
        replies(&made.out, kind).iter().map(|r| r.0).collect::<Vec<_>>()
    };
    assert_eq!(ask(option(LIST, b""), LIST), [2, 2, 1]);
    assert_eq!(ask(option(LIST, b"x"), LIST), [INVALID]);
    assert_eq!(ask(option(5, b""), 5), [0x8000_0001], "TLS");
    assert_eq!(ask(option(11, b"x"), 11), [INVALID], "extended headers have no data");
    assert_eq!(ask(option(99, &[1; 5000]), 99), [0x8000_0001]);
    assert_eq!(ask(option(99, &[1; 70_000]), 99), [0x8000_0009], "too long");
    assert_eq!(ask(go(GO, "floppy", &[]), GO), [UNKNOWN]);
    assert_eq!(ask(go(GO, "", &[]), GO), [UNKNOWN], "there are two, and none is the usual one");
    assert_eq!(ask(option(GO, b"\0\0\0\x09disk"), GO), [INVALID]);
    assert_eq!(ask(option(GO, b"\0\0\0\x04disk\0\x01\0"), GO), [INVALID]);
    assert_eq!(ask(go(GO, &"x".repeat(4097), &[]), GO), [INVALID]);
    assert_eq!(ask(contexts(LIST_CONTEXT, "disk", &[]), LIST_CONTEXT), [INVALID], "not structured");
    assert_eq!(ask(option(STRUCTURED, b"x"), STRUCTURED), [INVALID]);
    assert_eq!(ask(option(STRUCTURED, b""), STRUCTURED), [1]);
    assert_eq!(ask(contexts(LIST_CONTEXT, "disk", &[]), LIST_CONTEXT), [4, 4, 1]);
    assert_eq!(ask(contexts(LIST_CONTEXT, "disk", &["base:"]), LIST_CONTEXT), [4, 1]);
    assert_eq!(
        ask(contexts(SET_CONTEXT, "disk", &["base:"]), SET_CONTEXT),
        [1],
        "only a whole name is a choice"
    );
    assert_eq!(ask(contexts(SET_CONTEXT, "floppy", &["base:allocation"]), SET_CONTEXT), [UNKNOWN]);
    assert_eq!(ask(option(SET_CONTEXT, b"\0\0\0\x04disk\xff\xff\xff\xff"), SET_CONTEXT), [INVALID]);
    assert_eq!(ask(contexts(SET_CONTEXT, "disk", &["x:y", "base:allocation"]), SET_CONTEXT), [4, 1]);
    let made = feed(&mut session, &option(2, b""), []);
    assert_eq!((made.end, replies(&made.out, 2)), (Some(Step::Leave), vec![(1, vec![])]), "abort");
}

#[test]
fn who_breaks_the_handshake_is_dropped() {
    let dropped = |bytes: &[u8]| {
        let made = feed(&mut Session::new(), bytes, []);
        assert!(matches!(made.end, Some(Step::Drop(_))), "{bytes:?}: {made:?}");
    };
    dropped(&[0, 0, 0, 4]);
    dropped(b"GET / HTTP/1.1\r\n");
    dropped(&[&HELLO[..], b"I"].concat().into_iter().chain(*b"WANT").collect::<Vec<_>>());
    dropped(&[&[0, 0, 0, 0][..], &option(GO, b"")].concat());
    dropped(&[&HELLO[..], &option(1, &[b'x'; 20_000])].concat());
}

#[test]
fn a_context_is_for_the_export_for_which_it_was_chosen() {
    let mut session = greeted();
    let setup = [
        option(STRUCTURED, b""),
        contexts(SET_CONTEXT, "disk", &["base:allocation"]),
        go(GO, "cd", &[]),
        request(0, 7, 5, 0, 4096),
    ];
    let made = feed(&mut session, &setup.concat(), []);
    assert!(made.requests.is_empty());
    let tail = &made.out[made.out.len() - 26..];
    assert_eq!(tail[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1], "an error chunk");
    assert_eq!(tail[20..24], 22_u32.to_be_bytes());
}

/// A question has a chunk for each context that was chosen; an image is one layer deep.
#[test]
fn allocation_depth_is_one_where_there_are_data() {
    let mut session = greeted();
    let both = ["qemu:allocation-depth", "base:allocation"];
    let setup = [option(STRUCTURED, b""), contexts(LIST_CONTEXT, "disk", &["qemu:"])].concat();
    let made = feed(&mut session, &setup, []);
    let listed = replies(&made.out[20..], LIST_CONTEXT);
    assert_eq!(listed, [(4, [&[0; 4][..], b"qemu:allocation-depth"].concat()), (1, vec![])]);
    let setup = [contexts(SET_CONTEXT, "disk", &both), go(GO, "disk", &[])].concat();
    let asked = request(0, 7, 5, 0, 8192);
    let made = feed(&mut session, &[setup, asked].concat(), []);
    let reply = session.status(&made.requests[0], &[(4096, false), (4096, true)]);
    let numbers = |n: &[u32]| n.iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
    let chunk = |flags, context, data, hole| {
        let head = [&[0x66, 0x8e, 0x33, 0xef, 0, flags, 0, 5][..], &5_u64.to_be_bytes()].concat();
        [head, numbers(&[20, context, 4096, data, 4096, hole])].concat()
    };
    assert_eq!(reply, [chunk(0, 1, 0, 3), chunk(1, 2, 1, 0)].concat());
}

#[test]
fn requests_come_out_as_they_were_meant() {
    let mut session = begun("disk", true);
    let bytes = [
        request(0, 0, 1, 4096, 8192),
        request(1, 1, 2, 512, 4),
        b"data".to_vec(),
        request(1, 1, 2, 512, 1024),
        vec![7; 1024],
        request(0, 3, 3, 0, 0),
        request(1, 4, 4, 0, 1 << 30),
        request(0, 6, 5, 0, 512),
        request(2, 6, 6, 0, 512),
        request(16, 6, 7, 0, 512),
        request(4, 0, 8, 0, TRANSFER_MAX),
        request(8, 7, 9, 0, 1 << 30),
        request(0, 2, 11, 99, 99),
        b"and whatever comes after that".to_vec(),
    ];
    let made = feed(&mut session, &bytes.concat(), []);
    let asked = |cookie, command, offset, len, fua| Request { cookie, command, offset, len, fua };
    let zero = |no_hole| Command::Zero { no_hole };
    assert_eq!(
        made.requests,
        [
            asked(1, Command::Read, 4096, 8192, false),
            asked(2, Command::Write, 512, 1024, true),
            asked(3, Command::Flush, 0, 0, false),
            asked(4, Command::Trim, 0, 1 << 30, true),
            asked(5, zero(false), 0, 512, false),
            asked(6, zero(true), 0, 512, false),
            asked(7, zero(false), 0, 512, false),
            asked(8, Command::Read, 0, TRANSFER_MAX.into(), false),
            asked(9, Command::Status { one: true }, 0, 1 << 30, false),
        ]
    );
    assert_eq!(made.data, [7; 1024], "data of a refused write go nowhere");
    assert_eq!(made.out, [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22][..], &2_u64.to_be_bytes()].concat());
    assert_eq!(made.end, Some(Step::Leave));
}

#[test]
fn what_cannot_be_is_refused_with_the_right_number() {
    use Errno::{Inval, NoSpc, NotSup, Perm};
    let end = 1 << 30;
    let cases: &[(&str, u16, u16, u64, u32, Errno)] = &[
        ("disk", 0, 0, end, 512, Inval),
        ("disk", 0, 0, end - 512, 1024, Inval),
        ("disk", 0, 0, u64::MAX - 511, 512, Inval),
        ("disk", 0, 0, 1, 512, Inval),
        ("disk", 0, 0, 0, 100, Inval),
        ("disk", 0, 0, 0, TRANSFER_MAX + 512, Inval),
        ("disk", 0, 1, end - 512, 1024, NoSpc),
        ("disk", 0, 1, u64::MAX, 512, NoSpc),
        ("disk", 0, 6, end, 512, NoSpc),
        ("disk", 0, 4, end, 512, Inval),
        ("disk", 0, 3, 0, 512, Inval),
        ("disk", 18, 6, 0, 512, NotSup),
        ("disk", 2, 0, 0, 512, Inval),
        ("disk", 32, 1, 0, 512, Inval),
        ("disk", 0, 5, 0, 512, Inval),
        ("disk", 0, 7, 0, 512, Inval),
        ("disk", 0, 8, 0, 512, Inval),
        ("disk", 0, 999, 0, 512, Inval),
        ("cd", 0, 1, 0, 512, Perm),
        ("cd", 0, 4, 0, 512, Perm),
        ("cd", 0, 6, 0, 512, Perm),
    ];
    for &(export, flags, kind, offset, len, errno) in cases {
        let mut session = begun(export, false);
        let data = vec![0; if kind == 1 { len as usize } else { 0 }];
        let bytes = [request(flags, kind, 9, offset, len), data, request(0, 3, 10, 0, 0)].concat();
        let made = feed(&mut session, &bytes, []);
        let reply =
            [&[0x67, 0x44, 0x66, 0x98][..], &(errno as u32).to_be_bytes(), &9_u64.to_be_bytes()].concat();
        assert_eq!(made.out, reply, "command {kind}, flags {flags}, {len} bytes from {offset} of {export}");
        assert_eq!(made.requests.len(), 1, "what comes after it is understood");
    }
}

#[test]
fn replies_are_as_they_were_agreed() {
    let read =
        Request { cookie: 0x0102_0304_0506_0708, command: Command::Read, offset: 4096, len: 512, fua: false };
    let cookie = [1, 2, 3, 4, 5, 6, 7, 8];
    let (plain, structured) = (begun("disk", false), begun("disk", true));
    let simple = |errno: u8| [&[0x67, 0x44, 0x66, 0x98, 0, 0, 0, errno][..], &cookie].concat();
    assert_eq!(plain.head(&read, Ok(())).bytes(), simple(0));
    assert_eq!(plain.head(&read, Err(Errno::Io)).bytes(), simple(5));
    let chunk = |kind: [u8; 2], len: u8| {
        [&[0x66, 0x8e, 0x33, 0xef, 0, 1][..], &kind, &cookie, &[0, 0, if len == 8 { 2 } else { 0 }, len]]
            .concat()
    };
    let head = structured.head(&read, Ok(()));
    assert_eq!(head.bytes(), [&chunk([0, 1], 8)[..], &[0, 0, 0, 0, 0, 0, 16, 0]].concat());
    let head = structured.head(&read, Err(Errno::Io));
    assert_eq!(head.bytes(), [&chunk([0x80, 1], 6)[..], &[0, 0, 0, 5, 0, 0]].concat());
    let write = Request { command: Command::Write, ..read };
    assert_eq!(structured.head(&write, Ok(())).bytes(), simple(0));
    let status = Request { command: Command::Status { one: false }, ..read };
    let told = structured.status(&status, &[(512, true), (4096, false)]);
    let extents = [0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 16, 0, 0, 0, 0, 0];
    assert_eq!(told, [&chunk([0, 5], 20)[..], &extents].concat());
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Something that a client might say, during the handshake or after it, perhaps damaged or cut off.
fn said(chance: &mut Chance, is_begun: bool) -> Vec<u8> {
    let names = ["disk", "cd", "", "floppy"];
    let kinds = [1, 2, LIST, 5, INFO, GO, STRUCTURED, LIST_CONTEXT, SET_CONTEXT, 11, 77];
    let mut bytes = match chance.below(4) {
        _ if is_begun => {
            let (kind, len) = (chance.below(10) as u16, (chance.below(5) * 512) as u32);
            let kind = if kind == 2 { 0 } else { kind };
            let flags = if chance.below(4) == 0 { chance.below(40) as u16 } else { 0 };
            let head = request(flags, kind, 3, (chance.below(9) * 512) as u64, len);
            [head, vec![0xaa; if kind == 1 { len as usize } else { 0 }]].concat()
        }
        0 | 1 => option(kinds[chance.below(kinds.len())], &vec![0; chance.below(40)]),
        2 => go([INFO, GO][chance.below(2)], names[chance.below(4)], &[0, 1, 2, 3]),
        _ => contexts(
            [LIST_CONTEXT, SET_CONTEXT][chance.below(2)],
            names[chance.below(4)],
            &["base:allocation"],
        ),
    };
    match chance.below(40) {
        0 => bytes.truncate(chance.below(bytes.len() + 1)),
        1 if !bytes.is_empty() => {
            let at = chance.below(bytes.len());
            bytes[at] ^= 1 << chance.below(8);
        }
        2 => bytes = (0..chance.below(100)).map(|_| chance.below(256) as u8).collect(),
        _ => {}
    }
    bytes
}

#[test]
fn how_bytes_are_cut_changes_nothing_and_nothing_panics() {
    let mut chance = Chance(0x1234_5678_9abc_def1);
    let (mut requests, mut drops) = (0, 0);
    for case in 0..4000 {
        let mut session = match case % 3 {
            0 => Session::new(),
            1 => greeted(),
            _ => begun("disk", case % 2 == 0),
        };
        let mut bytes = if case % 3 == 0 { HELLO.to_vec() } else { Vec::new() };
        bytes.extend((0..chance.below(20)).flat_map(|_| said(&mut chance, case % 3 == 2)));
        let mut whole = session.clone();
        let expected = feed(&mut whole, &bytes, []);
        let longest = [1, 3, 50, 700][chance.below(4)];
        let pieces: Vec<usize> = (0..=bytes.len()).map(|_| 1 + chance.below(longest)).collect();
        let made = feed(&mut session, &bytes, pieces);
        assert_eq!(made, expected, "case {case}");
        requests += made.requests.len();
        drops += usize::from(matches!(made.end, Some(Step::Drop(_))));
    }
    assert!(requests > 1000 && drops > 500, "{requests} requests, {drops} drops: the cases are too tame");
}
