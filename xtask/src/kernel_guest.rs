//! `cargo xtask kernel guest FOLDER`: a guest in virtual time, with modelled disks.
//!
//! FOLDER has what the guest is to do: `init`, a script, and the files that it wants. `processors`, if it
//! is there, is how many the guest has, and `modules` names more of the kernel's modules for it. With
//! `shift`, an instruction takes two to that power of nanoseconds, instead of one. `cpu` has flags of QEMU's
//! processor, and `append` words for the kernel's command line. The guest also has
//! `fairhead.ko`, `simdisk.ko`, the kernel's own schedulers (`/modules/order` lists them), busybox and the
//! load generator. What it says is in FOLDER/console at the end.
//!
//! Time in the guest is counted in instructions: each takes a nanosecond, and while the guest has nothing to
//! do the next timer fires at once. So nothing on the host has a part in what is measured: the same
//! folder gives the same console.

use crate::kernel::{Archive, add_module, build, folder, programs};
use crate::kernel_packages::{Found, Packages, SERIES, packages};
use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, root};
use std::fs;
use std::path::Path;

/// The kernel's own schedulers.
const SCHEDULERS: [&str; 3] = ["mq-deadline", "kyber-iosched", "bfq"];

/// How long a guest may take, in seconds.
const PATIENCE: &str = "3600";

/// Runs what a folder says. Whether it could; else why not.
pub(crate) fn run(files: &Path) -> Result<Option<String>, String> {
    match packages(SERIES)? {
        Found::All(packages) => run_for(&packages, files, PATIENCE).map(|()| None),
        Found::Lacking(why) => Ok(Some(why)),
    }
}

/// Runs the guest. `patience`: the seconds of the host's time that it may take, as timeout(1) reads them.
fn run_for(packages: &Packages, files: &Path, patience: &str) -> Result<(), String> {
    let image = initial_files(packages, files)?;
    let console = files.join("console");
    let said = fs::File::create(&console).map_err(|e| format!("{}: {e}", console.display()))?;
    let mut qemu = command("timeout", patience);
    let processors = fs::read_to_string(files.join("processors")).unwrap_or_else(|_| "1".into());
    qemu.args(
        "qemu-system-x86_64 -M q35 -accel tcg,thread=single -nographic -rtc base=2026-01-01,clock=vm \
         -no-reboot -nic none"
            .split_whitespace(),
    );
    let more = |name: &str| fs::read_to_string(files.join(name)).unwrap_or_default().trim().to_owned();
    qemu.arg("-cpu").arg(format!("max,-rdrand,-rdseed{}", more("cpu")));
    let append = more("append");
    let shift = fs::read_to_string(files.join("shift")).unwrap_or_else(|_| "0".into());
    qemu.arg("-icount").arg(format!("shift={},sleep=off", shift.trim()));
    qemu.args(["-smp", processors.trim(), "-m", packages.memory]);
    qemu.arg("-kernel").arg(&packages.image).arg("-initrd").arg(&image);
    // Processors that have nothing to do, of several, would wait by running, and time is not skipped then.
    let idle = if processors.trim() == "1" { "" } else { " idle=halt" };
    // In a slow guest a module's signature takes longer than Linux lets a processor do one thing.
    let slow = if shift.trim() == "0" { "" } else { " watchdog_thresh=60" };
    qemu.arg("-append")
        .arg(format!("console=ttyS0 quiet panic=-1 oops=panic nokaslr mitigations=off{idle}{slow} {append}"));
    // The status says nothing: the caller looks at the console.
    qemu.stdout(said).status().map_err(|e| format!("qemu-system-x86_64: {e}"))?;
    fs::remove_file(&image).map_err(|e| format!("{}: {e}", image.display()))
}

