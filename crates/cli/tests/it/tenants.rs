//! The examples of a server with two tenants: the systemd units, and the guests of libvirt.

#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::process::{Process, fairhead, start};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const NOBODY: u32 = 65534;

fn examples(folder: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder);
    let mut found: Vec<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

/// Whether a program is here; says so if it is not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        println!("skipped: there is no {program}");
    }
    found.is_ok()
}

fn is_root() -> bool {
    let is = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is {
        println!("skipped: only root can become another user");
    }
    is
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

/// A folder that all users may use.
fn shared_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

fn image(path: &Path) {
    fs::File::create(path).unwrap().set_len(16 << 20).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
}

/// Until it is so, for a minute at most.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} within a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn systemd_finds_nothing_wrong_in_the_units() {
    if !has("systemd-analyze") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copies: Vec<PathBuf> = examples("systemd")
        .iter()
        .map(|unit| {
            // It looks whether the program is there.
            let words = fs::read_to_string(unit)
                .unwrap()
                .replace("/usr/bin/fairhead", env!("CARGO_BIN_EXE_fairhead"));
            let copy = folder.path().join(unit.file_name().unwrap());
            fs::write(&copy, words).unwrap();
            copy
        })
        .collect();
    for unit in copies {
        let out = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output().unwrap();
        assert!(out.status.success() && text(&out).is_empty(), "{}: {}", unit.display(), text(&out));
        let name = unit.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".service") && !name.contains("mount") {
            // The exposure in tenths; what is called safe ends at 2.0.
            let args = ["security", "--offline=true", "--threshold=15", "--no-pager"];
            let out = Command::new("systemd-analyze").args(args).arg(&unit).output().unwrap();
            assert!(out.status.success(), "{name}: {}", text(&out));
        }
    }
}

/// The words of a unit's ExecStart, with the paths of this test.
fn exec_start(unit: &str, folder: &Path) -> Vec<String> {
    let path = examples("systemd").into_iter().find(|p| p.ends_with(unit)).unwrap();
    let text = fs::read_to_string(path).unwrap().replace("\\\n", " ");
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let folder = folder.to_str().unwrap();
    line.replace("/usr/bin/fairhead", env!("CARGO_BIN_EXE_fairhead"))
        .replace("/var/lib/fairhead/tenants", folder)
        .replace("${RUNTIME_DIRECTORY}", folder)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

#[test]
fn each_tenant_of_the_units_sees_its_own_disk() {
    if !is_root() || !has("systemd-socket-activate") || !has("nbdinfo") {
        return;
    }
    let folder = shared_folder();
    ["gold.img", "tin.img"].iter().for_each(|name| image(&folder.path().join(name)));
    let socket = folder.path().join("nbd");
    let mut command = Command::new("systemd-socket-activate");
    command.arg("--listen").arg(&socket).args(exec_start("fairhead-tenants.service", folder.path()));
    let server = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("a socket", || socket.exists());
    // SocketMode= of the .socket unit.
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let nbdinfo = |user: u32, what: &str, export: &str| {
        let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
        Command::new("nbdinfo").args([what, &uri]).uid(user).gid(user).output().unwrap()
    };
    for (user, own, other) in [(1001, "gold", "tin"), (1002, "tin", "gold")] {
        let list = nbdinfo(user, "--list", "");
        assert!(list.status.success(), "{}", text(&list));
        let sees = |export: &str| text(&list).contains(&format!("export=\"{export}\""));
        assert!(sees(own) && !sees(other), "{user}: {}", text(&list));
        assert_eq!(text(&nbdinfo(user, "--size", own)).trim(), "16777216", "{user}");
        let refused = nbdinfo(user, "--size", other);
        assert!(!refused.status.success(), "{user}: {}", text(&refused));
    }
    let stats = fairhead().arg("ctl").arg(folder.path().join("control")).output().unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
    let weight = |name: &str| {
        let groups = stats["groups"].as_array().unwrap();
        groups.iter().find(|g| g["group"] == name).unwrap()["weight"].as_u64()
    };
    assert_eq!((weight("gold"), weight("tin")), (Some(300), Some(100)));
    drop(server);
}

#[test]
fn libvirt_finds_nothing_wrong_in_the_guests() {
    // Its schemas are read by xmllint.
    if !has("virt-xml-validate") || !has("xmllint") {
        return;
    }
    for guest in examples("libvirt") {
        let out = Command::new("virt-xml-validate").arg(&guest).arg("domain").output().unwrap();
        assert!(out.status.success(), "{}", text(&out));
    }
}

/// libvirt of a user of its own: nothing of it is left when its folder is gone.
struct Libvirt {
    folder: tempfile::TempDir,
    daemon: Option<Process>,
}

impl Libvirt {
    fn new() -> Self {
        let mut libvirt = Self { folder: shared_folder(), daemon: None };
        fs::create_dir(libvirt.folder.path().join("home")).unwrap();
        std::os::unix::fs::chown(libvirt.folder.path().join("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = libvirt.command("libvirtd");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        libvirt.daemon = Some(Process(command.spawn().unwrap()));
        wait_for("libvirt", || libvirt.virsh(&["uri"]).status.success());
        libvirt
    }

    fn command(&self, program: &str) -> Command {
        let home = self.folder.path().join("home");
        let mut command = Command::new(program);
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env(name, &home);
        }
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        command
    }

    fn virsh(&self, args: &[&str]) -> Output {
        self.command("virsh").args(["--connect", "qemu:///session"]).args(args).output().unwrap()
    }
}

impl Drop for Libvirt {
    fn drop(&mut self) {
        for guest in ["gold", "tin"] {
            let _ = self.virsh(&["destroy", guest]);
        }
    }
}

/// The guests have no system: they look for one on their disks, which is enough to see whose those are.
#[test]
fn two_guests_have_their_disks_on_one_server() {
    let programs = ["libvirtd", "virsh", "qemu-system-x86_64"];
    if !is_root() || !programs.iter().all(|program| has(program)) {
        return;
    }
    let libvirt = Libvirt::new();
    let at = |name: &str| libvirt.folder.path().join(name);
    let mut server = fairhead();
    server.args(["serve", "--socket"]).arg(at("nbd")).arg("--control").arg(at("control"));
    for name in ["gold", "tin"] {
        image(&at(name));
        server.arg("--export").arg(format!("{name}={}", at(name).display()));
    }
    let (_server, line, _said) = start(server.uid(NOBODY).gid(NOBODY).stdout(Stdio::null()));
    assert!(line.starts_with("fairhead: listening on "), "{line}");
    for guest in examples("libvirt").iter().filter(|g| !g.to_str().unwrap().contains("vhost")) {
        let xml = fs::read_to_string(guest).unwrap();
        let xml = xml.replace("/run/fairhead-tenants.nbd", at("nbd").to_str().unwrap());
        let own = at(guest.file_name().unwrap().to_str().unwrap());
        fs::write(&own, xml).unwrap();
        let out = libvirt.virsh(&["create", own.to_str().unwrap()]);
        assert!(out.status.success(), "{}", text(&out));
    }
    wait_for("both guests read", || {
        let stats = fairhead().arg("ctl").arg(at("control")).output().unwrap();
        let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
        let exports = stats["exports"].as_array().unwrap();
        exports.len() == 2 && exports.iter().all(|e| e["reads"].as_u64() > Some(0))
    });
}
