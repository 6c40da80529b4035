//! Exports that come, go and change their size while the server runs.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::nbd_client::{READ, WRITE, client, hear, mapper, reply, request, status};
use fairhead_core::units::Weight;
use fairhead_live::control::{Caller, Change, ControlOptions, ControlServer, line_of_words};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::{DiskOptions, ErrorKind};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SIZE: u64 = 1 << 20;
const NO_SPACE: u32 = 28;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn image(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        File::create(&path).unwrap().set_len(SIZE).unwrap();
        path
    }

    fn export(&self, name: &str) -> Export {
        Export::new(name, self.image(name))
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn serve(&self, exports: &[Export]) -> Server {
        let disk = DiskOptions::new::<&str>([]).scheduler("bfq").unwrap().depth(8);
        Server::start(disk, exports, &[Listen::Unix(self.socket())], Options::default()).unwrap()
    }
}

fn read(socket: &mut UnixStream, offset: u64) -> (u32, Vec<u8>) {
    socket.write_all(&request(READ, 7, offset, 4096)).unwrap();
    let (error, _) = reply(socket);
    let mut data = vec![0; if error == 0 { 4096 } else { 0 }];
    socket.read_exact(&mut data).unwrap();
    (error, data)
}

fn write(socket: &mut UnixStream, offset: u64, byte: u8) -> u32 {
    socket.write_all(&[request(WRITE, 8, offset, 4096), vec![byte; 4096]].concat()).unwrap();
    reply(socket).0
}

/// Waits until it is so, for a second at most.
fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn an_export_comes_and_goes_and_its_lock_and_group_with_it() {
    let place = Place::new();
    let server = place.serve(&[place.export("first")]);
    let exports = server.exports();
    assert!(client(&place.socket(), "second").is_err());
    let second = Export { group: "vms/second".to_owned(), ..place.export("second") };
    let change = Change { weight: Weight::new(300), ..Change::default() };
    exports.add(&second, change).unwrap();
    let (mut old, size) = client(&place.socket(), "second").unwrap();
    assert_eq!(size, SIZE);
    assert_eq!(write(&mut old, 8192, 5), 0);
    assert_eq!(read(&mut old, 8192), (0, vec![5; 4096]));
    let groups =
        || -> Vec<String> { server.disk().groups().unwrap().into_iter().map(|(name, _)| name).collect() };
    assert_eq!(groups(), ["", "first", "vms", "vms/second"]);

    // Connections that have it keep it, and no other server gets the image meanwhile.
    assert_eq!(exports.remove("second", false).unwrap(), 1);
    assert!(client(&place.socket(), "second").is_err(), "no new connections");
    assert_eq!(read(&mut old, 8192), (0, vec![5; 4096]));
    let why = exports.add(&second, Change::default()).unwrap_err().to_string();
    assert!(why.contains("clients of the removed export 'second' still use it"), "{why}");
    assert_eq!(groups(), ["", "first", "vms", "vms/second"]);
    drop(old);
    assert!(soon(|| groups() == ["", "first"]), "its group goes with the last connection");
    let elsewhere = Place::new();
    let other = elsewhere.serve(&[Export::new("second", &second.file)]);
    let why = exports.add(&second, Change::default()).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Locked, "{why}");
    drop(other);
    exports.add(&second, Change::default()).unwrap();
    assert_eq!(read(&mut client(&place.socket(), "second").unwrap().0, 8192).1, [5; 4096]);
}

#[test]
fn a_forced_removal_ends_the_connections() {
    let place = Place::new();
    let server = place.serve(&[place.export("first"), place.export("second")]);
    let mut stays = client(&place.socket(), "first").unwrap().0;
    let mut goes = client(&place.socket(), "second").unwrap().0;
    assert_eq!(server.exports().remove("second", true).unwrap(), 1);
    assert!(hear(&mut goes).is_err(), "it is hung up on");
    assert_eq!(read(&mut stays, 0).0, 0);
    // The image is free at once, or as soon as the kernel has returned what it had of the connection.
    assert!(soon(|| server.exports().add(&place.export("second"), Change::default()).is_ok()));
    assert_eq!(server.stats().len(), 2);
}