/// The files of the guest as an archive.
fn initial_files(packages: &Packages, files: &Path) -> Result<std::path::PathBuf, String> {
    let mut archive = Archive::default();
    programs(packages, &mut archive)?;
    let mut order = Vec::new();
    let more = fs::read_to_string(files.join("modules")).unwrap_or_default();
    for name in SCHEDULERS.into_iter().chain(more.split_whitespace()) {
        add_module(packages, name, &mut order, &mut archive)?;
    }
    archive.file("modules/order", order.join("\n").as_bytes());
    let out = build(packages)?;
    for module in ["module/fairhead.ko", "simdisk/simdisk.ko"] {
        let (from, name) = (out.join(module), module.split('/').next_back().unwrap_or(module));
        let stripped = folder().join(name);
        capture(command("strip", "-g -o").arg(&stripped).arg(&from))?;
        archive.file(&format!("modules/{name}"), &read(&stripped)?);
    }
    let mut entries: Vec<_> = fs::read_dir(files)
        .map_err(|e| format!("{}: {e}", files.display()))?
        .filter_map(|entry| entry.ok().map(|e| e.path()).filter(|path| path.is_file()))
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !["console", "modules", "processors", "shift", "cpu", "append"].contains(&name.as_str()) {
            archive.file(&name, &read(&path)?);
        }
    }
    let image = folder().join(format!("guest-{}", std::process::id()));
    fs::write(&image, archive.end()).map_err(|e| format!("{}: {e}", image.display()))?;
    Ok(image)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// How long a guest is under stress, how fast it is, and with which kernel.
struct Stress<'a> {
    /// `hours` of the guest's clock or `rounds`, and how many.
    until: (&'static str, &'a str),
    /// An instruction takes 2 to this power of nanoseconds.
    shift: &'a str,
    /// The kernel: a series, or the folder of one that was built.
    kernel: &'a str,
}

