//! vhost-user-blk with a guest that is a driver in this program: the server in the same process.

#![allow(clippy::disallowed_methods, reason = "a server works in real time")]

use crate::vhost_guest::{
    DISCARD, FEATURE_EVENT_INDEX, FEATURE_FLUSH, FLUSH, GUEST, Guest, ID, READ, WRITE, Wishes, ZERO, range,
};
use crate::vhost_place::{MIB, Place, SOON, bytes, each, fault, noop, try_serve};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::vhost::Device;
use fairhead_live::{Errno, ErrorKind, FaultOp, Harm};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::time::{Duration, Instant};
use vhost::VhostBackend;
use vhost::vhost_user::VhostUserFrontend;

#[test]
fn a_guest_reads_writes_flushes_discards_and_hears_of_errors() {
    for without in [0, FEATURE_EVENT_INDEX, FEATURE_FLUSH] {
        let place = Place::new();
        let mut want = bytes(1);
        let image = place.image("a.img", &want);
        let device = Device { serial: "serial-of-20-bytes-and-more".to_owned(), ..place.device("a") };
        let Some(server) = try_serve(noop(), &[device]) else { return };
        let mode = fs::metadata(place.at("a.sock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut guest = Guest::connect(&place.at("a.sock"), Wishes { without, ..Wishes::default() });
        let config = guest.config();
        assert_eq!(u64::from_le_bytes(config[..8].try_into().unwrap()), (MIB / 512) as u64);
        assert!(guest.read(0, 65536) == want[..65536]);
        assert!(guest.read(2047, 512) == want[MIB - 512..]);
        guest.write(8, &[7; 4096]);
        want[4096..8192].fill(7);
        assert_eq!(guest.ask(FLUSH, 0, &[], 0).0, 0);
        let discard = guest.ask(DISCARD, 0, &range(64, 8, 0), 0).0;
        assert_eq!(discard, 0);
        assert_eq!(guest.ask(ZERO, 0, &[range(128, 8, 0), range(200, 8, 1)].concat(), 0).0, 0);
        for sector in [64, 128, 200] {
            want[sector * 512..][..4096].fill(0);
        }
        let (status, id) = guest.ask(ID, 0, &[], 20);
        assert_eq!((status, &id[..]), (0, &b"serial-of-20-bytes-a"[..]));
        for (kind, sector, data, room) in [
            (READ, 2047, vec![], 1024),
            (READ, 2048, vec![], 512),
            (READ, u64::MAX, vec![], 512),
            (READ, 0, vec![], 100),
            (WRITE, 2048, vec![0; 512], 0),
            (WRITE, 0, vec![0; 513], 0),
            (DISCARD, 0, range(2048, 1, 0), 0),
            (ZERO, 0, vec![0; 20], 0),
        ] {
            assert_eq!(guest.ask(kind, sector, &data, room).0, 1, "{kind} {sector}");
        }
        assert_eq!(guest.ask(77, 0, &[], 512).0, 2);
        assert_eq!(guest.ask(DISCARD, 0, &range(0, 8, 1), 0).0, 2);
        let mut got = vec![0; MIB];
        image.read_exact_at(&mut got, 0).unwrap();
        assert!(got == want);
        let stats = server.stop();
        assert_eq!((stats[0].1.connections, stats[0].1.flushes, stats[0].1.errors), (1, 1, 10));
        assert!(!place.at("a.sock").exists());
    }
}

#[test]
fn many_requests_of_several_queues_are_all_answered_once() {
    let place = Place::new();
    let want = bytes(2);
    place.image("a.img", &want);
    let Some(server) = try_serve(noop(), &[place.device("a")]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes { queues: 3, ..Wishes::default() });
    let memory = guest.memory.clone();
    let (mut asked, mut answered, mut places) = (0u64, 0, vec![[0u64; 64]; 3]);
    while answered < 30_000 {
        for (q, queue) in guest.queues.iter_mut().enumerate() {
            while asked < 30_000 && queue.in_flight() < 40 {
                let sector = asked.wrapping_mul(7919) % 2040;
                let slot = queue.submit(&memory, READ, 0, sector, 4096).unwrap();
                places[q][usize::from(slot)] = sector;
                asked += 1;
            }
            queue.kick(&memory);
        }
        for (q, queue) in guest.queues.iter_mut().enumerate().filter(|(_, queue)| queue.in_flight() > 0) {
            let done = queue.wait(&memory, SOON).expect("an answer");
            assert_eq!((done.status, done.len), (0, 4097));
            let sector = places[q][usize::from(done.slot)] as usize;
            let mut got = [0; 4096];
            memory.read(queue.data(done.slot), &mut got);
            assert!(got == want[sector * 512..][..4096]);
            answered += 1;
        }
    }
    assert_eq!(server.stop()[0].1.reads, 30_000);
}

#[test]
fn a_ring_that_stops_has_answered_everything_and_goes_on_later() {
    let place = Place::new();
    place.image("a.img", &bytes(3));
    let disk = noop().depth(1).faults(&each(FaultOp::Write, Harm::Stuck(Duration::from_millis(20))));
    let Some(_server) = try_serve(disk, &[place.device("a")]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    let memory = guest.memory.clone();
    for sector in 0..10 {
        guest.queues[0].submit(&memory, WRITE, 0, sector * 16, 4096).unwrap();
    }
    guest.queues[0].kick(&memory);
    std::thread::sleep(Duration::from_millis(30));
    let base = guest.frontend().get_vring_base(0).unwrap();
    let mut answered = 0;
    while let Some(done) = guest.queues[0].take(&memory) {
        assert_eq!(done.status, 0);
        answered += 1;
    }
    assert_eq!((base, answered), (10, 10));
    let kick = guest.queues[0].kick.try_clone().unwrap();
    guest.frontend().set_vring_base(0, 10).unwrap();
    guest.frontend().set_vring_kick(0, &kick).unwrap();
    assert_eq!(guest.read(0, 512).len(), 512);
}

#[test]
fn a_device_outlives_its_guests_and_does_again_what_they_wait_for() {
    let place = Place::new();
    let image = place.image("a.img", &vec![0; MIB]);
    let faults = each(FaultOp::Write, Harm::Stuck(Duration::from_millis(200)));
    let Some(_server) = try_serve(noop().faults(&faults), &[place.device("a")]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    let memory = guest.memory.clone();
    for round in 1..4u8 {
        let queue = &mut guest.queues[0];
        for sector in 0..8 {
            let slot = *queue.free.last().unwrap();
            memory.write(queue.data(slot), &[round; 4096]);
            queue.submit(&memory, WRITE, 0, sector * 8, 4096).unwrap();
        }
        queue.kick(&memory);
        std::thread::sleep(Duration::from_millis(20));
        // The connection breaks while the disk is at it.
        guest.reconnect(&place.at("a.sock")).unwrap();
        for _ in 0..8 {
            let done = guest.queues[0].wait(&memory, SOON).expect("what was in flight is answered");
            assert_eq!(done.status, 0);
        }
        assert!(guest.queues[0].take(&memory).is_none());
        let mut got = [0; 8 * 4096];
        image.read_exact_at(&mut got, 0).unwrap();
        assert!(got == [round; 8 * 4096]);
    }
}

#[test]
fn rings_that_are_broken_and_memory_that_is_cut_off_hurt_nobody_else() {
    let place = Place::new();
    place.image("a.img", &bytes(4));
    place.image("b.img", &bytes(5));
    let Some(server) = try_serve(noop(), &[place.device("a"), place.device("b")]) else { return };
    let mut honest = Guest::connect(&place.at("b.sock"), Wishes::default());
    let mut ask_honest = || assert_eq!(honest.read(100, 4096).len(), 4096);
    type Spoil = fn(&mut Guest);
    let spoils: [Spoil; 6] = [
        |g| g.queues[0].offer(&g.memory.clone(), 9999),
        |g| {
            let m = g.memory.clone();
            g.queues[0].describe(&m, 0, GUEST, 16, 1, 0);
            g.queues[0].offer(&m, 0);
        },
        |g| {
            let m = g.memory.clone();
            g.queues[0].describe(&m, 0, u64::MAX - 5, 16, 0, 0);
            g.queues[0].offer(&m, 0);
        },
        |g| {
            let m = g.memory.clone();
            g.queues[0].available = 5000;
            g.queues[0].offer(&m, 0);
        },
        |g| {
            let m = g.memory.clone();
            g.queues[0].describe(&m, 0, GUEST, 1 << 20, 4, 0);
            g.queues[0].offer(&m, 0);
        },
        |g| {
            g.queues[0].submit(&g.memory.clone(), READ, 0, 0, 4096);
            g.memory.file.set_len(0).unwrap();
        },
    ];
    for (i, spoil) in spoils.into_iter().enumerate() {
        let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
        assert_eq!(guest.read(0, 512).len(), 512, "{i}");
        spoil(&mut guest);
        guest.queues[0].kick.write(1).unwrap();
        ask_honest();
        std::thread::sleep(Duration::from_millis(50));
        ask_honest();
        // What is left of it would be touched when it is dropped, if it has its memory.
        drop(guest);
    }
    let again = Guest::connect(&place.at("a.sock"), Wishes::default()).read(0, 512);
    assert_eq!(again.len(), 512);
    assert!(server.stop()[0].1.violations >= 5);
}

#[test]
fn errors_of_the_disk_and_time_limits_reach_the_guest() {
    let place = Place::new();
    place.image("a.img", &bytes(6));
    let faults = each(FaultOp::Write, Harm::Error(Errno::IO));
    faults.add(fault(FaultOp::Read, Harm::Stuck(Duration::from_secs(2))));
    let disk = noop().faults(&faults).timeout(fairhead_core::units::Duration::from_ms(200));
    let Some(_server) = try_serve(disk, &[place.device("a")]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    assert_eq!(guest.ask(WRITE, 0, &[1; 4096], 0).0, 1);
    let began = Instant::now();
    assert_eq!(guest.ask(READ, 0, &[], 4096).0, 1);
    println!("the limit of 0.2 s took {:?}", began.elapsed());
}

#[test]
fn an_image_that_grows_is_noticed() {
    let place = Place::new();
    let image = place.image("a.img", &bytes(7));
    let Some(_server) = try_serve(noop(), &[place.device("a")]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    guest.frontend().set_backend_request_fd(&theirs).unwrap();
    drop(theirs);
    assert_eq!(guest.ask(READ, 2048, &[], 512).0, 1, "behind the end");
    image.set_len(2 * MIB as u64).unwrap();
    ours.set_read_timeout(Some(SOON)).unwrap();
    let mut message = [0; 12];
    std::io::Read::read_exact(&mut &ours, &mut message).unwrap();
    assert_eq!(message, [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(u64::from_le_bytes(guest.config()[..8].try_into().unwrap()), 4096);
    assert_eq!(guest.read(2048, 512), [0; 512]);
}

#[test]
fn a_read_only_device_and_its_image_are_protected() {
    let place = Place::new();
    let image = place.image("a.img", &bytes(8));
    let device = Device { read_only: true, queues: 1, ..place.device("a") };
    let Some(_server) = try_serve(noop(), &[device]) else { return };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    assert_ne!(guest.features & 1 << 5, 0);
    assert_eq!(guest.ask(WRITE, 0, &[1; 512], 0).0, 1);
    assert_eq!(guest.ask(ZERO, 0, &range(0, 1, 0), 0).0, 1);
    assert!(guest.read(0, 512) == bytes(8)[..512]);
    assert_eq!(image.metadata().unwrap().len(), MIB as u64);
    let writer = Device { socket: place.at("other.sock"), ..place.device("a") };
    let refused = Server::start_with_devices(noop(), &[], &[], &[writer], Options::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Locked, "{refused}");
    let two = guest.frontend().set_vring_num(1, 8);
    assert!(two.is_err(), "there is one queue");
}

#[test]
fn exports_and_devices_live_side_by_side() {
    let place = Place::new();
    place.image("a.img", &bytes(9));
    place.image("b.img", &bytes(10));
    let exports = [Export::new("disk", place.at("b.img"))];
    let listen = [Listen::Unix(place.at("nbd.sock"))];
    let devices = [place.device("a")];
    let server = match Server::start_with_devices(noop(), &exports, &listen, &devices, Options::default()) {
        Err(e) if e.kind() == ErrorKind::Ring => return println!("skipped: {e}"),
        other => other.unwrap(),
    };
    let mut guest = Guest::connect(&place.at("a.sock"), Wishes::default());
    let mut greeting = [0; 18];
    for _ in 0..20 {
        assert!(guest.read(0, 512) == bytes(9)[..512]);
        let socket = std::os::unix::net::UnixStream::connect(place.at("nbd.sock")).unwrap();
        std::io::Read::read_exact(&mut &socket, &mut greeting).unwrap();
        assert_eq!(&greeting[..8], b"NBDMAGIC");
    }
    let names: Vec<String> = server.stop().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["disk", "a"]);
}

#[test]
fn a_device_is_for_the_users_that_it_names() {
    let place = Place::new();
    place.image("a.img", &bytes(12));
    let device = Device { allow_uids: vec![12345], ..place.device("a") };
    let Some(_server) = try_serve(noop(), &[device]) else { return };
    let mode = fs::metadata(place.at("a.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666, "all can connect, and are looked at");
    // The user of the server may, too.
    assert_eq!(Guest::connect(&place.at("a.sock"), Wishes::default()).read(0, 512).len(), 512);
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !is_root {
        return println!("skipped: only root can be another user");
    }
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let asks = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.send(bytes([1,0,0,0,1,0,0,0,0,0,0,0])); print(len(s.recv(20)))";
    for (user, is_allowed) in [(12345, true), (12346, false)] {
        let mut python = std::process::Command::new("python3");
        std::os::unix::process::CommandExt::uid(&mut python, user);
        std::os::unix::process::CommandExt::gid(&mut python, user);
        let Ok(out) = python.args(["-c", asks]).arg(place.at("a.sock")).output() else {
            return println!("skipped: there is no python3");
        };
        let said = String::from_utf8_lossy(&out.stdout);
        // A refused client is hung up on, before or after the message.
        let is_served = out.status.success() && said.trim() == "20";
        assert_eq!(is_served, is_allowed, "{user}: {said}");
    }
}
