//! An instance of tracefs: made, set and removed; and those that killed programs left behind.

use super::TraceFsError;
use super::mount::TraceFs;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The beginning of the names of our instances.
const PREFIX: &str = "fairhead-";
/// The most that is read of one of the kernel's text files, in bytes.
const TEXT_MAX: usize = 64 << 10;
/// The number of instances that this process has made: one process may have several.
static MADE: AtomicU32 = AtomicU32::new(0);

/// One instance, which is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) root: PathBuf,
    /// Keeps a mount of our own until the instance is gone; fields are dropped after `drop`.
    _mount: TraceFs,
}

impl Instance {
    /// Makes an instance with nothing enabled.
    pub(super) fn new(mount: TraceFs) -> Result<Self, TraceFsError> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name =
            format!("{PREFIX}{}-{}-{number}", std::process::id(), start_of(std::process::id()).unwrap_or(0));
        let root = mount.root.join("instances").join(name);
        fs::create_dir(&root).map_err(|e| refused(&root, &e))?;
        Ok(Self { root, _mount: mount })
    }

    /// Writes one of the instance's files.
    pub(super) fn set(&self, file: &str, value: &str) -> Result<(), TraceFsError> {
        let path = self.root.join(file);
        fs::write(&path, value)
            .map_err(|e| TraceFsError(format!("cannot write '{value}' to {}: {e}", path.display())))
    }

    /// Reads one of the instance's files, up to 64 KiB.
    pub(super) fn text(&self, file: &str) -> Result<String, TraceFsError> {
        let path = self.root.join(file);
        let cannot = |e| TraceFsError(format!("cannot read {}: {e}", path.display()));
        // The kernel gives `header_page` to the first `read` only, so that has to be large enough.
        let mut bytes = vec![0; TEXT_MAX];
        let mut open = File::open(&path).map_err(cannot)?;
        let mut length = 0;
        while length < bytes.len() {
            match open.read(&mut bytes[length..]).map_err(cannot)? {
                0 => break,
                n => length += n,
            }
        }
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The folder's files are the kernel's: they go with it.
        let _ = fs::remove_dir(&self.root);
    }
}

fn refused(root: &Path, e: &std::io::Error) -> TraceFsError {
    let place = root.display();
    TraceFsError(match e.kind() {
        // Lockdown in mode "confidentiality" refuses even root.
        ErrorKind::PermissionDenied if locked_down() => {
            "the kernel is locked down (confidentiality) and refuses tracing; see /sys/kernel/security/lockdown"
                .to_owned()
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "recording needs root: the kernel's tracefs may not be written (in a container, record on its host)"
                .to_owned()
        }
        _ => format!("cannot make the trace instance {place}: {e}"),
    })
}

fn locked_down() -> bool {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    text.contains("[confidentiality]")
}

/// Removes the instances of ours whose process is gone, and returns their names. One that is in use cannot be
/// removed, even if its owner is not to be seen (in another container).
pub(super) fn remove_stale(mount: &TraceFs) -> Vec<String> {
    let Ok(entries) = fs::read_dir(mount.root.join("instances")) else { return Vec::new() };
    let mut removed = Vec::new();
    for name in entries.filter_map(|e| e.ok()?.file_name().into_string().ok()) {
        let Some((pid, start)) = owner(&name) else { continue };
        if start_of(pid) != Some(start) && fs::remove_dir(mount.root.join("instances").join(&name)).is_ok() {
            removed.push(name);
        }
    }
    removed.sort();
    removed
}

/// Returns the process and its time of start, of the name of one of our instances.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let owner = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let number: Option<u32> = parts.next()?.parse().ok();
    (number.is_some() && parts.next().is_none()).then_some(owner)
}

/// Returns when the process started, in the kernel's ticks since the machine did; `None` if there is no such
/// process.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may contain anything; the start is the 20th word behind it.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_its_owner() {
        assert_eq!(owner("fairhead-17-4711-0"), Some((17, 4711)));
        for name in
            ["fairhead-17", "fairhead-17-4711", "fairhead-17-4711-0-0", "fairhead-x-1-0", "other-1-2-3"]
        {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_has_a_start() {
        assert!(start_of(std::process::id()).is_some_and(|t| t > 0));
        // Numbers of processes end below 2^22.
        assert_eq!(start_of(1 << 23), None);
    }
}