#[test]
fn what_cannot_be_added_or_removed_is_refused_in_one_line() {
    let place = Place::new();
    let server = place.serve(&[place.export("first")]);
    let exports = server.exports();
    let add = |export: Export| exports.add(&export, Change::default()).unwrap_err().to_string();
    assert_eq!(add(place.export("first")), "export first: there is one of that name");
    let why = add(Export::new("second", place.folder.path().join("nowhere")));
    assert!(why.ends_with("nowhere: No such file or directory (os error 2)"), "{why}");
    let why = add(Export::new("second", place.folder.path().join("first")));
    assert!(why.ends_with("first: it is exported as 'first' already"), "{why}");
    let why = add(Export { allow_uids: vec![1000], ..place.export("second") });
    assert!(why.contains("no other user can open the server's sockets"), "{why}");
    let change = Change { weight: Weight::new(300), ..Change::default() };
    let export = Export { group: "first".to_owned(), ..place.export("second") };
    let why = exports.add(&export, change).unwrap_err().to_string();
    assert_eq!(why, "group first: there is one; change it with set");
    let why = exports.remove("frist", false).unwrap_err().to_string();
    assert_eq!(why, "unknown export 'frist'; did you mean 'first'?");
    // None of it left anything behind.
    assert_eq!(exports.look().len(), 1);
    exports.add(&export, Change::default()).unwrap();
}

#[test]
fn new_connections_see_a_new_size_and_old_ones_keep_theirs() {
    let place = Place::new();
    let first = place.export("first");
    let server = place.serve(&[first.clone(), place.export("behind")]);
    let mut old = client(&place.socket(), "first").unwrap().0;
    assert_eq!(write(&mut old, SIZE - 4096, 1), 0);
    server.exports().resize("first", 2 * SIZE).unwrap();
    assert_eq!(first.file.metadata().unwrap().len(), 2 * SIZE);
    let (mut new, size) = client(&place.socket(), "first").unwrap();
    assert_eq!(size, 2 * SIZE);
    assert_eq!((write(&mut new, 2 * SIZE - 4096, 2), write(&mut old, SIZE, 3)), (0, NO_SPACE));
    assert_eq!(read(&mut new, SIZE - 4096), (0, vec![1; 4096]));
    // What is beyond the old end is no part of another image.
    assert_eq!(read(&mut new, 2 * SIZE - 4096), (0, vec![2; 4096]));
    assert_eq!(read(&mut client(&place.socket(), "behind").unwrap().0, SIZE - 4096), (0, vec![0; 4096]));

    server.exports().resize("first", SIZE / 2).unwrap();
    assert_eq!(client(&place.socket(), "first").unwrap().1, SIZE / 2);
    for socket in [&mut old, &mut new] {
        assert_eq!(read(socket, SIZE - 4096), (0, vec![0; 4096]), "behind the end are zeros");
        assert_eq!(write(socket, SIZE / 2, 4), NO_SPACE);
        assert_eq!((write(socket, 0, 4), read(socket, 0).1), (0, vec![4; 4096]));
    }
    assert_eq!(first.file.metadata().unwrap().len(), SIZE / 2, "no write made it longer");
    assert_eq!(server.stats()[0].0, "first");
    assert!(server.stats()[0].1.writes >= 4, "one export's statistics, whatever its size");
}

/// A write whose data are still coming reaches behind the new end: the image is not cut before it is done.
#[test]
fn an_image_is_cut_when_writes_behind_the_new_end_are_done() {
    let place = Place::new();
    let first = place.export("first");
    let server = place.serve(std::slice::from_ref(&first));
    let mut socket = client(&place.socket(), "first").unwrap().0;
    let bytes = [request(WRITE, 1, SIZE - 4096, 4096), vec![9; 4096]].concat();
    socket.write_all(&bytes[..1000]).unwrap();
    assert_eq!(read(&mut client(&place.socket(), "first").unwrap().0, 0).0, 0, "the server has it by now");
    let exports = server.exports();
    let cut = std::thread::spawn(move || exports.resize("first", SIZE / 2));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(first.file.metadata().unwrap().len(), SIZE, "not yet");
    socket.write_all(&bytes[1000..]).unwrap();
    assert_eq!(reply(&mut socket), (0, 1));
    cut.join().unwrap().unwrap();
    assert_eq!(first.file.metadata().unwrap().len(), SIZE / 2);
}

/// Clients that knew an older size of the image may go while it waits to be cut.
#[test]
fn an_image_is_cut_when_clients_of_an_older_size_have_gone_meanwhile() {
    let place = Place::new();
    let first = place.export("first");
    let server = place.serve(std::slice::from_ref(&first));
    let old = client(&place.socket(), "first").unwrap().0;
    server.exports().resize("first", 2 * SIZE).unwrap();
    let mut socket = client(&place.socket(), "first").unwrap().0;
    let bytes = [request(WRITE, 1, 2 * SIZE - 4096, 4096), vec![9; 4096]].concat();
    socket.write_all(&bytes[..1000]).unwrap();
    assert_eq!(read(&mut client(&place.socket(), "first").unwrap().0, 0).0, 0, "the server has it by now");
    let exports = server.exports();
    let cut = std::thread::spawn(move || exports.resize("first", SIZE / 2));
    std::thread::sleep(Duration::from_millis(100));
    drop(old);
    std::thread::sleep(Duration::from_millis(200));
    socket.write_all(&bytes[1000..]).unwrap();
    assert_eq!(reply(&mut socket), (0, 1));
    cut.join().unwrap().unwrap();
    assert_eq!(client(&place.socket(), "first").unwrap().1, SIZE / 2);
}

