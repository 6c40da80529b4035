//! The package in a Debian 12 that has nothing else, with its own kernel and its own udev, started in QEMU's
//! software emulation: everything that the docs say of a user's machine, as root there.
//!
//! `clean_debian/make.sh` makes the system in `target/debian`, which `cargo xtask debian` does once.
//! `clean_debian/check.sh` is what runs in it. Its disks: `vda`, the system; `vdb`, an archive with the check
//! and the package; `sda`, a rotating disk on ATA with a serial number, whose identity udev finds out by
//! itself. Nothing is written to the image of the system.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

mod machine;
mod process;

use machine::{said, wait_at_most};
use process::Process;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// It takes minutes on two idle processors.
const TIME_MAX: Duration = Duration::from_secs(900);

/// The package, and the folder with the system; or why there is none.
fn given() -> Result<(PathBuf, PathBuf), &'static str> {
    let package = std::env::var_os("FAIRHEAD_PACKAGE");
    let package =
        package.ok_or("FAIRHEAD_PACKAGE names no package; cargo xtask debian builds one and names it")?;
    let system = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debian");
    if !system.join("disk.img").exists() {
        return Err("no system in target/debian: clean_debian/make.sh makes one, as root, with debootstrap");
    }
    if Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Err("there is no qemu-system-x86_64");
    }
    Ok((package.into(), system))
}

fn qemu(system: &Path, place: &Path) -> Process {
    let mut machine = Command::new("qemu-system-x86_64");
    let words = "console=ttyS0 root=/dev/vda rw quiet panic=-1 \
                 systemd.mask=serial-getty@ttyS0.service systemd.mask=getty@tty1.service";
    let drive = |file: &Path, more: &str| format!("file={},format=raw,{more}", file.display());
    machine
        .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "768", "-smp", "2", "-nodefaults"])
        .args(["-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio", "-append", words])
        .arg("-kernel")
        .arg(system.join("vmlinuz"))
        .arg("-initrd")
        .arg(system.join("initrd"))
        .args(["-drive", &drive(&system.join("disk.img"), "if=virtio,snapshot=on")])
        .args(["-drive", &drive(&place.join("check.tar"), "if=virtio,readonly=on")])
        .args(["-drive", &drive(&place.join("sda.img"), "if=none,id=sda")])
        .args(["-device", "ide-hd,drive=sda,serial=FH7200,model=FAIRHEAD_DISK,rotation_rate=7200"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    Process(machine.spawn().unwrap())
}

#[test]
fn a_clean_debian_with_the_package_does_what_the_docs_say() {
    let (package, system) = match given() {
        Ok(given) => given,
        Err(why) => return println!("skipped: {why}"),
    };
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::copy(&package, place.path().join("fairhead.deb"))
        .unwrap_or_else(|e| panic!("{}: {e}", package.display()));
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clean_debian/check.sh");
    std::fs::copy(check, place.path().join("check.sh")).unwrap();
    let packed = Command::new("tar")
        .args(["-cf", "check.tar", "check.sh", "fairhead.deb"])
        .current_dir(&place)
        .status();
    assert!(packed.unwrap().success());
    std::fs::File::create(place.path().join("sda.img")).unwrap().set_len(4 << 30).unwrap();
    let start = Instant::now();
    let mut machine = qemu(&system, place.path());
    let has_ended = wait_at_most(&mut machine, TIME_MAX);
    let text = said(&mut machine);
    text.lines().filter(|l| l.starts_with("check: ")).for_each(|l| println!("{l}"));
    assert!(has_ended, "it has not ended in {TIME_MAX:?}:\n{text}");
    assert!(text.contains("check: good"), "{text}");
    println!("{:.0} s, the start of the system included", start.elapsed().as_secs_f32());
}
