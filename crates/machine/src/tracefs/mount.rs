//! Where tracefs is mounted; and a mount of our own if it is nowhere. A mount that another recording made for
//! itself does not count: it goes when that recording ends.

use super::TraceFsError;
use std::ffi::CString;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the folder of a mount of ours begins; the process's number follows.
const OURS: &str = "fairhead-tracefs-";

/// The mounted tracefs.
#[derive(Debug)]
pub(super) struct TraceFs {
    pub(super) root: PathBuf,
    /// Whether the mount is ours, to be undone.
    ours: bool,
}

impl TraceFs {
    /// Finds the mount, or mounts one.
    pub(super) fn find() -> Result<Self, TraceFsError> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let usable = |root: &PathBuf| root.join("events/block").is_dir() && root.join("instances").is_dir();
        match mounted(&mounts).into_iter().find(usable) {
            Some(root) => Ok(Self { root, ours: false }),
            None => Self::mount(),
        }
    }

    fn mount() -> Result<Self, TraceFsError> {
        let root = std::env::temp_dir().join(format!("{OURS}{}", std::process::id()));
        let folder = |e| TraceFsError(format!("cannot make the folder {}: {e}", root.display()));
        fs::create_dir(&root).map_err(folder)?;
        if let Err(e) = mount(&root) {
            let _ = fs::remove_dir(&root);
            return Err(refused(&e));
        }
        let fs = Self { root, ours: true };
        if !fs.root.join("events/block").is_dir() {
            let message =
                "this kernel's tracefs has no block events: it was built without CONFIG_BLK_DEV_IO_TRACE";
            return Err(TraceFsError(message.to_owned()));
        }
        Ok(fs)
    }
}

impl Drop for TraceFs {
    fn drop(&mut self) {
        if self.ours {
            unmount(&self.root);
            let _ = fs::remove_dir(&self.root);
        }
    }
}

/// Returns the places where tracefs is mounted to stay, by the text of `mountinfo`.
fn mounted(mountinfo: &str) -> Vec<PathBuf> {
    let of = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut words = before.split_ascii_whitespace().skip(3);
        // Only the root of the file system will do.
        let (root, place) = (words.next()?, words.next()?);
        (root == "/" && after.split_ascii_whitespace().next() == Some("tracefs")).then(|| unescape(place))
    };
    let stays = |place: &PathBuf| {
        place.file_name().is_none_or(|name| !name.as_encoded_bytes().starts_with(OURS.as_bytes()))
    };
    mountinfo.lines().filter_map(of).filter(stays).collect()
}

/// Undoes the escapes of `mountinfo`: `\040` is a space.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = others.get(..3).filter(|_| *first == b'\\').and_then(|d| std::str::from_utf8(d).ok());
        let (byte, after) = match code.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) => (byte, &others[3..]),
            None => (*first, others),
        };
        bytes.push(byte);
        rest = after;
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

/// The error of a mount that was refused, in words of what to do.
fn refused(e: &Error) -> TraceFsError {
    TraceFsError(match e.kind() {
        ErrorKind::PermissionDenied => {
            "recording needs root: the kernel's tracefs may not be read (in a container, record on its host)"
                .to_owned()
        }
        _ if e.raw_os_error() == Some(libc::ENODEV) => {
            "this kernel has no tracefs: it was built without CONFIG_FTRACE".to_owned()
        }
        _ => format!("tracefs is not mounted, and cannot be mounted: {e}"),
    })
}

fn mount(place: &Path) -> Result<(), Error> {
    let text = |s: &[u8]| CString::new(s).map_err(|e| Error::new(ErrorKind::InvalidInput, e));
    let (kind, place) = (text(b"tracefs")?, text(place.as_os_str().as_bytes())?);
    // SAFETY: the three texts end with a zero and outlive the call; the data may be null.
    let done = unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    if done == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

fn unmount(place: &Path) {
    let Ok(place) = CString::new(place.as_os_str().as_bytes()) else { return };
    // SAFETY: the text ends with a zero and outlives the call.
    unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_type() {
        let text = "24 1 0:22 / /proc rw - proc proc rw\n\
            30 1 0:12 / /sys/kernel/tracing rw,relatime shared:3 - tracefs none rw\n\
            31 1 0:12 /events /x rw - tracefs none rw\n\
            32 1 0:12 / /tmp/fairhead-tracefs-815 rw - tracefs tracefs rw\n\
            33 1 0:12 / /a\\040b rw - tracefs none rw\n";
        assert_eq!(mounted(text), [PathBuf::from("/sys/kernel/tracing"), PathBuf::from("/a b")]);
        assert!(mounted("").is_empty());
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        assert!(refused(&Error::from_raw_os_error(libc::EPERM)).0.contains("needs root"));
        assert!(refused(&Error::from_raw_os_error(libc::ENODEV)).0.contains("CONFIG_FTRACE"));
    }
}
