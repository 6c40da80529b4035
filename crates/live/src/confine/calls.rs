//! System calls: the table of those that a role makes, and the filter made of it.
//!
//! **To allow another call**, add a line to [`CALLS`]: its number, the roles that make it once they have
//! started, and on what condition, if there is one. The groups of the table say what the calls are for.
//! `strace -f` shows what a server makes; the line that a refused call leaves on the standard error output
//! names it.
//!
//! Two calls are not in the table:
//! - `clone3(2)` has its flags in memory, where a filter cannot look. It fails with ENOSYS, and the C library
//!   takes `clone(2)`, which may make threads and nothing else.
//! - `openat(2)` is in it for a server only if the caller names a folder
//!   ([`Confinement::opens_in`](super::Confinement::opens_in)).
//!
//! **What it costs.** The kernel knows beforehand, by number, that most calls are allowed, and runs no filter
//! for those. Calls with a condition run it.
//
//= kernel.org Documentation/userspace-api/seccomp_filter.rst

use super::Role;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};
use std::collections::BTreeMap;

/// The condition of a call. Arguments are counted from 0.
#[derive(Clone, Copy, Debug)]
enum If {
    Always,
    /// The argument is one of these.
    Is(u8, &'static [u64]),
    /// Of these bits (first number) the argument has just those (second number).
    Bits(u8, u64, u64),
    /// The argument is the number of this process.
    Own(u8),
    /// The caller has named a folder whose files are opened later.
    OpensLater,
}
use If::{Always, Bits, Is, OpensLater, Own};

/// A call that is allowed: number, name, roles, condition.
struct Line(i64, &'static str, &'static [Role], If);

const ALL: &[Role] = &[Role::Serve, Role::Mount, Role::Emulate];
const SERVE: &[Role] = &[Role::Serve];
/// The roles that are mounts.
const MOUNTS: &[Role] = &[Role::Mount, Role::Emulate];
const MOUNT: &[Role] = &[Role::Mount];
const EMULATE: &[Role] = &[Role::Emulate];

/// The bits of `open(2)` flags that make it more than a look: writing, creating, emptying.
const OPEN_CHANGES: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u64;
/// What a thread of this process must not leave behind: its name spaces.
const CLONE_NEW: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;
const THREAD: u64 = libc::CLONE_THREAD as u64;

/// Requests of `ioctl(2)` about sockets and descriptors: FIONBIO, FIOCLEX; and the size of a sector,
/// BLKSSZGET.
const IOCTLS: &[u64] = &[0x5421, 0x5451, 0x1268];
/// The first line of [`IOCTLS`], and: flags and attributes of files (FS_IOC_GETFLAGS, FS_IOC_SETFLAGS,
/// FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR); another descriptor of a mount (FUSE_DEV_IOC_CLONE).
const TREE_IOCTLS: &[u64] =
    &[0x5421, 0x5451, 0x1268, 0x8008_6601, 0x4008_6602, 0x801c_581f, 0x401c_5820, 0x8004_e500];

/// Requests of `prctl(2)`: names of threads and of memory, and how exactly a thread sleeps.
const PRCTLS: &[u64] = &[
    libc::PR_SET_NAME as u64,
    libc::PR_GET_NAME as u64,
    libc::PR_SET_TIMERSLACK as u64,
    libc::PR_SET_VMA as u64,
];

macro_rules! calls {
    ($($call:ident $roles:ident $condition:expr,)*) => {
        &[$(Line(libc::$call, stringify!($call), $roles, $condition),)*]
    };
}

/// Every call that a role makes after its start.
#[rustfmt::skip]
const CALLS: &[Line] = calls! {
    // The ring.
    SYS_io_uring_enter      ALL     Always,
    SYS_io_uring_register   ALL     Always,
    SYS_io_uring_setup      ALL     Always,
    // Memory, none of which becomes a program.
    SYS_mmap                ALL     Bits(2, libc::PROT_EXEC as u64, 0),
    SYS_mprotect            ALL     Bits(2, libc::PROT_EXEC as u64, 0),
    SYS_munmap              ALL     Always,
    SYS_mremap              ALL     Always,
    SYS_madvise             ALL     Always,
    SYS_mincore             ALL     Always,
    SYS_brk                 ALL     Always,
    SYS_memfd_create        ALL     Always,
    // Threads.
    SYS_clone               ALL     Bits(0, THREAD | CLONE_NEW, THREAD),
    SYS_set_robust_list     ALL     Always,
    SYS_set_tid_address     ALL     Always,
    SYS_rseq                ALL     Always,
    SYS_futex               ALL     Always,
    SYS_membarrier          ALL     Always,
    SYS_exit                ALL     Always,
    SYS_exit_group          ALL     Always,
    SYS_gettid              ALL     Always,
    SYS_getpid              ALL     Always,
    SYS_prctl               ALL     Is(0, PRCTLS),
    SYS_sched_yield         ALL     Always,
    SYS_sched_getaffinity   ALL     Always,
    SYS_sched_setaffinity   ALL     Always,
    SYS_sched_getscheduler  ALL     Always,
    // Real-time priority: of this thread, for a model's time; and of the kernel's threads for loop devices.
    SYS_sched_setscheduler  SERVE   Is(0, &[0]),
    SYS_sched_setscheduler  MOUNT   Is(0, &[0]),
    SYS_sched_setscheduler  EMULATE Always,
    SYS_getcpu              ALL     Always,
    // The command of `--run`, which was started before.
    SYS_wait4               SERVE   Always,
    SYS_waitid              SERVE   Always,
    // Signals. A panic ends the process by a signal to itself.
    SYS_rt_sigaction        ALL     Always,
    SYS_rt_sigprocmask      ALL     Always,
    SYS_rt_sigreturn        ALL     Always,
    SYS_sigaltstack         ALL     Always,
    SYS_restart_syscall     ALL     Always,
    SYS_tgkill              ALL     Own(0),
    // Time and chance.
    SYS_clock_gettime       ALL     Always,
    SYS_clock_getres        ALL     Always,
    SYS_clock_nanosleep     ALL     Always,
    SYS_nanosleep           ALL     Always,
    SYS_gettimeofday        ALL     Always,
    SYS_getrandom           ALL     Always,
    // The user, and the machine.
    SYS_getuid              ALL     Always,
    SYS_geteuid             ALL     Always,
    SYS_getgid              ALL     Always,
    SYS_getegid             ALL     Always,
    SYS_sysinfo             ALL     Always,
    SYS_uname               ALL     Always,
    SYS_prlimit64           ALL     Bits(2, u64::MAX, 0),
    // Whether a thread for names had to wait: of the thread itself.
    SYS_getrusage           MOUNT   Is(0, &[libc::RUSAGE_THREAD as u64]),
    SYS_ioprio_get          ALL     Always,
    // Descriptors.
    SYS_read                ALL     Always,
    SYS_readv               ALL     Always,
    SYS_pread64             ALL     Always,
    SYS_preadv              ALL     Always,
    SYS_preadv2             ALL     Always,
    SYS_write               ALL     Always,
    SYS_writev              ALL     Always,
    SYS_pwrite64            ALL     Always,
    SYS_pwritev             ALL     Always,
    SYS_pwritev2            ALL     Always,
    SYS_splice              ALL     Always,
    SYS_tee                 ALL     Always,
    SYS_vmsplice            ALL     Always,
    SYS_sendfile            ALL     Always,
    SYS_lseek               ALL     Always,
    SYS_close               ALL     Always,
    SYS_dup                 ALL     Always,
    SYS_dup3                ALL     Always,
    SYS_fcntl               ALL     Always,
    SYS_pipe2               ALL     Always,
    SYS_eventfd2            ALL     Always,
    SYS_timerfd_create      ALL     Always,
    SYS_timerfd_settime     ALL     Always,
    SYS_epoll_create1       ALL     Always,
    SYS_epoll_ctl           ALL     Always,
    SYS_epoll_pwait         ALL     Always,
    SYS_ppoll               ALL     Always,
    SYS_ioctl               SERVE   Is(1, IOCTLS),
    SYS_ioctl               EMULATE Is(1, IOCTLS),
    SYS_ioctl               MOUNT   Is(1, TREE_IOCTLS),
    // Files that are open.
    SYS_fstat               ALL     Always,
    SYS_newfstatat          ALL     Always,
    SYS_statx               ALL     Always,
    SYS_fstatfs             ALL     Always,
    SYS_fsync               ALL     Always,
    SYS_fdatasync           ALL     Always,
    SYS_sync_file_range     ALL     Always,
    SYS_fallocate           ALL     Always,
    SYS_ftruncate           ALL     Always,
    SYS_fadvise64           ALL     Always,
    SYS_flock               ALL     Always,
    SYS_readlinkat          ALL     Always,
    // Sockets that listen, and their clients. None is connected; only pairs within the process are made.
    SYS_accept4             ALL     Always,
    // Between the engine and a thread that encrypts.
    SYS_socketpair          SERVE   Is(0, &[libc::AF_UNIX as u64]),
    SYS_accept              ALL     Always,
    SYS_sendto              ALL     Always,
    SYS_sendmsg             ALL     Always,
    SYS_sendmmsg            ALL     Always,
    SYS_recvfrom            ALL     Always,
    SYS_recvmsg             ALL     Always,
    SYS_recvmmsg            ALL     Always,
    SYS_shutdown            ALL     Always,
    SYS_getsockopt          ALL     Always,
    SYS_setsockopt          ALL     Always,
    SYS_getsockname         ALL     Always,
    SYS_getpeername         ALL     Always,
    // The end: sockets are removed, and mounts taken away.
    SYS_unlinkat            ALL     Always,
    SYS_umount2             MOUNTS  Always,
    // Names.
    SYS_openat              SERVE   OpensLater,
    SYS_openat              EMULATE Bits(2, OPEN_CHANGES, libc::O_RDONLY as u64),
    SYS_openat              MOUNT   Always,
    SYS_openat2             MOUNT   Always,
    SYS_getdents64          MOUNTS  Always,
    SYS_name_to_handle_at   MOUNT   Always,
    SYS_open_by_handle_at   MOUNT   Always,
    SYS_mkdirat             MOUNT   Always,
    SYS_mknodat             MOUNT   Always,
    SYS_symlinkat           MOUNT   Always,
    SYS_linkat              MOUNT   Always,
    SYS_renameat2           MOUNT   Always,
    SYS_fchmod              MOUNT   Always,
    SYS_fchmodat            MOUNT   Always,
    SYS_fchown              MOUNT   Always,
    SYS_fchownat            MOUNT   Always,
    SYS_utimensat           MOUNT   Always,
    SYS_truncate            MOUNT   Always,
    SYS_faccessat           MOUNT   Always,
    SYS_faccessat2          MOUNT   Always,
    SYS_statfs              MOUNT   Always,
    SYS_getxattr            MOUNT   Always,
    SYS_lgetxattr           MOUNT   Always,
    SYS_fgetxattr           MOUNT   Always,
    SYS_listxattr           MOUNT   Always,
    SYS_llistxattr          MOUNT   Always,
    SYS_flistxattr          MOUNT   Always,
    SYS_setxattr            MOUNT   Always,
    SYS_lsetxattr           MOUNT   Always,
    SYS_fsetxattr           MOUNT   Always,
    SYS_removexattr         MOUNT   Always,
    SYS_lremovexattr        MOUNT   Always,
    SYS_fremovexattr        MOUNT   Always,
    SYS_copy_file_range     MOUNT   Always,
    SYS_umask               MOUNT   Always,
    // To act as the caller who takes space, with fewer capabilities than there are.
    SYS_setfsuid            MOUNT   Always,
    SYS_setfsgid            MOUNT   Always,
    SYS_capset              MOUNT   Always,
    // A thread has a umask of its own.
    SYS_unshare             MOUNT   Is(0, &[libc::CLONE_FS as u64]),
};

/// The older forms of calls above, which newer processors do not have.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLDER: &[Line] = calls! {
    SYS_poll                ALL     Always,
    SYS_epoll_wait          ALL     Always,
    SYS_stat                ALL     Always,
    SYS_lstat               ALL     Always,
    SYS_readlink            ALL     Always,
    SYS_time                ALL     Always,
    SYS_dup2                ALL     Always,
    SYS_unlink              ALL     Always,
    SYS_open                MOUNT   Always,
    SYS_chmod               MOUNT   Always,
    SYS_chown               MOUNT   Always,
    SYS_rename              MOUNT   Always,
    SYS_renameat            MOUNT   Always,
};
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[Line] = &[];

