//! Landlock: the files, TCP ports and neighbours that a process may reach.
//!
//! A rule names a file or a folder with all below it. What no rule names cannot be opened; what was opened
//! before stays open. Beside the files of the arguments, `/proc` and `/sys` may be read: what the disk is,
//! and the process's own files. Processes outside cannot be looked into (`ptrace(2)`, `/proc/PID/environ`),
//! sent signals, or reached by abstract sockets; no TCP connection can be opened, and ports can be listened
//! on only if they were named.

use super::failed;
use crate::error::Error;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use std::path::{Path, PathBuf};

/// The newest version whose rights are handled. Kernels with an older one handle what they know.
const NEWEST: ABI = ABI::V6;

/// What may be done below a path.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    path: PathBuf,
    allowed: BitFlags<AccessFs>,
}

impl Rule {
    /// A file or folder that is read.
    pub(super) fn reads(path: &Path) -> Self {
        Self { path: path.to_owned(), allowed: make_bitflags!(AccessFs::{ReadFile | ReadDir | IoctlDev}) }
    }

    /// A file that is read and written, or a folder of such files.
    pub(super) fn writes(path: &Path) -> Self {
        let allowed = make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | Truncate | IoctlDev});
        Self { path: path.to_owned(), allowed }
    }

    /// A folder in which files are made.
    pub(super) fn creates(folder: &Path) -> Self {
        let allowed = make_bitflags!(AccessFs::{MakeReg | ReadFile | WriteFile | Truncate});
        Self { path: folder.to_owned(), allowed }
    }

    /// A folder in which sockets are made and removed.
    pub(super) fn sockets(folder: &Path) -> Self {
        Self { path: folder.to_owned(), allowed: make_bitflags!(AccessFs::{MakeSock | RemoveFile}) }
    }
}

/// Restricts this thread and those that it starts. No rules at all: files are not guarded. Returns the
/// version of the kernel's landlock, if it has one.
pub(super) fn restrict(rules: Option<&[Rule]>, ports: &[u16]) -> Result<Option<u32>, Error> {
    let wrong = |e: landlock::RulesetError| failed("landlock", &e);
    let mut set = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    if rules.is_some() {
        set = set.handle_access(AccessFs::from_all(NEWEST)).map_err(wrong)?;
    }
    set = set.handle_access(AccessNet::from_all(NEWEST)).map_err(wrong)?;
    set = set.scope(make_bitflags!(Scope::{AbstractUnixSocket | Signal})).map_err(wrong)?;
    let mut set = set.create().map_err(wrong)?;
    for &port in ports {
        set = set.add_rule(NetPort::new(port, AccessNet::BindTcp)).map_err(wrong)?;
    }
    let own = [Rule::reads(Path::new("/proc")), Rule::reads(Path::new("/sys"))];
    for rule in rules.into_iter().flat_map(|rules| rules.iter().chain(&own)) {
        // What is not there cannot be opened, and the one who tries says so better.
        let Ok(opened) = PathFd::new(&rule.path) else { continue };
        // Rights to folders mean nothing to a file, and are left out.
        let allowed = match rule.path.is_dir() {
            true => rule.allowed,
            false => rule.allowed & AccessFs::from_file(NEWEST),
        };
        set = set.add_rule(PathBeneath::new(opened, allowed)).map_err(wrong)?;
    }
    let outcome = set.restrict_self().map_err(wrong)?;
    Ok(match (outcome.ruleset, outcome.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as u32),
        _ => None,
    })
}
