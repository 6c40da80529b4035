//! Whether something can be mounted here.

use std::fs::OpenOptions;

/// If not, a line says why.
pub(crate) fn may_mount() -> bool {
    let why = match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Err(e) => Some(format!("/dev/fuse: {e}")),
        // SAFETY: it only answers a number.
        Ok(_) => (unsafe { libc::geteuid() } != 0).then(|| "only root may mount".to_owned()),
    };
    if let Some(why) = &why {
        eprintln!("skipped: {why}");
    }
    why.is_none()
}