/// Calls that no role makes, for the line about a refused call.
#[rustfmt::skip]
const STRANGERS: &[Line] = calls! {
    SYS_execve ALL Always, SYS_execveat ALL Always, SYS_ptrace ALL Always, SYS_socket ALL Always,
    SYS_connect ALL Always, SYS_bind ALL Always, SYS_listen ALL Always,
    SYS_mount ALL Always, SYS_kill ALL Always, SYS_bpf ALL Always, SYS_setns ALL Always,
    SYS_chroot ALL Always, SYS_setuid ALL Always, SYS_setresuid ALL Always,
    SYS_process_vm_readv ALL Always, SYS_process_vm_writev ALL Always, SYS_pidfd_getfd ALL Always,
};

/// The name of a call, if it is known here.
pub(super) fn name(number: i64) -> Option<&'static str> {
    let mut known = CALLS.iter().chain(OLDER).chain(STRANGERS);
    known.find(|line| line.0 == number).and_then(|line| line.1.strip_prefix("SYS_"))
}

/// From now on, the threads of this process make only the calls of the role.
pub(super) fn restrict(role: Role, opens_later: bool) -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let allowed =
        SeccompFilter::new(rules(role, opens_later)?, SeccompAction::Trap, SeccompAction::Allow, arch)?;
    let no_clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let enosys = SeccompAction::Errno(libc::ENOSYS as u32);
    let no_clone3 = SeccompFilter::new(no_clone3, SeccompAction::Allow, enosys, arch)?;
    // Of several filters the strictest answer counts. The last one also takes the calls that apply it.
    let (no_clone3, allowed): (BpfProgram, BpfProgram) = (no_clone3.try_into()?, allowed.try_into()?);
    apply_filter_all_threads(&no_clone3)?;
    apply_filter_all_threads(&allowed)
}

/// The rules of a role, by number of the call; a call without conditions is allowed always.
fn rules(
    role: Role,
    opens_later: bool,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    // It is for the other filter to say no.
    let mut rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    for Line(number, _, _, condition) in CALLS.iter().chain(OLDER).filter(|line| line.2.contains(&role)) {
        let one = |arg, op, value| SeccompRule::new(vec![SeccompCondition::new(arg, Len::Qword, op, value)?]);
        let conditions = match *condition {
            Always => Vec::new(),
            OpensLater if opens_later => Vec::new(),
            OpensLater => continue,
            Is(arg, values) => values.iter().map(|&value| word(arg, value)).collect::<Result<_, _>>()?,
            Bits(arg, mask, value) => vec![one(arg, Op::MaskedEq(mask), value)?],
            Own(arg) => vec![word(arg, std::process::id().into())?],
        };
        rules.insert(*number, conditions);
    }
    Ok(rules)
}

/// The lower half of an argument is this. Where the kernel takes an `int`, the upper half may be anything.
fn word(arg: u8, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(arg, Len::Dword, Op::Eq, value)?])
}
