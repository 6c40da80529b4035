//! Files and names that are reached through a descriptor: one of a folder, or one that only names a file.

use crate::bio::Errno;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A name for what the descriptor names.
pub(super) fn proc_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Opens a name in a folder. The mode is for the ways that make a file.
pub(super) fn open_at(folder: &File, name: &OsStr, how: OFlags, mode: u32) -> Result<File, Errno> {
    let file = rustix::fs::openat(folder, name, how | OFlags::CLOEXEC, Mode::from_bits_retain(mode))?;
    Ok(file.into())
}
