//! `bench/vhost.sh` ends when one of its steps hangs. The programs that it runs are scripts here.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A server that listens and ignores SIGTERM.
const DEAF: &str = "#!/usr/bin/env python3\n\
    import signal, socket, sys, time\n\
    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
    path = next(a.split('=')[0] for a in sys.argv if a.startswith('/dev/shm/'))\n\
    s = socket.socket(socket.AF_UNIX)\n\
    s.bind(path)\n\
    s.listen()\n\
    time.sleep(600)\n";

fn program(at: &Path, text: &str) {
    std::fs::write(at, text).expect("a script");
    std::fs::set_permissions(at, PermissionsExt::from_mode(0o755)).expect("it is ours");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the limits are of real time")]
fn a_step_that_hangs_ends_the_script_with_a_line() {
    if !Path::new("/dev/shm").is_dir() || Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: no /dev/shm or no python3");
    }
    let place = std::env::temp_dir().join(format!("fairhead-vhost-script-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a folder");
    let at = |name: &str| place.join(name);
    program(&at("fairhead"), DEAF);
    program(&at("load"), "#!/bin/sh\nexec sleep 600\n");
    program(&at("qemu-storage-daemon"), DEAF);
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap_or_default());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/vhost.sh");
    let began = Instant::now();
    let output = Command::new("bash")
        .args([script, "1", "0.2"])
        .envs([("PATH", path.as_str()), ("LIMIT", "0.5")])
        .env("FAIRHEAD", at("fairhead"))
        .env("VHOST_LOAD", at("load"))
        .output()
        .expect("bash");
    let said = String::from_utf8_lossy(&output.stderr);
    let _ = std::fs::remove_dir_all(&place);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the load on fairhead-noop"), "{said}");
    assert!(said.contains("has not ended within 0.7 s") && said.contains("and was killed"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
