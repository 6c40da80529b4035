//! `fairhead serve` as a user meets it: mistakes, signals, the table at the end; and real clients where there
//! are any.

#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with a disk in it, removed again.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::File::create(place.path("disk.img")).unwrap().set_len(32 << 20).unwrap();
        place
    }
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }
    fn export(&self) -> String {
        format!("vm={}", self.path("disk.img"))
    }
    /// Serves the disk while a command runs.
    fn run(&self, more: &[&str], command: &str) -> Output {
        let (export, socket) = (self.export(), self.path("s"));
        let args = ["serve", "--export", &export, "--socket", &socket, "--run", command];
        fairhead(&[&args[..], more].concat())
    }
}

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().unwrap()
}

fn refusal(args: &[&str], code: i32) -> String {
    let out = fairhead(&[&["serve"], args].concat());
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text.trim_end().strip_prefix("fairhead: ").expect("the program names itself").to_owned()
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Whether a client is here; says so if it is not.
fn has(program: &str) -> bool {
    let found = exists(program);
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

fn succeeded(out: &Output) -> String {
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}");
    text
}

#[test]
fn mistakes_are_one_line_each() {
    let place = Place::new();
    let (file, socket) = (place.path("disk.img"), place.path("s"));
    let export = |rest: &str| refusal(&["--export", &format!("a={file}{rest}"), "--socket", &socket], 2);
    assert!(export(",wieght=3").ends_with("unknown key 'wieght'; did you mean 'weight'?"));
    assert!(export(",weight=0").ends_with("weight=0: 1 to 10000"));
    assert!(export(",weight").ends_with("weight has no value"));
    assert!(export(",class=fast").ends_with("class=fast: rt, be or idle"));
    assert!(export(",rbps=10").contains("sizes have a unit"));
    assert!(export(",riops=0").ends_with("riops=0: would never do anything; max is no limit"));
    assert!(export(",readonly=1").ends_with("it has no value"));
    assert!(export(",allow_uid=root").ends_with("allow_uid=root: not a number, such as allow_uid=1000"));
    assert!(export(",connections=0").ends_with("connections=0: at least 1"));
    assert!(refusal(&["--export", "a", "--socket", &socket], 2).contains("write NAME=FILE"));
    let one = place.export();
    assert!(refusal(&["--export", &one], 2).contains("write --socket PATH or --listen PORT"));
    let first = ["--export", one.as_str(), "--socket", socket.as_str()];
    let more = |rest: &[&str], code| refusal(&[&first, rest].concat(), code);
    assert!(more(&["--sched", "cqf"], 2).contains("did you mean 'cfq'?"));
    assert!(more(&["--sched", "cfq", "--set", "slice_idel=1ms"], 2).contains("did you mean 'slice_idle'?"));
    assert!(
        more(&["--timeout", "0"], 2).contains("'--timeout=0' is zero; write a time such as --timeout=10s")
    );
    assert!(more(&["--timeout", "soon"], 2).starts_with("'--timeout=soon'"));
    assert!(more(&["--emulate", "nas2021"], 2).contains("did you mean 'nas2020'?"));
    assert!(more(&["--listen", "somewhere"], 2).contains("neither a port nor ADDRESS:PORT"));
    assert!(more(&["--listen", "0.0.0.0:0"], 1).ends_with("--insecure-remote allows it"));
    assert!(more(&["--export", &one], 2).contains("there are two of that name"));
    let twice = format!("b={file},group=g,weight=3");
    let again = format!("c={file},group=g,weight=4");
    assert!(more(&["--export", &twice, "--export", &again], 2).contains("write them at one export"));
    assert!(refusal(&["--export", "a=/no/such/file", "--socket", &socket], 2).contains("No such file"));
    assert!(refusal(&["--export", "a=/tmp", "--socket", &socket], 2).contains("/tmp: "));
    assert!(!Path::new(&socket).exists(), "a server that did not start leaves nothing");
    std::fs::write(&socket, "").unwrap();
    assert!(more(&[], 1).ends_with("there is a file of that name"));
}

#[test]
fn devices_of_virtual_machines_have_their_settings() {
    let place = Place::new();
    let (file, socket) = (place.path("disk.img"), place.path("vm1.sock"));
    let device = |rest: &str| refusal(&["--vhost-user", &format!("{socket}={file}{rest}")], 2);
    assert!(device(",weigt=1").contains("did you mean 'weight'?"));
    assert!(device(",queues=0").contains("queues=0: 1 to 64"));
    assert!(device(",queues=65").contains("queues=65: 1 to 64"));
    assert!(device(",readonly=1").contains("it has no value"));
    assert!(device(",name=").contains("name has no value"));
    assert!(refusal(&["--vhost-user", &socket], 2).contains("write PATH=FILE"));
    let both = ["--vhost-user", &format!("{socket}={file}"), "--vhost-user", &format!("{socket}={file}")];
    assert!(refusal(&both, 2).contains("two of that name"));
    let device = format!("{socket}={file},weight=300,queues=2,serial=x,riops=500");
    let out = fairhead(&["serve", "--vhost-user", &device, "--run", "test -S \"$socket\" && echo served"]);
    let text = succeeded(&out);
    assert!(text.contains("served") && text.contains("vm1 "), "{text}");
}

#[test]
fn sigterm_ends_it_with_a_table() {
    let place = Place::new();
    let (export, socket) = (place.export(), place.path("s"));
    let mut server = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(["serve", "--export", &export, "--socket", &socket, "--emulate", "nvme", "--sched", "noop"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut line = || said.next().unwrap().unwrap();
    let disk = "a disk without a head, as its model says; depth 32 (its own queue takes 1023)";
    assert_eq!(line(), format!("fairhead: {disk}"));
    assert_eq!(line(), format!("fairhead: listening on {socket}"));
    let start = Instant::now();
    assert!(Command::new("kill").arg(server.id().to_string()).status().unwrap().success());
    let status = server.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(5));
    let mut text = String::new();
    server.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(status.success(), "{text}");
    assert!(text.starts_with("export") && text.contains("\nvm "), "{text}");
    assert!(text.contains("emulated disk: ") && text.contains("trusted"), "{text}");
    assert!(!Path::new(&socket).exists());
}

#[test]
fn what_is_run_decides_how_it_ends() {
    let place = Place::new();
    assert!(
        succeeded(&place.run(&[], "test -S \"$socket\" && echo at $uri")).contains("at nbd+unix:///?socket=")
    );
    let out = place.run(&[], "exit 3");
    assert_eq!(out.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&out.stderr).contains("'exit 3' ended with exit status: 3"));
}

#[test]
fn an_image_has_one_writer() {
    let place = Place::new();
    let (file, socket, other) = (place.path("disk.img"), place.path("s"), place.path("other"));
    let second = |more: &str| {
        let program = env!("CARGO_BIN_EXE_fairhead");
        format!("{program} serve --export vm={file}{more} --socket {other} --run true")
    };
    let out = place.run(&[], &second(""));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{text}");
    let why =
        "disk.img: another program uses it and forbids others to write; --force-share serves it all the same";
    assert!(text.contains(why), "{text}");
    let out = place.run(&[], &second(",readonly"));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(text.contains("disk.img: another program writes it; --force-share"), "{text}");
    succeeded(&place.run(&[], &second(" --force-share")));
    // Of one server, exports may share a file.
    let (also, reader) = (format!("b={file}"), format!("c={file},readonly"));
    succeeded(&place.run(&["--export", &also, "--export", &reader], "true"));
    let readers = ["serve", "--export", &reader, "--socket", &socket, "--run", &second(",readonly")];
    succeeded(&fairhead(&readers));
}

#[test]
fn qemu_and_a_server_exclude_each_other() {
    if !has("qemu-io") || !has("qemu-nbd") {
        return;
    }
    let place = Place::new();
    let (file, socket, other) = (place.path("disk.img"), place.path("s"), place.path("other"));
    let out = place.run(&[], &format!("qemu-io -f raw -c 'write 0 4k' {file}"));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && text.contains("lock"), "{text}");
    succeeded(&place.run(&[], &format!("qemu-io -r -f raw -c 'read 0 4k' {file}")));
    let mut qemu = Command::new("qemu-nbd").args(["-t", "-f", "raw", "-k", &other, &file]).spawn().unwrap();
    while !Path::new(&other).exists() {
        assert!(qemu.try_wait().unwrap().is_none(), "qemu-nbd ends at once");
        std::thread::sleep(Duration::from_millis(10));
    }
    let text = refusal(&["--export", &place.export(), "--socket", &socket, "--run", "true"], 1);
    assert!(text.contains("another program writes it"), "{text}");
    qemu.kill().unwrap();
    qemu.wait().unwrap();
    succeeded(&place.run(&[], "true"));
}

