//! fio's layout of results has fio's types: integers where fio has integers, so that readers with typed
//! fields take it. Readers in Go and Python, and, where it is installed, fio's own result, key by key.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

fn readers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/typed_readers")
}

/// The result of `j.fio` in a file, and the file's folder.
fn result() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.json");
    let out = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .arg("run")
        .arg(readers().join("j.fio"))
        .args(["--sched", "noop", "--disk", "nvme", "--output-format", "json+", "-o"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (folder, file)
}

/// Runs a reader; what it printed. `None`: the language is not installed.
fn read_by(command: &mut Command) -> Option<String> {
    let out = command.output().ok()?;
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
    Some(said)
}

#[test]
fn a_reader_in_go_takes_it() {
    let (folder, file) = result();
    let installed = ["go", "/usr/local/go/bin/go"]
        .into_iter()
        .find(|go| Command::new(go).arg("version").output().is_ok_and(|out| out.status.success()));
    let Some(go) = installed else { return println!("skipped: no go") };
    let mut command = Command::new(go);
    command.env("GOCACHE", folder.path().join("cache")).env("GOFLAGS", "-mod=mod");
    let said = read_by(command.arg("run").arg(readers().join("reader.go")).arg(&file));
    assert!(said.as_ref().is_some_and(|s| s.starts_with("3 4k ")), "{said:?}");
}

#[test]
fn readers_in_python_take_it() {
    let (_folder, file) = result();
    for reader in ["reader.py", "int_fields.py"] {
        match read_by(Command::new("python3").arg(readers().join(reader)).arg(&file)) {
            None => return println!("skipped: no python3"),
            Some(said) if reader == "reader.py" => assert_eq!(said, "3 4k\n"),
            Some(said) => {
                let options = "global options: ['bs', 'direct', 'ioengine', 'randseed', 'size']";
                assert!(said.starts_with("floats: [] | missing: []") && said.contains(options), "{said}");
            }
        }
    }
}

/// What is in fio's result and not in ours, or of another type.
fn differs(path: &str, fios: &Value, ours: &Value, found: &mut Vec<String>) {
    match (fios, ours) {
        (Value::Object(fios), Value::Object(ours)) => {
            // Which latencies there were is not to be compared.
            for (key, value) in fios.iter().filter(|(key, _)| *key != "bins") {
                match ours.get(key) {
                    None => found.push(format!("{path}.{key} is missing")),
                    Some(ours) => differs(&format!("{path}.{key}"), value, ours, found),
                }
            }
        }
        (Value::Array(fios), Value::Array(ours)) => {
            if ours.len() < fios.len() {
                found.push(format!("{path} has {} of {}", ours.len(), fios.len()));
            }
            fios.iter().zip(ours).for_each(|(a, b)| differs(&format!("{path}[]"), a, b, found));
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() == b.is_f64() => {}
        (Value::String(_), Value::String(_)) => {}
        _ => found.push(format!("{path}: {fios} in fio, {ours} here")),
    }
}

#[test]
fn every_key_of_fios_own_result_is_there_with_its_type() {
    let (folder, file) = result();
    let fio = Command::new("fio")
        .current_dir(folder.path())
        .args(["--output-format=json+", "--eta=never"])
        .arg(readers().join("j.fio"))
        .output();
    let Ok(fio) = fio else { return println!("skipped: no fio") };
    let said = String::from_utf8_lossy(&fio.stdout).into_owned();
    let Some(fios) = said.find('{').and_then(|at| serde_json::from_str::<Value>(&said[at..]).ok()) else {
        return println!("skipped: fio has no result here: {}", &said[..said.len().min(300)]);
    };
    let ours: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut found = Vec::new();
    differs("", &fios, &ours, &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

/// A run has the same bytes each time.
#[test]
fn the_clock_is_the_simulated_one() {
    let (_folder, file) = result();
    let ours: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(ours["timestamp"].as_u64().unwrap() < 60);
    assert!(ours["time"].as_str().unwrap().ends_with(" 1970"));
}
