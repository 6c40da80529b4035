//! The I/O priorities of running processes, if they are not the default.

use crate::tree::Tree;

/// A process with an I/O priority of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Priority {
    /// The process's number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The class: 1 real-time, 2 best-effort, 3 idle.
    pub class: u8,
    /// The level, 0 to 7.
    pub level: u8,
}

impl Priority {
    /// The processes that have one; none unless the tree is the machine at hand. Threads of the kernel are
    /// left out.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        if !tree.is_live() {
            return Vec::new();
        }
        tree.names("proc").iter().filter_map(|name| Self::of(tree, name.parse().ok()?)).collect()
    }

    fn of(tree: &Tree, pid: u32) -> Option<Self> {
        let (class, level) = io_priority(pid)?;
        // A thread of the kernel has no command line.
        tree.text(&format!("proc/{pid}/cmdline")).filter(|line| !line.is_empty())?;
        let name = tree.text(&format!("proc/{pid}/comm"))?;
        Some(Self { pid, name, class, level })
    }
}

/// The priority that the process was given; `None` if it has none of its own, or has ended.
fn io_priority(pid: u32) -> Option<(u8, u8)> {
    const PROCESS: libc::c_int = 1;
    // SAFETY: the call takes three numbers and touches no memory of ours.
    let value = unsafe { libc::syscall(libc::SYS_ioprio_get, PROCESS, pid) };
    let value = u16::try_from(value).ok()?;
    let (class, level) = ((value >> 13) as u8, (value & 7) as u8);
    // Class 0 means derived from the nice value; best-effort 4 is what that gives by default.
    (class != 0 && (class, level) != (2, 4)).then_some((class, level))
}
