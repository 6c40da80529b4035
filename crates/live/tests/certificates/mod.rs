//! Certificates for tests, made by gnutls' certtool: an authority, a server, and clients.

#![allow(dead_code, reason = "no test binary needs all of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with them, under the names that nbdkit and QEMU use. Clients have folders of their own inside.
pub(crate) struct Certificates {
    pub(crate) folder: PathBuf,
}

const AUTHORITY: &str = "ca\ncert_signing_key\ncrl_signing_key\nexpiration_days = 10\ncn = ";

impl Certificates {
    /// Makes them; says so if there is no certtool.
    pub(crate) fn new(folder: &Path) -> Option<Self> {
        if Command::new("certtool").arg("--version").output().is_err() {
            println!("skipped: no certtool");
            return None;
        }
        let all = Self { folder: folder.join("pki") };
        std::fs::create_dir(&all.folder).unwrap();
        let of = |name: &str| all.folder.join(name);
        all.authority(&of("ca"), "tests");
        all.renew_server("ed25519");
        all.authority(&of("other"), "another authority");
        for (name, authority) in [("alice", "ca"), ("bob", "ca"), ("revoked", "ca"), ("stranger", "other")] {
            let text = format!(
                "cn = {name}\ndns_name = {name}.example\ntls_www_client\nsigning_key\nencryption_key\n\
                 expiration_days = 10\n"
            );
            std::fs::create_dir(of(name)).unwrap();
            all.signed(&of(authority), &of(name).join("client"), "ed25519", &text);
            std::fs::copy(of("ca-cert.pem"), of(name).join("ca-cert.pem")).unwrap();
        }
        std::fs::write(of("crl"), "crl_next_update = 10\ncrl_number = 1\n").unwrap();
        let mut list = Command::new("certtool");
        list.arg("--generate-crl").arg("--load-ca-privkey").arg(of("ca-key.pem"));
        list.arg("--load-ca-certificate").arg(of("ca-cert.pem"));
        list.arg("--load-certificate").arg(of("revoked").join("client-cert.pem"));
        run(list.arg("--template").arg(of("crl")).arg("--outfile").arg(of("ca-crl.pem")));
        Some(all)
    }

    /// Makes another key of this kind and a certificate for the server.
    pub(crate) fn renew_server(&self, kind: &str) {
        let server = "cn = localhost\ndns_name = localhost\nip_address = 127.0.0.1\ntls_www_server\n\
                      signing_key\nencryption_key\nexpiration_days = 10\n";
        self.signed(&self.folder.join("ca"), &self.folder.join("server"), kind, server);
    }

    fn key(&self, at: &Path, kind: &str) -> PathBuf {
        let key = with(at, "-key.pem");
        run(Command::new("certtool").args(["--generate-privkey", "--key-type", kind, "--outfile"]).arg(&key));
        key
    }

    fn authority(&self, at: &Path, name: &str) {
        let (key, template) = (self.key(at, "ed25519"), with(at, ".info"));
        std::fs::write(&template, format!("{AUTHORITY}{name}\n")).unwrap();
        let mut make = Command::new("certtool");
        make.arg("--generate-self-signed").arg("--load-privkey").arg(key);
        run(make.arg("--template").arg(template).arg("--outfile").arg(with(at, "-cert.pem")));
    }

    fn signed(&self, authority: &Path, at: &Path, kind: &str, text: &str) {
        let (key, template) = (self.key(at, kind), with(at, ".info"));
        std::fs::write(&template, text).unwrap();
        let mut make = Command::new("certtool");
        make.arg("--generate-certificate").arg("--load-privkey").arg(key);
        make.arg("--load-ca-certificate").arg(with(authority, "-cert.pem"));
        make.arg("--load-ca-privkey").arg(with(authority, "-key.pem"));
        run(make.arg("--template").arg(template).arg("--outfile").arg(with(at, "-cert.pem")));
    }
}

fn with(at: &Path, end: &str) -> PathBuf {
    let mut path = at.as_os_str().to_owned();
    path.push(end);
    path.into()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