impl<'a> Stress<'a> {
    fn read(args: &[&'a str]) -> Result<Self, String> {
        let mut it = Self { until: ("", ""), shift: "0", kernel: SERIES };
        for option in args.chunks(2) {
            match *option {
                ["--hours", number] => it.until = ("hours", number),
                ["--rounds", number] => it.until = ("rounds", number),
                ["--shift", shift] => it.shift = shift,
                ["--kernel", kernel] => it.kernel = kernel,
                _ => return Err(format!("{}: no such option, or no value", option.join(" "))),
            }
        }
        let (what, number) = it.until;
        if number.parse::<u32>().is_err() {
            return Err(format!("'{number}' {what}: want --hours or --rounds with a whole number"));
        }
        if !it.shift.parse::<u32>().is_ok_and(|shift| shift <= 10) {
            return Err(format!("--shift {}: want 0 to 10, which is QEMU's limit", it.shift));
        }
        Ok(it)
    }
}

/// `cargo xtask kernel stress --hours N | --rounds N [--shift N] [--kernel SERIES|FOLDER]`:
/// `kernel/guest/stress`.
pub(crate) fn stress(args: &[&str]) -> Result<Outcome, String> {
    let it = Stress::read(args)?;
    let packages = match packages(it.kernel)? {
        Found::All(packages) => packages,
        Found::Lacking(why) => return Ok(Outcome::Skipped(why)),
    };
    let files = folder().join("stress");
    // A run before this one had other files.
    let _ = fs::remove_dir_all(&files);
    fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
    let words = capture(
        cargo("run --quiet --profile dist --package fairhead-device --example words").args(["--", "nas2020"]),
    )?;
    let texts = [
        ("disk.words", words.stdout),
        (it.until.0, it.until.1.into()),
        ("init", read(&root().join("kernel/guest/stress"))?),
        ("splats", read(&root().join("kernel/guest/splats"))?),
        ("modules", b"null_blk scsi_debug sd_mod".into()),
        ("processors", b"2".into()),
        ("shift", it.shift.into()),
    ];
    for (name, text) in texts {
        fs::write(files.join(name), text).map_err(|e| format!("{name}: {e}"))?;
    }
    // For hours of its own clock, it takes as long as it takes.
    run_for(&packages, &files, "infinity")?;
    let said = read(&files.join("console"))?;
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().map(str::trim_end).rfind(|line| line.starts_with("done: "));
    match last {
        Some(line) => Ok(Outcome::Passed(line.to_owned())),
        None => Err(last_words(&said)),
    }
}

/// What a guest said from its failure on; its last lines if it ended without a word of that.
fn last_words(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    let failed = lines.iter().position(|line| line.starts_with("FAILED"));
    lines[failed.unwrap_or(lines.len().saturating_sub(40))..].join("\n")
}

/// The page whose script shows what bfq does with two requests.
const REPORT: &str = "docs/reports/bfq-nr-requests-2.md";

/// The init of a guest that runs the script. It has no modprobe.
const REPORT_INIT: &str = "#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
echo 3 > /proc/sys/kernel/printk
for m in $(cat /modules/order); do [ $m = null_blk ] || insmod /modules/$m.ko; done
echo
usleep 10000000
sed 's!^modprobe -q bfq$!!; s!^modprobe null_blk!insmod /modules/null_blk.ko!' /script > /tmp/script
for s in bfq mq-deadline; do sh /tmp/script $s; done
poweroff -f
";

/// The script of a page: its block of `bash` that begins with `#!`.
fn script(page: &str) -> Option<&str> {
    let from = page.find("```bash\n#!")? + "```bash\n".len();
    page[from..].split("```").next()
}

/// Of each run that the script prints: the scheduler, the number of requests, and the most that a reader got
/// in proportion to the least.
fn shares(said: &str) -> Vec<(String, u64, f64)> {
    let of = |line: &str| {
        let (run, readers) = line.trim_end().split_once(": KiB/s of each reader:")?;
        let mut words = run.split(", ").skip(1);
        let (scheduler, requests) = (words.next()?, words.next()?.strip_prefix("nr_requests ")?);
        let rates: Vec<f64> = readers.split_whitespace().filter_map(|r| r.parse().ok()).collect();
        let (most, least) =
            (rates.iter().copied().reduce(f64::max)?, rates.iter().copied().reduce(f64::min)?);
        Some((scheduler.to_owned(), requests.parse().ok()?, most / least.max(1.0)))
    };
    said.lines().filter_map(of).collect()
}

/// The report's script in a guest: with 2 requests bfq gives one reader many times what another gets, with 64
/// it does not, and mq-deadline does not with either.
fn report() -> Result<Option<String>, String> {
    let files = folder().join("report");
    let _ = fs::remove_dir_all(&files);
    fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
    let page = fs::read_to_string(root().join(REPORT)).map_err(|e| format!("{REPORT}: {e}"))?;
    let script = script(&page).ok_or_else(|| format!("{REPORT}: no block of bash that begins with #!"))?;
    for (name, text) in [("init", REPORT_INIT), ("script", script), ("modules", "null_blk")] {
        fs::write(files.join(name), text).map_err(|e| format!("{name}: {e}"))?;
    }
    if let Some(why) = run(&files)? {
        return Ok(Some(why));
    }
    let said = String::from_utf8_lossy(&read(&files.join("console"))?).into_owned();
    let shares = shares(&said);
    let is_so = |(scheduler, requests, ratio): &(String, u64, f64)| match (scheduler.as_str(), requests) {
        ("bfq", 2) => *ratio > 4.0,
        _ => *ratio < 1.5,
    };
    if shares.len() == 4 && shares.iter().all(is_so) {
        return Ok(None);
    }
    Err(format!("{REPORT}: its script shows something else: {shares:?}\n{}", last_words(&said)))
}

/// Modelled disks in a guest: data that are read again, the same figures twice, and the lab's figures. And
/// what a report to the kernel's developers says.
pub(crate) fn test() -> Result<Outcome, String> {
    if let Some(why) = report()? {
        return Ok(Outcome::Skipped(why));
    }
    capture(&mut cargo("build --quiet --profile dist --package fairhead"))?;
    capture(&mut cargo("build --quiet --profile dist --package fairhead-device --example words"))?;
    let results = folder().join("guest.csv");
    let _ = fs::remove_file(&results);
    let mut compare = command("bench/guest.sh", "--check --twice --disks nas2020 --jobs verify,seq2,seqrand");
    compare.args(["--scheds", "bfq,fh-bfq", "--results"]).arg(&results);
    let said = capture(&mut compare)?.stdout;
    let said = String::from_utf8_lossy(&said);
    match said.lines().find_map(|line| line.strip_prefix("skipped: ")) {
        Some(why) => Ok(Outcome::Skipped(why.to_owned())),
        None => Ok(Outcome::Passed(said.into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_its_script() {
        let page = include_str!("../../docs/reports/bfq-nr-requests-2.md");
        let script = script(page).expect("it is there");
        assert!(script.starts_with("#!/bin/sh\n") && script.ends_with("rmmod null_blk\n"), "{script}");
        assert!(script.lines().count() <= 30);
        // What the guest's init replaces.
        assert!(script.contains("\nmodprobe -q bfq\n") && script.contains("\nmodprobe null_blk "));
    }

    #[test]
    fn shares_are_the_most_by_the_least() {
        let said = "x\n6.12.1, bfq, nr_requests 2: KiB/s of each reader: 100 50 400\r\n\
                    6.12.1, bfq, nr_requests 64: KiB/s of each reader: 0 7\n";
        assert_eq!(shares(said), [("bfq".to_owned(), 2, 8.0), ("bfq".to_owned(), 64, 7.0)]);
        assert_eq!(shares("6.12.1, bfq, nr_requests: KiB/s of each reader: 1\n"), []);
    }
}