#[test]
fn nbdinfo_sees_what_there_is() {
    if !has("nbdinfo") {
        return;
    }
    let place = Place::new();
    let text =
        succeeded(&place.run(&[], "nbdinfo \"$uri\" && nbdinfo --map \"$uri\" && nbdinfo --list \"$uri\""));
    for line in [
        "protocol: newstyle-fixed without TLS, using structured packets",
        "export-size: 33554432",
        "base:allocation",
        "can_multi_conn: true",
        "can_fast_zero: true",
        "is_read_only: false",
        "hole,zero",
        "export=\"vm\":",
    ] {
        assert!(text.contains(line), "no '{line}' in {text}");
    }
}

#[test]
fn nbdcopy_copies_there_and_back() {
    if !has("nbdcopy") {
        return;
    }
    let place = Place::new();
    let image: Vec<u8> =
        (0..32_u32 << 20).map(|i| if i >> 20 & 3 == 0 { 0 } else { (i ^ i >> 11) as u8 }).collect();
    std::fs::write(place.path("in"), &image).unwrap();
    let (there, back) = (place.path("in"), place.path("out"));
    succeeded(
        &place.run(
            &[],
            &format!("nbdcopy --connections=4 --flush {there} \"$uri\" && nbdcopy \"$uri\" {back}"),
        ),
    );
    assert!(std::fs::read(&back).unwrap() == image, "it came back changed");
    assert!(std::fs::read(place.path("disk.img")).unwrap() == image, "it was stored changed");
}