/// The number of a removed group is given to another one; connections that had it do not count there.
#[test]
fn a_connection_counts_for_no_group_that_got_the_number_of_its_own() {
    let place = Place::new();
    let server = place.serve(&[place.export("first")]);
    let mut socket = client(&place.socket(), "first").unwrap().0;
    assert_eq!(read(&mut socket, 0).0, 0);
    server.disk().remove_group("first").unwrap();
    // All numbers are taken, also the one that is free again.
    let made = (0..).take_while(|i| server.disk().set_weight(&format!("other{i}"), 100).is_ok()).count();
    assert_eq!(made, 255);
    for _ in 0..10 {
        assert_eq!(read(&mut socket, 0).0, 0);
    }
    let reads = |groups: Vec<(String, fairhead_core::groups::GroupStats)>| -> Vec<(String, u64)> {
        let all = groups.into_iter().map(|(name, stats)| (name, stats.io_serviced.read()));
        all.filter(|(_, reads)| *reads > 0).collect()
    };
    let root = ("".to_owned(), 10);
    assert_eq!(
        reads(server.disk().groups().unwrap()),
        std::slice::from_ref(&root),
        "its group was in the root"
    );
    // A group of the old name is its group again.
    server.disk().remove_group("other3").unwrap();
    server.disk().set_weight("first", 100).unwrap();
    assert_eq!(read(&mut socket, 0).0, 0);
    assert_eq!(reads(server.disk().groups().unwrap()), [root, ("first".to_owned(), 1)]);
}

/// The numbers of files are given out again, and what was known of one is not believed of the next.
#[test]
fn block_status_of_a_new_image_is_not_that_of_the_one_before() {
    let place = Place::new();
    let server = place.serve(&[place.export("empty")]);
    let full = place.export("full");
    for _ in 0..3 {
        let exports = server.exports();
        assert!(soon(|| exports.add(&place.export("other"), Change::default()).is_ok()));
        let mut socket = mapper(&place.socket(), "other").unwrap();
        assert_eq!(status(&mut socket, 0, 0, SIZE as u32), [(SIZE as u32, true)]);
        exports.remove("other", true).unwrap();
        File::options().write(true).open(&full.file).unwrap().write_all_at(&[1; SIZE as usize], 0).unwrap();
        assert!(soon(|| exports.add(&full, Change::default()).is_ok()));
        let mut socket = mapper(&place.socket(), "full").unwrap();
        assert_eq!(status(&mut socket, 0, 0, SIZE as u32), [(SIZE as u32, false)]);
        exports.remove("full", true).unwrap();
    }
}

#[test]
fn all_of_it_over_the_control_socket() {
    let place = Place::new();
    let server = place.serve(&[place.export("first")]);
    let control = place.folder.path().join("control");
    let options = ControlOptions {
        socket: Some(control.clone()),
        exports: Some(server.exports()),
        ..ControlOptions::default()
    };
    let _control = ControlServer::start(server.disk(), &options).unwrap();
    let mut caller = Caller::connect(&control).unwrap();
    let mut say = |words: &str| -> Result<Value, String> {
        let line = line_of_words(&words.split(' ').collect::<Vec<_>>())?;
        caller.ask(&line).map_err(|e| e.to_string())
    };
    let file = place.image("second");
    let file = file.display();
    say(&format!("export add second={file},weight=300,rbps=50m,connections=4,description=vm")).unwrap();
    let mut socket = client(&place.socket(), "second").unwrap().0;
    assert_eq!(read(&mut socket, 0).0, 0);
    let list = say("exports").unwrap();
    let second = &list["exports"][1];
    let member = |key: &str| second[key].clone();
    assert_eq!((member("export"), member("size")), ("second".into(), SIZE.into()));
    assert_eq!((member("connections"), member("state")), (1.into(), "open".into()));
    let stats = say("stats").unwrap();
    assert_eq!(stats["exports"][1]["reads"], 1);
    let groups = stats["groups"].as_array().unwrap();
    assert!(groups.iter().any(|g| g["group"] == "second" && g["weight"] == 300), "{groups:?}");
    assert_eq!(say("export resize second 2m").unwrap()["ok"], true);
    assert_eq!(say("export remove second").unwrap()["connections"], 1);
    let list = say("exports").unwrap();
    assert_eq!(list["exports"][1]["state"], "closing", "{list}");
    drop(socket);
    assert!(soon(|| say("exports").unwrap()["exports"].as_array().unwrap().len() == 1));
    assert!(
        say(&format!("export add third={file},wieght=3")).unwrap_err().contains("did you mean 'weight'?")
    );
    assert!(say("export resize first").unwrap_err().contains("which size?"));
}
