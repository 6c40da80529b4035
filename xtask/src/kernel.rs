//! `cargo xtask kernel test`: Fairhead's core as an elevator in a real kernel, in a virtual machine.
//!
//! 1. Debian's packages of a 6.12 kernel (headers and image), bpftool and busybox come from the machine's
//!    own package sources, and are unpacked below `target/kernel`; nothing is installed. Versions are
//!    resolved now, because old ones vanish.
//! 2. `kernel/Makefile` builds the module: core by plain rustc, the rest by the kernel's own build.
//! 3. An initial file system is made of busybox, the modules, a load generator of ours and
//!    `kernel/guest/init`.
//! 4. QEMU runs it without hardware support, and its clock is its instructions: 2 ns each, and when it has
//!    nothing to do, time is skipped. One thread runs all processors. The guest prints a line for each check.
//! 5. The logs of what the core was asked and what it answered, two for each scheduler, are replayed by the
//!    same core in user space (`kernel/replay.c`).
//!
//! 6. The package for DKMS is built and unpacked, and the module built from what it has.
//!
//! What is not there (a tool, a package, the network) is said, and the tests are skipped.
//!
//! `--kernel 7.3` does all this with a newer kernel (`kernel_newer`).

use crate::kernel_package;
use crate::kernel_packages::{Found, Packages, packages};
use crate::outcome::{Count, Outcome};
use crate::shell::{capture, cargo, command, root};
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The modules that the guest loads, in order, with their arguments. What they depend on comes before them.
const MODULES: &[(&str, &str)] = &[
    ("virtio_blk", ""),
    ("null_blk", "gb=1 memory_backed=1 irqmode=2 completion_nsec=100000 submit_queues=2 hw_queue_depth=16"),
    ("scsi_debug", "dev_size_mb=128 ndelay=200000 max_queue=16"),
    ("sd_mod", ""),
];

/// How far apart the logs are on the disk that the guest writes them to, in bytes.
const LOG_STEP: u64 = 4 << 20;

/// Builds, boots, judges. `kernel`: as `packages` takes it.
pub(crate) fn test(kernel: &str) -> Result<Outcome, String> {
    let packages = match packages(kernel)? {
        Found::All(packages) => packages,
        Found::Lacking(why) => return Ok(Outcome::Skipped(why)),
    };
    let module = build(&packages)?.join("module/fairhead.ko");
    let image = initial_files(&packages, &module)?;
    let mut count = Count::default();
    let (said, logs) = boot(&packages, &image)?;
    judge(&said, &mut count)?;
    replay(&logs, &mut count)?;
    match kernel_package::check(&packages) {
        Ok(()) => count.pass(),
        Err(said) => {
            eprintln!("{said}");
            count.fail();
        }
    }
    Ok(Outcome::Tests(count))
}

pub(crate) fn folder() -> PathBuf {
    crate::dist::target().join("kernel")
}

/// Builds `fairhead.ko` and `simdisk.ko`; the folder of both.
pub(crate) fn build(packages: &Packages) -> Result<PathBuf, String> {
    let out = packages.build.clone();
    let mut make = command("make", "-C kernel");
    make.arg(format!("KDIR={}", packages.headers.display())).arg(format!("OUT={}", out.display()));
    make.arg(format!("CRATES={}", root().join("crates").display())).arg("SIMDISK=1");
    make.env("BPFTOOL", &packages.bpftool).envs(packages.variables.iter().cloned());
    let output = capture(&mut make)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let warnings: Vec<&str> = said.lines().filter(|l| l.contains("warning:")).collect();
    if !warnings.is_empty() {
        return Err(format!("building the module:\n{}", warnings.join("\n")));
    }
    Ok(out)
}

/// The folders and programs of a guest.
pub(crate) fn programs(packages: &Packages, archive: &mut Archive) -> Result<(), String> {
    let load = folder().join("load");
    let rustc = "--edition=2024 -O -Ctarget-feature=+crt-static --target x86_64-unknown-linux-gnu -o";
    capture(command("rustc", rustc).arg(&load).arg("kernel/guest/load.rs"))?;
    for name in ["bin", "dev", "proc", "sys", "tmp", "modules"] {
        archive.folder(name);
    }
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    archive.file("bin/busybox", &read(&packages.busybox)?);
    archive.file("bin/load", &read(&load)?);
    const APPLETS: &str = "sh mount mkdir rmdir cat echo dd usleep insmod rmmod dmesg poweroff grep sed rm kill \
                           test cut head tail [ ls sync";
    for applet in APPLETS.split_whitespace() {
        archive.link(&format!("bin/{applet}"), "busybox");
    }
    Ok(())
}