/// Every command with every flag, right and wrong, and a model of the disk: see the script.
#[test]
fn libnbd_finds_nothing_wrong() {
    let has_nbd = |python: &str| {
        Command::new(python).args(["-c", "import nbd"]).output().is_ok_and(|o| o.status.success())
    };
    let Some(python) = ["/usr/bin/python3", "python3"].into_iter().find(|p| has_nbd(p)) else {
        return println!("skipped: there is no libnbd for Python");
    };
    let place = Place::new();
    let make = |name: &str, size| std::fs::File::create(place.path(name)).unwrap().set_len(size).unwrap();
    let run = format!("{python} {}/tests/libnbd.py", env!("CARGO_MANIFEST_DIR"));
    for more in [&["--sched", "bfq"][..], &["--sched", "deadline", "--cached"]] {
        make("vm.img", 64 << 20);
        make("large.img", 8 << 30);
        let exports = [
            format!("vm={},description=a disk", place.path("vm.img")),
            format!("cd={},readonly", place.path("vm.img")),
            format!("large={}", place.path("large.img")),
        ];
        let exports: Vec<&str> = exports.iter().flat_map(|e| ["--export", e]).collect();
        let args = ["serve", "--depth", "8", "--socket", &place.path("s"), "--run", &run];
        let text = succeeded(&fairhead(&[&args[..], &exports, more].concat()));
        assert!(text.contains("is content"), "{text}");
    }
}

