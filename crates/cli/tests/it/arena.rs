//! `fairhead arena` from the outside.

use std::path::Path;
use std::process::{Command, Output};

const LOADS: [(&str, &str); 3] = [
    (
        "queries.fio",
        "[global]\nruntime=200ms\ntime_based\nsize=64m\ndirect=1\n\
                     [queries]\nrw=randread\nbs=16k\nthinktime=2ms\n[copy]\nrw=read\nbs=256k\n",
    ),
    (
        "streams.fio",
        "[streams]\nrw=read\nbs=128k\nsize=64m\ndirect=1\nnumjobs=3\nruntime=200ms\ntime_based\n",
    ),
    (
        "start.fio",
        "[shell]\n#!fh_workload=startup:bash\n[copy]\nrw=read\nbs=256k\nsize=64m\nruntime=300ms\ntime_based\n",
    ),
];
const CELLS: usize = 3 * 2;

/// A folder with the loads, in which the program runs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        LOADS.iter().for_each(|(name, text)| std::fs::write(place.at(name), text).unwrap());
        place
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut program = Command::new(env!("CARGO_BIN_EXE_fairhead"));
        program.arg("arena").args(args).current_dir(self.0.path()).output().unwrap()
    }

    /// stdout of a small arena.
    fn arena(&self, more: &[&str]) -> String {
        let small =
            ["queries.fio", "streams.fio", "start.fio", "--disk", "nas2020,sata_ssd", "--sched", "none,bfq"];
        let out = self.run(&[&small, more].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    }

    /// The one line of a call that must fail.
    fn refusal(&self, args: &[&str]) -> String {
        let out = self.run(args);
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(!out.status.success() && said.lines().count() == 1, "{args:?}: {said}");
        said
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn parts_and_interruptions_give_the_bytes_of_the_whole() {
    let place = Place::new();
    let json = ["--output-format", "json"];
    let whole = place.arena(&json);
    assert_eq!(place.arena(&[&json, &["--threads", "1"][..]].concat()), whole);
    for k in 1..=4 {
        let (file, shard) = (format!("part{k}"), format!("{k}/4"));
        place.arena(&["--resume", &file, "--shard", &shard]);
    }
    let parts = ["part1", "part2", "part3", "part4"];
    assert_eq!(parts.map(|p| lines(&place.at(p)) - 1), [2, 2, 1, 1]);
    let merge = [&json, &["--merge"][..], &parts].concat();
    assert_eq!(place.arena(&merge), whole);
    assert_eq!(place.arena(&[&merge[..], &["--resume", "all"]].concat()), whole);
    // As after a power failure: some lines, and a part of one.
    let kept = std::fs::read(place.at("all")).unwrap();
    std::fs::write(place.at("cut"), &kept[..kept.len() * 2 / 3]).unwrap();
    assert_eq!(place.arena(&[&json[..], &["--resume", "cut"]].concat()), whole);
    assert_eq!(lines(&place.at("cut")), 1 + CELLS);
    let other = place.refusal(&["queries.fio", "--disk", "nas2020", "--resume", "all"]);
    assert!(other.contains("name another file"), "{other}");
}

#[test]
fn people_read_schedulers_and_cells_and_the_page_has_maps() {
    let place = Place::new();
    let text = place.arena(&["--report", "page.html"]);
    assert!(text.starts_with("3 loads, 2 disks, seed 1.\nRegret: "), "{text}");
    for word in ["mean regret", "of 6", "queries.fio", "sata_ssd"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let page = std::fs::read_to_string(place.at("page.html")).unwrap();
    for word in ["Regret of none", "Regret of bfq", "start.fio", "mean_regret"] {
        assert!(page.contains(word), "{word}");
    }
    let csv = place.arena(&["--output-format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * 5, "a line for each of five jobs, disk and scheduler");
}

/// A load of the arena by its name, cut short by nothing but its disk: a small cell of the real ones.
#[test]
fn a_load_of_the_arena_is_named() {
    let place = Place::new();
    let out = place.run(&["streams-2", "--disk", "sata2009", "--sched", "none,cfq"]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("streams-2  sata2009"), "{text}");
    let row = text.lines().find(|l| l.starts_with("none")).unwrap();
    assert!(!row.ends_with("1 of 1"), "two streams without turns are not the best: {text}");
}

#[test]
fn mistakes_are_one_line() {
    let place = Place::new();
    std::fs::write(place.at("walls.fio"), "[a]\nsize=1m\n[b]\nstonewall\nsize=1m\n").unwrap();
    std::fs::write(place.at("big.fio"), "[a]\nsize=100t\nruntime=1s\n").unwrap();
    for (args, message) in [
        (&["film-cpy"][..], "did you mean the workload 'film-copy'?"),
        (&["queries.fio", "queries.fio"], "load 'queries.fio' is named twice"),
        (&["queries.fio", "--disk", "nvme,nvme"], "disk 'nvme' is named twice"),
        (&["queries.fio", "--disk", "nvem"], "nvme"),
        (&["queries.fio", "--sched", "bqf"], "bfq"),
        (&["queries.fio", "--sched", "bfq,bfq"], "is named twice"),
        (&["queries.fio", "--set", "bfq.slice_idle=8"], "has no unit"),
        (&["walls.fio", "--disk", "nvme"], "walls.fio on nvme: job 'b': it waits for another job to end"),
        (&["big.fio", "--disk", "nvme"], "big.fio on nvme: job 'a': "),
        (&["--shard", "1/2"], "--resume"),
        (&["queries.fio", "-o", "x", "--report", "x"], "two things cannot be written"),
    ] {
        let said = place.refusal(args);
        assert!(said.contains(message), "{args:?}: {said}");
    }
}
