//! The example job files are accepted here and by fio itself, and every error of ours that fio shares is one
//! of fio's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::parse;

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "fio"))
        .collect();
    files.sort();
    files
}

#[test]
fn examples_are_accepted_without_a_note() {
    let files = examples();
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = parse(&text, &path.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(file.notes, Vec::<String>::new(), "{path:?}");
    }
}

/// Whether fio accepts the file. `None`: there is no fio.
fn fio_accepts(path: &Path) -> Option<bool> {
    let fio = Command::new("fio")
        .arg("--parse-only")
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    fio.ok().map(|status| status.success())
}

#[test]
fn fio_accepts_the_examples_too() {
    for path in examples() {
        match fio_accepts(&path) {
            None => return println!("skipped: no fio"),
            Some(accepted) => assert!(accepted, "fio refuses {path:?}"),
        }
    }
}

#[test]
fn fio_refuses_what_has_an_unknown_option_or_value() {
    for (i, line) in
        ["iodpeth=3", "rw=raedrand", "direct=yes", "prio=9", "rwmixread=101", "bs="].iter().enumerate()
    {
        let path = std::env::temp_dir().join(format!("fairhead-{}-{i}.fio", std::process::id()));
        let text = format!("[j]\nsize=1m\n{line}\n");
        std::fs::write(&path, &text).unwrap();
        let fio = fio_accepts(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(parse(&text, "job.fio").is_err(), "{line}");
        match fio {
            None => return println!("skipped: no fio"),
            Some(accepted) => assert!(!accepted, "fio accepts {line}"),
        }
    }
}
