//! Whether something can be mounted here.

use std::fs::OpenOptions;
use std::os::unix::fs::MetadataExt;

/// If not, a line says why.
pub(crate) fn may_mount() -> bool {
    let why = match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Err(e) => Some(format!("/dev/fuse: {e}")),
        Ok(_) => {
            (std::fs::metadata("/proc/self").unwrap().uid() != 0).then(|| "only root may mount".to_owned())
        }
    };
    if let Some(why) = &why {
        eprintln!("skipped: {why}");
    }
    why.is_none()
}
