//! Job files that fio 3.33 takes give here what they give there: calls, bytes, jobs, files of logs. What is
//! not simulated is refused with its own reason.
//!
//! The files are in `job_files/`. Numbers are those that fio 3.33 reports on small files in memory; where fio
//! is installed, it is asked again.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn job_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/job_files")
}

/// A folder with all job files.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(job_files()).unwrap().map(|e| e.unwrap().path()) {
        if file.is_file() {
            std::fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
        }
    }
    folder
}

fn fairhead(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).current_dir(folder).args(args).output().unwrap()
}

/// The result of a run in fio's layout.
fn run(folder: &Path, args: &[&str]) -> Value {
    let args = [&["run", "--sched", "noop", "--disk", "nvme", "--output-format", "json+"], args].concat();
    let out = fairhead(folder, &args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The last line of what a run says that is refused.
fn refusal(folder: &Path, args: &[&str]) -> String {
    let out = fairhead(folder, &[&["run"], args].concat());
    assert_eq!(out.status.code(), Some(2), "{args:?}: {}", String::from_utf8_lossy(&out.stdout));
    String::from_utf8_lossy(&out.stderr).lines().last().unwrap_or_default().to_owned()
}

/// Calls and bytes of reads, writes and trims, by entry of the report.
fn moved(report: &Value) -> Vec<[u64; 6]> {
    let one = |entry: &Value| {
        let of = |way: &str, key: &str| entry[way][key].as_u64().unwrap_or(0);
        let way = |way: &str| [of(way, "total_ios"), of(way, "io_bytes")];
        let ([rc, rb], [wc, wb], [tc, tb]) = (way("read"), way("write"), way("trim"));
        [rc, rb, wc, wb, tc, tb]
    };
    report["jobs"].as_array().unwrap().iter().map(one).collect()
}

fn fio(folder: &Path, file: &str) -> Option<Value> {
    let out = Command::new("fio")
        .current_dir(folder)
        .args(["--output-format=json+", "--eta=never", file])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    serde_json::from_str(&text[text.find('{')?..]).ok()
}

/// What moves is not left to chance.
const EXACT: &[(&str, &[[u64; 6]])] = &[
    ("fdatasync-count.fio", &[[0, 0, 16, 65_536, 0, 0]]),
    ("file-service-random-4.fio", &[[512, 2_097_152, 0, 0, 0, 0]]),
    ("filename-format.fio", &[[0, 0, 30, 1_966_080, 0, 0], [30, 1_966_080, 0, 0, 0, 0]]),
    ("include_in_job.fio", &[[32, 524_288, 0, 0, 0, 0], [0, 0, 32, 524_288, 0, 0]]),
    ("iomem-align.fio", &[[16, 65_536, 0, 0, 0, 0]]),
    ("lat_percentiles.fio", &[[256, 1_048_576, 0, 0, 0, 0]]),
    ("percentile-list.fio", &[[256, 1_048_576, 0, 0, 0, 0]]),
    (
        "quarters-of-a-made-file.fio",
        &[
            [0, 0, 16, 65_536, 0, 0],
            [0, 0, 4, 16_384, 0, 0],
            [0, 0, 4, 16_384, 0, 0],
            [0, 0, 4, 16_384, 0, 0],
            [0, 0, 8, 32_768, 0, 0],
        ],
    ),
    ("size-share-of-a-file.fio", &[[0, 0, 16, 65_536, 0, 0], [4, 16_384, 0, 0, 0, 0]]),
    ("trim-of-2g.fio", &[[0, 0, 0, 0, 2, 4 << 30]]),
    ("offset-zero-percent.fio", &[]),
    ("trimwrite.fio", &[[0, 0, 16, 65_536, 16, 65_536], [0, 0, 32, 131_072, 32, 131_072]]),
    ("verify.fio", &[[16, 65_536, 16, 65_536, 0, 0], [16, 65_536, 16, 65_536, 0, 0]]),
];

#[test]
fn job_files_move_what_they_move_in_fio() {
    let folder = folder();
    for (file, expected) in EXACT {
        let report = run(folder.path(), &[file]);
        let got = moved(&report);
        if !expected.is_empty() {
            assert_eq!(got, *expected, "{file}");
        }
        // Disks that are named are not there for fio.
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        if text.contains("/dev/") {
            continue;
        }
        match fio(folder.path(), file) {
            None => println!("skipped: no fio for {file}"),
            Some(report) => assert_eq!(moved(&report), got, "fio does otherwise with {file}"),
        }
    }
}

/// What chance decides is near what fio has.
#[test]
fn splits_that_do_not_add_up_draw_as_fio_does() {
    let folder = folder();
    // Of 4 MiB, calls of 4 KiB and 16 KiB half and half are 410: the deviation is 10.
    for (file, calls) in [("bssplit-98-percent.fio", 397), ("bssplit-102-percent.fio", 407)] {
        let got = moved(&run(folder.path(), &[file]))[0];
        assert!(got[2].abs_diff(calls) <= 40, "{file}: {got:?}");
        assert!((4 << 20..(4 << 20) + 16_384).contains(&got[3]), "{file}: {got:?}");
    }
    // It ends with the first random call that has no room: seldom the same, never more than the size.
    let got = moved(&run(folder.path(), &["bs_is_seq_rand.fio"]))[0];
    assert!(got[0] > 0 && got[1] <= 1 << 20, "{got:?}");
    assert!(got[1].is_multiple_of(4096) && got[1] > got[0] * 4096, "both sizes occur: {got:?}");
}

#[test]
fn decimals_and_zoned_disks_are_refused_with_the_reason() {
    let folder = folder();
    for (file, reason) in [
        (
            "runtime-decimal.fio",
            "fairhead: runtime-decimal.fio:7: 'runtime=1.5s': fio reads up to the decimal point and takes it for 1 without a unit; write a whole number, such as runtime=1500ms",
        ),
        (
            "size-decimal.fio",
            "fairhead: size-decimal.fio:3: 'size=1.5m': fio reads up to the decimal point and takes it for 1 without a unit; write a whole number, such as size=1536k",
        ),
        (
            "zbd.fio",
            "fairhead: zbd.fio:4: 'zonemode=zbd' is about zoned disks, and none of the disk models has zones; zonemode=strided has gaps without",
        ),
    ] {
        assert_eq!(refusal(folder.path(), &[file]), reason);
    }
}

/// Sizes are drawn: 8 files have 8 to 32 blocks, and `size` is less than all of them most times.
#[test]
fn files_may_have_sizes_of_their_own() {
    let folder = folder();
    for seed in ["1", "2", "3", "4"] {
        let got = moved(&run(folder.path(), &["filesize-range.fio", "--seed", seed]))[0];
        assert!((32..=64).contains(&got[2]) && got[3] == got[2] * 4096, "seed {seed}: {got:?}");
    }
    // Without a size it is all of all files, each block once.
    let line = ["--", "--name=a", "--rw=randread", "--nrfiles=8", "--filesize=16k-64k"];
    let got = moved(&run(folder.path(), &line))[0];
    assert!((8 * 4..=8 * 16).contains(&got[0]) && got[1] == got[0] * 4096, "{got:?}");
}

/// fio fails such a job alone.
#[test]
fn a_block_that_is_longer_than_its_range_fails_that_job_only() {
    let folder = folder();
    let text = "[big]\nfilename=/dev/sdx\nrw=trim\nbs=8m\nsize=8m\noffset=100%\ndirect=1\n[other]\nfilename=/dev/sdx\nrw=read\nbs=64k\nsize=1m\ndirect=1\n";
    std::fs::write(folder.path().join("one.fio"), text).unwrap();
    let out = fairhead(folder.path(), &["run", "one.fio", "--sched", "noop", "--output-format", "json+"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && said.contains("job 'big': nothing left to do at offset"), "{said}");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(moved(&report), [[0; 6], [16, 1 << 20, 0, 0, 0, 0]]);
    // Of a whole disk of today a tenth has room.
    let got = moved(&run(folder.path(), &["block-longer-than-range.fio", "--runtime", "10ms"]));
    assert!(got[1].iter().sum::<u64>() > 0, "{got:?}");
    let small = "[made]\nrw=write\nfilename=q\nsize=64k\n[big]\nstonewall\nrw=read\nfilename=q\nsize=1%\n";
    std::fs::write(folder.path().join("small.fio"), small).unwrap();
    let out = fairhead(folder.path(), &["run", "small.fio", "--sched", "noop"]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        said.contains(
            "job 'big': a block of 4096 bytes is longer than its range of 655, so there is no call to make"
        ),
        "{said}"
    );
}

/// The names of logs, and how many lines each has.
#[test]
fn logs_and_histograms_have_the_names_and_columns_of_fios() {
    let folder = folder();
    run(folder.path(), &["per-job-logs-and-histograms.fio"]);
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.ends_with(".log"))
        .collect();
    names.sort();
    let kinds = ["bw", "clat", "clat_hist", "iops", "lat", "slat"];
    assert_eq!(names, kinds.map(|kind| format!("out_{kind}.log")));
    let lines = std::fs::read_to_string(folder.path().join("out_lat.log")).unwrap();
    assert!(lines.lines().all(|l| l.split(", ").count() == 5) && !lines.is_empty(), "{lines}");
    let hist = std::fs::read_to_string(folder.path().join("out_clat_hist.log")).unwrap();
    assert!(hist.lines().all(|l| l.split(", ").count() == 3 + 1856), "{}", hist.len());
}

#[test]
fn reports_have_what_the_job_asks_for() {
    let folder = folder();
    let keys = |v: &Value| v.as_object().map(|m| m.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let list = run(folder.path(), &["percentile-list.fio"]);
    let clat = &list["jobs"][0]["read"]["clat_ns"];
    assert_eq!(keys(&clat["percentile"]), ["50.000000", "99.000000", "99.990000", "99.999900"]);
    let whole = run(folder.path(), &["lat_percentiles.fio"]);
    let read = &whole["jobs"][0]["read"];
    assert_eq!(keys(&read["lat_ns"]["percentile"]), ["50.000000", "99.000000", "99.990000"]);
    assert!(read["lat_ns"]["bins"].is_object());
    assert!(read["clat_ns"]["percentile"].is_null() && read["clat_ns"]["bins"].is_null());
    let mixed = run(folder.path(), &["unified-mixed.fio"]);
    let job = &mixed["jobs"][0];
    assert_eq!((&job["mixed"]["total_ios"], &job["mixed"]["io_bytes"]), (&256.into(), &1_048_576.into()));
    assert!(["read", "write", "trim", "sync"].iter().all(|way| job[way].is_null()), "{job}");
    // fio counts fsyncs, and measures fdatasyncs, too; not those at the end.
    let sync = &run(folder.path(), &["fdatasync-count.fio"])["jobs"][0]["sync"];
    assert_eq!((&sync["total_ios"], &sync["lat_ns"]["N"]), (&0.into(), &15.into()));
    let line = ["--", "--name=a", "--rw=write", "--size=64k", "--fsync=4", "--fdatasync=2", "--end_fsync=1"];
    let sync = &run(folder.path(), &line)["jobs"][0]["sync"];
    assert_eq!((&sync["total_ios"], &sync["lat_ns"]["N"]), (&3.into(), &7.into()));
}

/// A line of fio's, as it is pasted.
#[test]
fn a_command_line_of_fio_runs() {
    let folder = folder();
    let pasted = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let out =
            fairhead(folder.path(), &[&["run", "--sched", "noop", "--disk", "nvme"], &words[..]].concat());
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{line}: {said}");
        String::from_utf8(out.stdout).unwrap()
    };
    let text = pasted("fio --name=x --rw=randread --size=1m --bs=4k --output-format=json");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(moved(&report), [[256, 1 << 20, 0, 0, 0, 0]]);
    assert_eq!(report["jobs"][0]["job options"]["name"], "x");
    let same = pasted("-- -rw=randread -size 1m -bs=4k -output-format=json+ -name=x");
    assert_eq!(moved(&serde_json::from_str(&same).unwrap()), moved(&report));
    let table = pasted("-- --name=x --rw=write --size=1m");
    assert!(table.starts_with("command line on nvme"), "{table}");
    pasted("fio --name=x --rw=write --size=1m --output=out.json --output-format=json");
    assert!(std::fs::read_to_string(folder.path().join("out.json")).unwrap().contains("\"jobname\": \"x\""));
    pasted("iomem-align.fio -- --name=y --rw=read --size=1m");
    assert_eq!(
        refusal(folder.path(), &["--", "--name=x", "--iodpeth=3"]),
        "fairhead: command line, --iodpeth=3: unknown option 'iodpeth'; did you mean 'iodepth'?"
    );
}

/// Each line of `recipes.txt` is a command line of fio that public pages recommend for a purpose.
#[test]
fn recipes_of_public_pages_run() {
    let folder = folder();
    let text = std::fs::read_to_string(job_files().join("recipes.txt")).unwrap();
    let mut count = 0;
    for line in text.lines().filter(|l| l.starts_with("fio ")) {
        let out = fairhead(
            folder.path(),
            &["run", "--sched", "noop", "--disk", "nas2020", "--runtime", "20ms", "--", line],
        );
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{line}: {said}");
        count += 1;
    }
    assert!(count >= 20, "{count}");
}
