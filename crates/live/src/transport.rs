//! The way that requests take from the kernel: its device `/dev/fuse`, or queues of io_uring.
//!
//! What it does not do: either (`front.rs`, `queues.rs`).

use crate::error::{Error, ErrorKind};
use std::fs;

/// The way that a mount's requests take from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// FUSE over io_uring where the kernel has it and it is switched on, else `/dev/fuse`.
    #[default]
    Auto,
    /// FUSE over io_uring, or an error.
    Uring,
    /// `/dev/fuse`.
    Dev,
}

/// The kernel's switch.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";

impl Transport {
    /// Returns why this kernel has no FUSE over io_uring; `None` if it has.
    #[must_use]
    pub fn missing() -> Option<String> {
        match fs::read_to_string(SWITCH) {
            Ok(value) if value.trim() == "Y" => None,
            Ok(_) => Some(format!("it is switched off; as root: echo Y >{SWITCH}")),
            Err(_) => {
                Some("this kernel has none; it comes with Linux 6.14 and CONFIG_FUSE_IO_URING".to_owned())
            }
        }
    }

    /// Returns whether to ask the kernel for its queues.
    ///
    /// # Errors
    /// If they are demanded, and there are none.
    pub(super) fn wants_queues(self) -> Result<bool, Error> {
        match (self, Self::missing()) {
            (Self::Dev, _) => Ok(false),
            (_, None) => Ok(true),
            (Self::Auto, Some(_)) => Ok(false),
            (Self::Uring, Some(why)) => {
                Err(Error::new(ErrorKind::Setting, format!("FUSE over io_uring: {why}")))
            }
        }
    }
}