/// libnbd opens the socket, as a service manager does, and starts the server with it.
#[test]
fn a_socket_that_a_manager_has_opened_is_served() {
    let has_nbd =
        Command::new("python3").args(["-c", "import nbd"]).output().is_ok_and(|o| o.status.success());
    if !has_nbd {
        return println!("skipped: there is no libnbd for Python");
    }
    let place = Place::new();
    let program = "import nbd, sys\n\
                   h = nbd.NBD()\n\
                   h.connect_systemd_socket_activation(sys.argv[1:])\n\
                   h.pwrite(b'7' * 512, 512)\n\
                   assert h.pread(1024, 0) == bytes(512) + b'7' * 512\n\
                   h.shutdown()";
    let mut python = Command::new("python3");
    python.args(["-c", program, env!("CARGO_BIN_EXE_fairhead"), "serve", "--export", &place.export()]);
    succeeded(&python.output().unwrap());
    let unfit = Command::new("sh")
        .args(["-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3</dev/null", "sh"])
        .args([env!("CARGO_BIN_EXE_fairhead"), "serve", "--export", &place.export()])
        .output()
        .unwrap();
    let said = String::from_utf8(unfit.stderr).unwrap();
    assert_eq!(said, "fairhead: descriptor 3: no socket that listens\n");
}

#[test]
fn qemu_writes_zeroes_discards_and_reads() {
    if !has("qemu-io") || !has("qemu-img") {
        return;
    }
    let place = Place::new();
    let command = "qemu-io -f raw -c 'write -P 7 0 1M' -c 'read -P 7 0 1M' -c 'write -z 64k 64k' -c 'read -P 0 64k 64k' \
        -c 'write -z -u 256k 64k' -c 'read -P 0 256k 64k' -c 'write -f -P 9 512k 4k' -c 'read -P 9 512k 4k' -c flush \
        -c 'discard 0 64k' -c 'aio_write -P 3 2M 8M' -c aio_flush -c 'read -P 3 2M 8M' \"$uri\" \
        && qemu-img map -f raw \"$uri\" && qemu-img compare -f raw -F raw \"$uri\" ";
    let text = succeeded(&place.run(&[], &format!("{command} {}", place.path("disk.img"))));
    assert!(!text.contains("failed"), "{text}");
    assert!(text.contains("Images are identical"), "{text}");
}

#[test]
fn fio_verifies_what_it_wrote_under_several_schedulers() {
    if !has("fio") {
        return;
    }
    let engines = Command::new("fio").arg("--enghelp").output().unwrap();
    if !String::from_utf8_lossy(&engines.stdout).contains("nbd") {
        println!("skipped: fio has no nbd engine");
        return;
    }
    let place = Place::new();
    for sched in ["noop", "deadline", "cfq", "bfq"] {
        let command = "fio --name=v --ioengine=nbd --uri=\"$uri\" --rw=randrw --bsrange=4k-64k --size=16m --iodepth=16 \
            --verify=crc32c --verify_fatal=1 --verify_state_save=0 --verify_state_save=0 --fsync=50 --minimal >/dev/null";
        let text = succeeded(&place.run(&["--sched", sched, "--depth", "8"], command));
        let row = text.lines().find(|l| l.starts_with("vm ")).expect("a row of the table");
        assert!(row.trim_end().ends_with(" 0"), "errors under {sched}: {text}");
    }
}

#[test]
fn a_recording_is_decided_again_as_it_was() {
    let place = Place::new();
    let log = place.path("live.log");
    // Without a client there is little to decide, yet a recording.
    let copy = format!("nbdcopy --requests=16 \"$uri\" {}", place.path("copy"));
    succeeded(&place.run(&["--record", &log], if has("nbdcopy") { &copy } else { "true" }));
    let told = succeeded(&fairhead(&["replay-live", &log]));
    assert!(told.contains("decisions are the same"), "{told}");
    let text = std::fs::read_to_string(&log).unwrap();
    let at = text.lines().count() + 1;
    std::fs::write(&log, format!("{text}99999999999999999 dispatch 5\n")).unwrap();
    let out = fairhead(&["replay-live", &log]);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(
        (out.status.code(), said),
        (Some(1), format!("fairhead: {log}: line {at}: Issue(Tag(5)) was decided, now it is Empty\n"))
    );
    let out = fairhead(&["replay-live", &place.path("disk.img")]);
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8(out.stderr).unwrap().contains("line 1: "));
    let out = place.run(&["--record", &place.path("no/such")], "true");
    assert!(String::from_utf8(out.stderr).unwrap().contains("no/such': there is no folder"), "named");
}