/// The files of the guest as an archive that the kernel unpacks.
fn initial_files(packages: &Packages, module: &Path) -> Result<PathBuf, String> {
    let stripped = folder().join("fairhead.ko");
    capture(command("strip", "-g -o").arg(&stripped).arg(module))?;
    let mut archive = Archive::default();
    programs(packages, &mut archive)?;
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    archive.file("init", &read(&root().join("kernel/guest/init"))?);
    archive.file("splats", &read(&root().join("kernel/guest/splats"))?);
    let mut order = Vec::new();
    for (name, args) in MODULES {
        add_module(packages, name, &mut order, &mut archive)?;
        archive.file(&format!("modules/{name}.args"), args.as_bytes());
    }
    archive.file("modules/order", order.join("\n").as_bytes());
    archive.file("modules/fairhead.ko", &read(&stripped)?);
    let image = folder().join("initrd");
    fs::write(&image, archive.end()).map_err(|e| format!("{}: {e}", image.display()))?;
    Ok(image)
}

/// Adds a module of the kernel's, after those that it depends on.
pub(crate) fn add_module(
    packages: &Packages,
    name: &str,
    order: &mut Vec<String>,
    archive: &mut Archive,
) -> Result<(), String> {
    if order.iter().any(|there| there == name) {
        return Ok(());
    }
    let file = packages.module(name).ok_or_else(|| format!("the kernel's package has no module {name}"))?;
    let bytes = capture(command("xz", "-dc").arg(&file))?.stdout;
    const KEY: &[u8] = b"\0depends=";
    let depends = bytes.windows(KEY.len()).position(|w| w == KEY).map(|at| &bytes[at + KEY.len()..]);
    let depends = depends.and_then(|rest| rest.split(|b| *b == 0).next()).unwrap_or_default();
    for other in String::from_utf8_lossy(depends).split(',').filter(|n| !n.is_empty()) {
        add_module(packages, other, order, archive)?;
    }
    archive.file(&format!("modules/{name}.ko"), &bytes);
    order.push(name.to_owned());
    Ok(())
}

