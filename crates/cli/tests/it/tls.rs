//! `fairhead serve --tls` as a user meets it: mistakes, and libnbd's and QEMU's clients with right and wrong
//! certificates.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::certificates::Certificates;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    certificates: Certificates,
}

impl Place {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("disk"), vec![7; 8 << 20]).unwrap();
        let certificates = Certificates::new(folder.path())?;
        Some(Self { folder, certificates })
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Serves the disk on TCP while a command runs, which finds the certificates in `$pki`.
    fn run(&self, more: &[&str], command: &str) -> Output {
        let (export, pki) = (format!("vm={}", self.path("disk")), self.certificates.folder.to_str().unwrap());
        let args = ["serve", "--listen", "0", "--tls-certificates", pki, "--run", command];
        let args = [&args[..], more].concat();
        let args =
            if more.contains(&"--export") { args } else { [&args[..], &["--export", &export]].concat() };
        fairhead(&args, pki)
    }
}

fn fairhead(args: &[&str], pki: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fairhead"));
    program.args(args).env("pki", pki).output().unwrap()
}

fn refusal(args: &[&str], code: i32) -> String {
    let out = fairhead(&[&["serve"], args].concat(), "");
    let text = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text.trim_end().to_owned()
}

fn said(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

fn has(program: &str) -> bool {
    let run = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if run.is_err() {
        println!("skipped: there is no {program}");
    }
    run.is_ok()
}

#[test]
fn mistakes_about_tls_are_one_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::write(&disk, [0; 4096]).unwrap();
    let export = format!("vm={}", disk.display());
    let with = |more: &[&str], code| {
        refusal(&[&["--export", export.as_str(), "--listen", "0"], more].concat(), code)
    };
    assert!(with(&["--tls", "require"], 2).contains("--tls-certificates DIR has server-cert.pem"));
    assert!(with(&["--tls-certificates", "pki"], 2).contains("TLS is off; write --tls on or --tls require"));
    assert!(with(&["--tls-verify-peer"], 2).contains("TLS is off"));
    assert!(with(&["--tls-psk", "keys.psk"], 2).contains("pre-shared keys are not offered"));
    let nowhere = Path::new("nowhere").join("server-cert.pem");
    let why = with(&["--tls", "on", "--tls-certificates", "nowhere"], 2);
    assert!(why.contains(&format!("{}: No such file", nowhere.display())), "{why}");
    let named = format!("{export},allow_tls=alice");
    let why = refusal(&["--export", &named, "--listen", "0"], 2);
    assert!(why.contains("which are not verified"), "{why}");
}

/// Other machines can reach it: without TLS it is refused, and so it is where TLS is only possible.
#[test]
fn other_machines_have_to_use_tls() {
    let Some(place) = Place::new() else { return };
    let export = format!("vm={}", place.path("disk"));
    let pki = place.certificates.folder.to_str().unwrap();
    let start = |more: &[&str]| {
        let args = ["serve", "--export", &export, "--listen", "0.0.0.0:0", "--run", "true"];
        fairhead(&[&args[..], more].concat(), pki)
    };
    for more in [&[][..], &["--tls", "on", "--tls-certificates", pki]] {
        let out = start(more);
        let text = said(&out);
        assert!(text.ends_with("; --tls require encrypts it, --insecure-remote allows it\n"), "{text}");
        assert_eq!((out.status.code(), text.lines().count()), (Some(1), 1), "{text}");
    }
    let out = start(&["--tls", "require", "--tls-certificates", pki]);
    assert!(out.status.success(), "{}", said(&out));
}

#[test]
fn libnbd_with_right_and_wrong_certificates() {
    if !has("nbdinfo") || !has("nbdcopy") {
        return;
    }
    let Some(place) = Place::new() else { return };
    let copied = place.path("copied");
    let out = place.run(
        &["--tls", "require"],
        &format!(r#"nbdinfo "$uri" && nbdinfo --size "$uri" && nbdcopy --connections=2 "$uri" {copied}"#),
    );
    let text = said(&out);
    assert!(out.status.success() && text.contains("with TLS") && text.contains("8388608"), "{text}");
    assert!(std::fs::read(&copied).unwrap() == vec![7; 8 << 20], "what was copied");
    // Without TLS it learns nothing.
    let plain = r#"nbdinfo --list "nbd://${uri#nbds://}""#;
    let out = place.run(&["--tls", "require"], plain);
    assert!(!out.status.success(), "{}", said(&out));
    // Some clients have a certificate.
    let export = format!("vm={},allow_tls=alice", place.path("disk"));
    let other = format!("other={},allow_tls=bob", place.path("copied"));
    let more = ["--tls", "require", "--tls-verify-peer", "--export", &export, "--export", &other];
    let asks = |who: &str, name: &str| {
        let at = r"${uri%/\?*}";
        let out = place.run(&more, &format!(r#"nbdinfo --size "{at}/{name}?tls-certificates=$pki/{who}""#));
        (out.status.success(), said(&out))
    };
    let (is_right, text) = asks("alice", "vm");
    assert!(is_right, "{text}");
    for (who, name) in [("alice", "other"), ("bob", "vm"), ("revoked", "vm"), ("stranger", "vm"), ("", "vm")]
    {
        let (is_right, text) = asks(who, name);
        assert!(!is_right, "{who} opens {name}: {text}");
    }
}

#[test]
fn qemu_with_right_and_wrong_certificates() {
    if !has("qemu-img") || !has("qemu-io") {
        return;
    }
    let Some(place) = Place::new() else { return };
    let more = ["--tls", "require", "--tls-verify-peer"];
    let with = |who: &str, command: &str| {
        let creds = format!("tls-creds-x509,id=tls,endpoint=client,verify-peer=on,dir=$pki/{who}");
        let image = "driver=nbd,host=127.0.0.1,port=$port,export=vm,tls-creds=tls";
        let script = format!(
            r#"port=${{uri#nbds://*:}}; port=${{port%%/*}}; creds="{creds}"; image="{image}"; {command}"#
        );
        let out = place.run(&more, &script);
        (out.status.success(), said(&out))
    };
    let work = r#"qemu-io --object "$creds" --image-opts "$image" \
        -c "write -P 3 4096 1M" -c flush -c "read -P 3 4096 1M" -c "read -P 7 2M 1M" &&
        qemu-img info --object "$creds" --image-opts "$image""#;
    let (is_right, text) = with("alice", work);
    assert!(is_right && text.contains("8 MiB") && !text.contains("failed"), "{text}");
    for who in ["revoked", "stranger"] {
        let (is_right, text) = with(who, r#"qemu-img info --object "$creds" --image-opts "$image""#);
        assert!(!is_right, "{who}: {text}");
    }
}

/// What is written for operators knows of it.
#[test]
fn the_documents_say_that_there_is_tls() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, gone) in
        [("SECURITY.md", "connections are not encrypted"), ("docs/operators.md", "There is none here")]
    {
        let text = std::fs::read_to_string(root.join(file)).unwrap().replace('\n', " ");
        assert!(text.contains("`--tls on`") && text.contains("`--tls require`"), "{file}");
        assert!(!text.contains(gone), "{file}: {gone}");
    }
}
