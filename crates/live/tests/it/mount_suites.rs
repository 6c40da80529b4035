//! Suites of others, and cases of our own, on a folder and on a mount of it: what the folder does, the mount
//! does.
//!
//! The folder is the oracle, so that no knowledge of POSIX is needed here. What a pass-through cannot do is
//! named here and in docs/mount.md.

use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Operations of each run of fsx.
const OPERATIONS: &str = "3000";

/// Cases of pjdfstest that need not have the same outcome.
const DIFFERENT: &[&str] = &[
    // The kernel knows no largest number of links of a FUSE file system, and skips it.
    "link::link_count_max",
];

/// A program that `cargo xtask test` installs.
fn tool(name: &str) -> Option<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin").join(name);
    let program =
        [ours, PathBuf::from(name)].into_iter().find(|p| Command::new(p).arg("--version").output().is_ok());
    if program.is_none() {
        eprintln!("skipped: {name} is not installed");
    }
    program
}

/// File systems of two kinds, if there are; all users reach them.
fn folders() -> impl Iterator<Item = PathBuf> {
    ["/tmp", "/dev/shm"].into_iter().map(PathBuf::from).filter(|dir| dir.is_dir())
}

/// What a program says on standard output, or on both; it may fail.
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
}

/// Runs something in a folder below and in one above, each new and readable by all users.
fn both(scratch: &Scratch, mut run: impl FnMut(&Path) -> String) -> (String, String) {
    let fresh = |path: &Path| {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    };
    let (below, above) = (scratch.below("below"), scratch.at("above"));
    fresh(&below);
    fresh(&scratch.below("above"));
    (run(&below), run(&above))
}

#[test]
fn pjdfstest_finds_the_folder_in_the_mount() {
    let Some(suite) = tool("pjdfstest") else { return };
    for folder in folders() {
        let Some(scratch) = Scratch::inside(&folder) else { return };
        let mount = scratch.mount("bfq");
        let settings = scratch.below("settings.toml");
        fs::write(
            &settings,
            "[features]\nposix_fallocate = {}\nrename_ctime = {}\nstat_st_birthtime = {}\nutime_now = {}\nutimensat = {}\n\
             [settings]\nnaptime = 0.02\nallow_remount = false\n\
             [dummy_auth]\nentries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]\n",
        )
        .unwrap();
        let other = folders().find(|f| *f != folder).and_then(|f| Scratch::inside(&f));
        let (below, above) = both(&scratch, |dir| {
            let mut command = Command::new(&suite);
            command.arg("-c").arg(&settings).arg("-p").arg(dir);
            if let Some(other) = &other {
                command.arg("-s").arg(other.below(""));
            }
            said(&mut command)
        });
        let (below, above) = (outcomes(&below), outcomes(&above));
        let passed = above.values().filter(|o| **o == "ok").count();
        println!("{}: {passed} of {} cases", folder.display(), above.len());
        let is_different = |name: &&str| below.get(*name) != above.get(*name) && !DIFFERENT.contains(name);
        let wrong: Vec<_> =
            above.keys().filter(|name| is_different(name)).map(|n| (n, below.get(n), above.get(n))).collect();
        assert!(wrong.is_empty(), "below and in the mount: {wrong:?}");
        assert!(passed >= 380, "{above:?}");
        drop(mount);
    }
}

/// Case by case what pjdfstest says: a name and a word at the beginning of a line.
fn outcomes(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .filter(|line| !line.starts_with(char::is_whitespace))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (name, outcome) = (words.next()?, words.next()?);
            matches!(outcome, "ok" | "FAILED" | "skipped").then_some((name, outcome))
        })
        .collect()
}

#[test]
fn fsx_reads_what_it_wrote() {
    let Some(fsx) = tool("fsx") else { return };
    for (folder, scheduler, seed) in
        folders().zip(["bfq", "cfq"]).zip(["1", "2"]).map(|((f, s), n)| (f, s, n))
    {
        let Some(scratch) = Scratch::inside(&folder) else { return };
        let mount = scratch.mount(scheduler);
        let settings = scratch.below("settings.toml");
        let weights = "close_open = 1.0\ninvalidate = 1.0\nmapread = 10.0\nmapwrite = 10.0\nread = 10.0\nwrite = 10.0\ntruncate = 3.0\n\
             fsync = 0.3\nfdatasync = 0.3\nposix_fallocate = 1.0\npunch_hole = 2.0\nsendfile = 2.0\nposix_fadvise = 2.0\n\
             copy_file_range = 2.0\n";
        fs::write(&settings, format!("flen = 1048576\n[opsize]\nmax = 131072\n[weights]\n{weights}"))
            .unwrap();
        let ran = Command::new(&fsx)
            .args(["-N", OPERATIONS, "-S", seed, "-P"])
            .arg(scratch.below(""))
            .arg("-f")
            .arg(&settings)
            .arg(scratch.at("file"))
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        drop(mount);
    }
}

#[test]
fn programs_find_the_folder_in_the_mount() {
    for folder in folders() {
        let Some(scratch) = Scratch::inside(&folder) else { return };
        let mount = scratch.mount("cfq");
        if let Err(e) = Command::new("python3").arg("--version").output() {
            eprintln!("skipped: python3: {e}");
            return;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mount_suites/cases.py");
        let (below, above) = both(&scratch, |dir| said(Command::new("python3").arg(&script).arg(dir)));
        assert!(below.lines().count() >= 60, "{below}");
        let pairs = below.lines().zip(above.lines());
        let wrong: Vec<_> =
            pairs.filter(|(b, a)| a != b).map(|(b, a)| format!("  below {b}\n  mount {a}\n")).collect();
        assert!(wrong.is_empty(), "{}:\n{}", folder.display(), wrong.concat());
        assert_eq!(below.lines().count(), above.lines().count(), "{above}");
        drop(mount);
    }
}