/// Runs the guest; what it said, and the disk with its logs.
fn boot(packages: &Packages, image: &Path) -> Result<(String, PathBuf), String> {
    let disk = |name: &str, bytes: u64| {
        let path = folder().join(name);
        let made = fs::File::create(&path).and_then(|file| file.set_len(bytes));
        made.map(|()| path.clone()).map_err(|e| format!("{}: {e}", path.display()))
    };
    let (data, logs) = (disk("data.img", 256 << 20)?, disk("logs.img", 32 * LOG_STEP)?);
    let mut qemu = command("timeout", packages.patience);
    qemu.args(
        "qemu-system-x86_64 -M q35 -accel tcg,thread=single -cpu max -smp 2 -nographic -no-reboot -nic none \
         -icount shift=1,sleep=off -rtc base=2026-01-01,clock=vm"
            .split_whitespace(),
    );
    qemu.args(["-m", packages.memory]).arg("-kernel").arg(&packages.image).arg("-initrd").arg(image);
    qemu.args(["-append", "console=ttyS0 quiet panic=-1 oops=panic idle=halt"]);
    for path in [&data, &logs] {
        qemu.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", path.display()));
    }
    let path = folder().join("console");
    let console = fs::File::create(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    // The status says nothing: a guest that took too long is judged by what it said, too.
    qemu.stdout(console).status().map_err(|e| format!("qemu-system-x86_64: {e}"))?;
    let said = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok((String::from_utf8_lossy(&said).into_owned(), logs))
}

/// Counts the guest's checks. An error if it did not come to its end.
fn judge(said: &str, count: &mut Count) -> Result<(), String> {
    let lines = || said.lines().map(str::trim_end);
    let mut is_about_failure = false;
    for line in lines() {
        let (is_ok, is_failure) = (line.starts_with("ok "), line.starts_with("FAILED "));
        // What a check that failed said may have several lines.
        is_about_failure = is_failure || is_about_failure && !is_ok && !line.starts_with("done in ");
        if is_about_failure {
            eprintln!("{line}");
        }
        if is_ok {
            count.pass();
        } else if is_failure {
            count.fail();
        }
    }
    if lines().any(|line| line.starts_with("done in ")) {
        return Ok(());
    }
    let last: Vec<&str> = said.lines().rev().take(40).collect();
    let last: Vec<&str> = last.into_iter().rev().collect();
    Err(format!("the guest did not come to its end ({} checks were ok):\n{}", count.passed, last.join("\n")))
}

/// Replays each log that the guest wrote.
fn replay(disk: &Path, count: &mut Count) -> Result<(), String> {
    capture(&mut cargo("build --quiet --profile dist --package fairhead-core-ffi"))?;
    let library = crate::dist::target().join("dist/libfairhead.a");
    let program = folder().join("replay");
    let flags = "-std=gnu11 -O1 -Wall -Wextra -Werror -Icrates/core-ffi/include -o";
    capture(command("cc", flags).arg(&program).arg("kernel/replay.c").arg(&library).args([
        "-lpthread",
        "-ldl",
        "-lm",
    ]))?;
    let mut replayed = 0;
    for number in 0.. {
        let Some(log) = log(disk, number)? else { break };
        replayed += 1;
        match capture(command(&program, "").arg(&log)) {
            Ok(said) => {
                print!("        {}", String::from_utf8_lossy(&said.stdout));
                count.pass();
            }
            Err(said) => {
                eprintln!("{said}");
                count.fail();
            }
        }
    }
    if replayed == 0 {
        eprintln!("the guest wrote no log");
        count.fail();
    }
    Ok(())
}

/// A log from the disk, as a file of its own; `None` behind the last one.
fn log(disk: &Path, number: u64) -> Result<Option<PathBuf>, String> {
    let named = |e: std::io::Error| format!("{}: {e}", disk.display());
    let mut file = fs::File::open(disk).map_err(named)?;
    let at = number * LOG_STEP;
    if file.metadata().map_err(named)?.len() < at + LOG_STEP {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at)).map_err(named)?;
    let mut bytes = vec![0; LOG_STEP as usize];
    file.read_exact(&mut bytes).map_err(named)?;
    if !bytes.starts_with(b"FHLOG") {
        return Ok(None);
    }
    let path = folder().join(format!("log-{number}"));
    fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(Some(path))
}

/// An archive of the kind that a kernel unpacks as its first file system (cpio, "newc").
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    pub(crate) fn file(&mut self, name: &str, bytes: &[u8]) {
        self.entry(name, 0o100_755, bytes);
    }

    pub(crate) fn link(&mut self, name: &str, to: &str) {
        self.entry(name, 0o120_777, to.as_bytes());
    }

    /// A head of 13 numbers of 8 hexadecimal digits, the name, the bytes; both end at a multiple of 4.
    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) {
        self.files += 1;
        let size = u32::try_from(bytes.len()).expect("a small file");
        let length = u32::try_from(name.len()).expect("a short name") + 1;
        self.bytes.extend(b"070701");
        for number in [self.files, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, length, 0] {
            self.bytes.extend(format!("{number:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_judged_by_its_lines() {
        let mut count = Count::default();
        judge("[    1.0] x\r\nok one\r\nFAILED two: why\r\ndone in 3.1 s\r\n", &mut count).expect("it ended");
        assert_eq!(count.to_string(), "1 passed, 1 failed, 0 skipped");
        let cut = judge("ok one\nKernel panic\n", &mut Count::default()).expect_err("it did not end");
        assert!(cut.contains("(1 checks were ok)") && cut.contains("Kernel panic"), "{cut}");
    }

    #[test]
    fn an_archive_is_aligned_and_ends() {
        let mut archive = Archive::default();
        archive.folder("bin");
        archive.file("bin/a", b"12345");
        let bytes = archive.end();
        assert_eq!(bytes.len() % 4, 0);
        let heads: Vec<usize> = (0..bytes.len() - 5).filter(|&i| bytes[i..].starts_with(b"070701")).collect();
        assert_eq!(heads.len(), 3);
        assert!(heads.iter().all(|at| at % 4 == 0));
    }
}
