//! Confinement of the live commands, unless `--no-confinement` says otherwise.
//!
//! What is given up, and what that does not do: `fairhead_live::confine`.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use fairhead_live::Error;
use fairhead_live::confine::{Begun, Confinement, may_mount};

use crate::error::CliError;
use crate::out;

/// Gives up what the command does not need for its start. Call it before the first thread is started.
pub(crate) fn begin(off: bool, needs: Confinement) -> Result<Option<Begun>, CliError> {
    if off { Ok(None) } else { needs.begin().map(Some).map_err(|e| refused(&e)) }
}

/// Gives up what a mount does not need for its start. An ordinary user's needs `fusermount3` for that, so the
/// most is given up later.
pub(crate) fn begin_mount(off: bool, needs: Confinement) -> Result<Option<Begun>, CliError> {
    begin(off, if may_mount() { needs } else { needs.late() })
}

/// Lets this process write files of any size, before it is confined: what it writes is others'.
pub(crate) fn raise_size_limit() {
    if let Err(e) = fairhead_live::raise_size_limit() {
        out::note(&format!("cannot raise the limit of the size of files: {e}"));
    }
}

/// A process outside of the confinement that takes away an ordinary user's mount: only `fusermount3` may,
/// and a confined process starts no programs. It does so when this is dropped, or when this process is
/// killed.
pub(crate) struct Unmounter {
    /// What it reads: nothing, until the end.
    ear: ChildStdin,
}

/// Waits for the end of its input, and unmounts; unless a line says that it is not mounted any more. What
/// ends the command, as Ctrl-C does for all of a terminal, must not end this before.
const SCRIPT: &str =
    r#"trap '' INT TERM HUP; read -r line; [ "$line" = gone ] || exec fusermount3 -u -z -- "$0""#;

impl Unmounter {
    /// Starts it, if `umount(2)` is not for this user.
    pub(crate) fn start(at: &Path) -> Result<Option<Self>, CliError> {
        if may_mount() {
            return Ok(None);
        }
        let failed = |e: std::io::Error| CliError::Failed(format!("cannot run sh: {e}"));
        let at = at.canonicalize().map_err(failed)?;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(SCRIPT).arg(at).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = shell.spawn().map_err(failed)?;
        Ok(child.stdin.take().map(|ear| Self { ear }))
    }

    /// The mount is gone: what is mounted there later is not ours.
    pub(crate) fn let_go(mut self) {
        let _ = self.ear.write_all(b"gone\n");
    }
}

/// Gives up what the command needed for its start only, in all threads; and tells if the kernel can do less
/// than it should.
pub(crate) fn finish(begun: Option<Begun>) -> Result<(), CliError> {
    let Some(begun) = begun else { return Ok(()) };
    if begun.lacks_landlock() {
        out::note("confinement: this kernel has no landlock, so system calls alone are confined");
    }
    begun.finish().map_err(|e| refused(&e))
}

fn refused(e: &Error) -> CliError {
    CliError::Failed(format!("{e}; --no-confinement runs without"))
}
