//! Linux guests of tests, in QEMU's software emulation: a kernel and a busybox of Debian's, and a first
//! process. A test adds its disks to the [command](Guest::qemu).

#![allow(dead_code, reason = "no test binary needs all of it")]
#![allow(clippy::disallowed_methods, reason = "processes and their time-outs are real")]

use crate::process::Process;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest that a guest may live.
const TIME_MAX: Duration = Duration::from_secs(150);

/// What a virtio disk needs, in the order in which it can be loaded.
const MODULES: [&str; 6] =
    ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"];

/// A guest's first process, around the STEPS of a test. It ends with `guest: good` if all went well.
const INIT: &str = r#"#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
run() {
    mount -t devtmpfs dev /dev && mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t tmpfs tmp /tmp || return 1
    for module in MODULES; do
        for file in /$module.ko*; do [ -e "$file" ] && insmod "$file"; done
    done
STEPS
}
if run; then echo "guest: good"; else echo "guest: failed with $?"; fi
poweroff -f
"#;

/// Waits until it ends, or kills it.
pub(crate) fn wait(process: &mut Process) -> bool {
    wait_at_most(process, TIME_MAX)
}

pub(crate) fn wait_at_most(process: &mut Process, time: Duration) -> bool {
    let start = Instant::now();
    while start.elapsed() < time {
        if let Some(status) = process.0.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    process.kill();
    false
}

pub(crate) fn said(process: &mut Process) -> String {
    let mut text = String::new();
    process.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// What the guest is made of: the kernel's file, those of the modules that there are, and busybox.
pub(crate) struct Guest {
    kernel: PathBuf,
    modules: Vec<PathBuf>,
    busybox: PathBuf,
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // No links: modules' folders may have some to elsewhere.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path(), found),
            _ => found.push(entry.path()),
        }
    }
}

fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or("")
}

impl Guest {
    /// Finds QEMU and what a guest is made of, or says what there is not.
    pub(crate) fn find() -> Option<Self> {
        let qemu = Command::new("qemu-system-x86_64").arg("--version").stdout(Stdio::null()).status();
        if qemu.is_err() {
            println!("skipped: there is no qemu-system-x86_64");
            return None;
        }
        let guest = Self::unpacked();
        if guest.is_none() {
            println!("skipped: there is no guest in target/guest: cargo xtask test unpacks one");
        }
        guest
    }

    fn unpacked() -> Option<Self> {
        let root = std::env::var_os("FAIRHEAD_GUEST")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest"), PathBuf::from);
        let mut all = Vec::new();
        files(&root.join("boot"), &mut all);
        let kernel = all.into_iter().find(|f| name_of(f).starts_with("vmlinuz-"))?;
        let release = name_of(&kernel).strip_prefix("vmlinuz-")?.to_owned();
        let mut modules = Vec::new();
        files(&root.join("lib/modules").join(release), &mut modules);
        let is_wanted =
            |f: &PathBuf| name_of(f).split_once(".ko").is_some_and(|(name, _)| MODULES.contains(&name));
        modules.retain(is_wanted);
        let busybox = Some(root.join("bin/busybox")).filter(|b| b.exists())?;
        Some(Self { kernel, modules, busybox })
    }

    /// QEMU with this guest and `memory` MiB of memory. Its file system in memory is written to `initrd` in
    /// the folder; its first process loads the modules and takes `steps`, lines of a shell function that
    /// returns a number above 1 where one fails. It has no disks yet, and its console is its standard input
    /// and output.
    pub(crate) fn qemu(&self, folder: &Path, steps: &str, memory: u32) -> Command {
        let init = INIT.replace("MODULES", &MODULES.join(" ")).replace("STEPS", steps.trim_matches('\n'));
        fs::write(folder.join("initrd"), self.initramfs(&init)).unwrap();
        let mut machine = Command::new("qemu-system-x86_64");
        machine
            .args(["-accel", "tcg", "-smp", "1", "-nodefaults", "-no-user-config", "-no-reboot"])
            .args(["-m", &memory.to_string(), "-display", "none", "-serial", "stdio"])
            .args(["-append", "console=ttyS0 quiet no_timer_check panic=-1", "-initrd", "initrd"])
            .arg("-kernel")
            .arg(&self.kernel)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        machine
    }

    /// The guest's file system in memory, with its first process.
    fn initramfs(&self, init: &str) -> Vec<u8> {
        let mut out = Vec::new();
        ["bin", "dev", "proc", "sys", "tmp"].iter().for_each(|dir| archive(&mut out, dir, 0o40755, &[]));
        archive(&mut out, "bin/busybox", 0o100_755, &fs::read(&self.busybox).unwrap());
        archive(&mut out, "init", 0o100_755, init.as_bytes());
        for module in &self.modules {
            archive(&mut out, name_of(module), 0o100_644, &fs::read(module).unwrap());
        }
        archive(&mut out, "TRAILER!!!", 0, &[]);
        out
    }
}

/// A file in an archive as the kernel unpacks it.
//= linux-6.12 Documentation/driver-api/early-userspace/buffer-format.rst
fn archive(out: &mut Vec<u8>, name: &str, mode: u32, data: &[u8]) {
    let number = out.len() as u32;
    let fields = [number, mode, 0, 0, 1, 0, data.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
    out.extend(b"070701");
    fields.iter().for_each(|f| out.extend(format!("{f:08x}").as_bytes()));
    out.extend(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(data);
    out.resize(out.len().next_multiple_of(4), 0);
}
