//! Arguments of the live commands: `serve`, `mount`, `emulate`, `ctl`, `top`, `replay-live`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = SERVE_LEGEND)]
pub(crate) struct ServeArgs {
    /// Export this file or block device under NAME, with settings as below. May be repeated: all exports
    /// share one disk.
    #[arg(long = "export", value_name = "NAME=FILE[,KEY=VALUE…]", required_unless_present = "vhost_user")]
    pub(crate) exports: Vec<String>,
    /// Serve this file or block device to a virtual machine, which finds it at the Unix socket PATH, with
    /// settings as below. It is a vhost-user-blk device. Only the owner can open the socket unless the device
    /// names users or groups. May be repeated: all devices and exports share one disk.
    #[arg(long = "vhost-user", value_name = "PATH=FILE[,KEY=VALUE…]")]
    pub(crate) vhost_user: Vec<String>,
    /// Listen on this Unix socket, which only its owner can open unless an export names users or groups. May
    /// be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Vec<PathBuf>,
    /// Listen on TCP, at PORT of 127.0.0.1 or at ADDR:PORT. May be repeated.
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) listen: Vec<String>,
    /// Listen on this vsock port, for the virtual machines of this machine. May be repeated.
    #[arg(long, value_name = "PORT")]
    pub(crate) vsock: Vec<u32>,
    /// Allow --listen on addresses that other machines can reach although --tls is not `require`. Clients
    /// without TLS are neither encrypted nor asked for a password.
    #[arg(long)]
    pub(crate) insecure_remote: bool,
    /// Whether clients can use TLS: `off`, `on`, or `require`, which refuses all others. It needs
    /// --tls-certificates.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = TlsArg::Off)]
    pub(crate) tls: TlsArg,
    /// The folder with server-cert.pem and server-key.pem, and with ca-cert.pem for --tls-verify-peer. If
    /// ca-crl.pem exists there, clients whose certificates it lists are refused.
    #[arg(long, value_name = "DIR")]
    pub(crate) tls_certificates: Option<PathBuf>,
    /// Refuse TLS clients that have no certificate from the authority in ca-cert.pem.
    #[arg(long)]
    pub(crate) tls_verify_peer: bool,
    /// What users of nbdkit might try; it is refused with a reason.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) tls_psk: Option<PathBuf>,
    /// Export files although another program has locked them. Without this option, a file that one program
    /// writes, another server of QEMU's or ours, is refused.
    #[arg(long)]
    pub(crate) force_share: bool,
    /// The folder whose files `fairhead ctl … export add` may export while the server runs, at any depth.
    /// Without it, a confined server opens no more files.
    #[arg(long, value_name = "DIR")]
    pub(crate) export_dir: Option<PathBuf>,
    /// The scheduler (`fairhead list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "bfq")]
    pub(crate) sched: String,
    /// Set a tunable of the scheduler, such as slice_idle=4ms (`fairhead show SCHED` lists them). May be
    /// repeated.
    #[arg(long = "set", value_name = "TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// The most requests that are at the disk at a time. Default for hard disks: the length of the disk's own
    /// queue, at most 32 (1 if unknown). Default for others: 32, lowered to as few as 8 while requests take
    /// long.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) depth: Option<u16>,
    /// The longest that the disk may take for one request or fsync. Then clients get an error (ETIMEDOUT).
    /// What overlaps the request fails too, until the disk is done with it. Default: no limit.
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Answer as slowly as this disk, in real time: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) emulate: Option<String>,
    /// Use the page cache instead of direct I/O. Any offset and length is allowed then, but the scheduler no
    /// longer decides what the disk does.
    #[arg(long)]
    pub(crate) cached: bool,
    /// The most threads that copy large data, beside the one thread that schedules all exports. Default: four
    /// per processor. With 0 the scheduling thread copies everything itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub(crate) threads: Option<u16>,
    /// The most connections at a time.
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) connections: u16,
    /// The most connections of one user of a Unix socket, or of one address over TCP. Default: as many as
    /// --connections.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) connections_per_peer: Option<u16>,
    /// Record every event and decision of the scheduler in this file, for `fairhead replay-live`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Run this shell command and serve until it ends. It finds the server in $uri and $socket, and the
    /// control socket in $control.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: Option<String>,
    /// Run with all rights of the user. Without this option the command gives up what it does not need:
    /// system calls, files, capabilities. Needed where a system call that it makes is refused (it says so in
    /// one line), or below a debugger.
    #[arg(long)]
    pub(crate) no_confinement: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// `--tls`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum TlsArg {
    Off,
    On,
    Require,
}

/// Help below the options of `serve`: the settings of an export.
const SERVE_LEGEND: &str = "\
Settings of an export: weight=1…10000 (default 100), class=rt|be|idle (default be); limits rbps=, wbps= in \
bytes per second (such as 50m), riops=, wiops= in requests per second; min_iops=, the guaranteed requests \
per second; latency=, the mean latency that it should have (such as 5ms), under a scheduler that keeps such \
targets; leaf_weight= and burst= as in docs/control.md; group=PATH (default: a group named after the \
export); readonly; description=TEXT; allow_uid=N, allow_gid=N, which may be repeated: the users and groups \
that may open the export over a Unix socket, which every process can connect to then; allow_tls=NAME, which \
may be repeated: the TLS clients that may open it, by a name in their certificate (with --tls-verify-peer); \
connections=N, the most connections of the export. Settings of a vhost-user device: weight=, class=, \
limits, group= and readonly as for an export; name=NAME, for statistics and its group (default: the name of \
the socket without .sock); serial=TEXT, what the guest sees as serial number, of which it has 20 bytes \
(default: the name); queues=1…64, the most queues of the guest (default 64); allow_uid=N, allow_gid=N, \
which may be repeated: the users and groups whose virtual machines may have the device. Ctrl-C or SIGTERM \
ends the server: it finishes the requests in flight and prints a table of what each export did.";

/// Arguments of the commands that run until they are stopped.
#[derive(Debug, Default, Args)]
pub(crate) struct ControlArgs {
    /// Listen on this Unix socket, which only its owner can open, for `fairhead ctl` and `fairhead top`.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Serve Prometheus metrics at http://ADDR:PORT/metrics. With PORT alone ADDR is 127.0.0.1.
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) metrics: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = CTL_LEGEND)]
pub(crate) struct CtlArgs {
    /// The socket that `serve` or `mount` was given as --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// The request, as below. Default: stats.
    #[arg(value_name = "WORD", allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Help below the options of `ctl`: the requests.
const CTL_LEGEND: &str = "\
stats: print all statistics as JSON. metrics: print the statistics in Prometheus' format. make GROUP \
[KEY=VALUE…]: create a group. set GROUP KEY=VALUE…: change a group. remove GROUP: delete a group. sched \
NAME [TUNABLE=VALUE…]: change the scheduler. tune TUNABLE=VALUE…: change tunables. depth N|auto: the most \
requests at the disk. exports: list the exports of a server. export add NAME=FILE[,KEY=VALUE…]: serve \
another file, with settings as behind --export. export remove NAME [--force]: refuse new connections; with \
--force, end those that there are. export resize NAME SIZE: change the size of the image, such as 20g; new \
connections see it. Keys: weight=, leaf_weight=, 1…10000; class=rt|be|idle; rbps=, wbps= in bytes per \
second (such as 50m), riops=, wiops= in requests per second, or max for no limit; burst=, a time; \
min_iops=, requests per second; latency=, a time such as 5ms, or max for no target. See docs/control.md.";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The socket that `serve` or `mount` was given as --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// The time between two looks at the server, such as 5s. Each table or screen covers this time.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,
    /// Print this many tables and end. Default: a screen on a terminal; elsewhere tables until Ctrl-C.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Print tables, also on a terminal.
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EMULATE_LEGEND)]
pub(crate) struct EmulateArgs {
    /// The disk model: a preset (`fairhead list disks`) or a TOML file.
    #[arg(value_name = "PRESET|FILE")]
    pub(crate) disk: String,
    /// The file or block device that holds the data. Its size is the size of the disk; it must be faster than
    /// the disk model.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// An existing folder: the emulated disk is the file `disk` in it.
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) at: PathBuf,
    /// Run with all rights of the user. Without this option the command gives up what it does not need:
    /// system calls, files, capabilities. Needed where a system call that it makes is refused (it says so in
    /// one line), or below a debugger.
    #[arg(long)]
    pub(crate) no_confinement: bool,
}

/// Help below the options of `emulate`: how it ends.
const EMULATE_LEGEND: &str = "\
Ctrl-C, SIGTERM or `umount MOUNTPOINT` ends it; it then prints how late its answers were. It does not \
schedule: requests reach the disk model in the order of their arrival, so the program or kernel that uses \
it is what schedules. See docs/emulate.md.";

#[derive(Debug, Args)]
#[command(after_help = MOUNT_LEGEND)]
pub(crate) struct MountArgs {
    /// The folder whose files are shown.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,
    /// An existing folder: SOURCE appears here, with scheduled reads and writes.
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) at: PathBuf,
    /// The scheduler (`fairhead list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "bfq")]
    pub(crate) sched: String,
    /// Set a tunable of a scheduler, such as bfq.low_latency=0 (`fairhead show SCHED` lists them). May be
    /// repeated.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// Settings of the threads of a cgroup, as below, such as tenants/gold,weight=300. May be repeated.
    #[arg(long = "group", value_name = "PATH,KEY=VALUE…")]
    pub(crate) groups: Vec<String>,
    /// The most requests that are at the disk at a time. Default for hard disks: the length of the disk's own
    /// queue, at most 32 (1 if unknown). Default for others: 32, lowered to as few as 8 while requests take
    /// long.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) depth: Option<u16>,
    /// The longest that the disk may take for one request or fsync. Then clients get an error (ETIMEDOUT).
    /// What overlaps the request fails too, until the disk is done with it. Default: no limit.
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Answer as slowly as this disk, in real time: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) emulate: Option<String>,
    /// The way that requests take from the kernel: `uring` (FUSE over io_uring), `dev` (/dev/fuse), or
    /// `auto`, io_uring if the kernel has it and it is switched on. See docs/mount.md.
    #[arg(long, value_name = "auto|uring|dev", value_parser = ["auto", "uring", "dev"], default_value = "auto")]
    pub(crate) fuse_transport: String,
    /// Record every event and decision of the scheduler in this file, for `fairhead replay-live`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Run with all rights of the user. Without this option the command gives up what it does not need:
    /// system calls, files, capabilities. Needed where a system call that it makes is refused (it says so in
    /// one line), or below a debugger.
    #[arg(long)]
    pub(crate) no_confinement: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// Help below the options of `mount`: the settings of a group.
const MOUNT_LEGEND: &str = "\
Settings of a group: weight=1…10000 (default 100), class=rt|be|idle (default be); limits rbps=, wbps= in \
bytes per second (such as 50m), riops=, wiops= in requests per second; min_iops=, the guaranteed requests \
per second; latency=, the mean latency that it should have (such as 5ms), under a scheduler that keeps such \
targets. Ctrl-C, SIGTERM or `umount MOUNTPOINT` ends it. See docs/mount.md.";

#[derive(Debug, Args)]
pub(crate) struct ReplayLiveArgs {
    /// A recording, as written by `serve --record` or `mount --record`.
    #[arg(value_name = "FILE")]
    pub(crate) recording: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::super::{Cli, Command};
    use clap::Parser;

    #[test]
    fn every_argument_of_emulate() {
        let argv = ["fairhead", "emulate", "nas2020", "disk.img", "/mnt"];
        let Some(Command::Emulate(args)) = Cli::try_parse_from(argv).unwrap().command else {
            panic!("emulate")
        };
        assert_eq!((args.disk.as_str(), args.file, args.at), ("nas2020", "disk.img".into(), "/mnt".into()));
        assert!(!args.no_confinement, "confined unless told otherwise");
        assert!(refused(&["emulate", "nas2020", "disk.img"]).contains("<MOUNTPOINT>"));
    }

    #[test]
    fn every_flag_of_mount() {
        let parse = |argv: &[&str]| {
            let argv = [&["fairhead", "mount", "a", "b"], argv].concat();
            let Some(Command::Mount(args)) = Cli::try_parse_from(argv).unwrap().command else {
                panic!("mount")
            };
            args
        };
        let none = parse(&[]);
        assert_eq!((none.source, none.at, none.sched.as_str()), ("a".into(), "b".into(), "bfq"));
        assert_eq!((none.set.len(), none.groups.len(), none.depth, none.emulate), (0, 0, None, None));
        assert_eq!(parse(&["--sched", "cfq"]).sched, "cfq");
        assert_eq!(parse(&["--set", "bfq.low_latency=0"]).set, ["bfq.low_latency=0"]);
        assert_eq!(
            parse(&["--group", "a,weight=2", "--group", "b,class=rt"]).groups,
            ["a,weight=2", "b,class=rt"]
        );
        assert_eq!(parse(&["--depth", "2"]).depth, Some(2));
        assert_eq!(parse(&["--emulate", "nas2020"]).emulate.as_deref(), Some("nas2020"));
        assert!(refused(&["mount", "a", "b", "--depth", "0"]).contains("1..=1024"));
        let control = parse(&["--control", "c", "--metrics", "9100"]).control;
        assert_eq!((control.control, control.metrics.as_deref()), (Some("c".into()), Some("9100")));
    }

    #[test]
    fn every_argument_of_ctl_and_top() {
        let parse = |argv: &[&str]| Cli::try_parse_from([&["fairhead"], argv].concat()).unwrap().command;
        let Some(Command::Ctl(ctl)) = parse(&["ctl", "s", "set", "vm1", "weight=300"]) else { panic!("ctl") };
        assert_eq!(
            (ctl.socket, ctl.words),
            ("s".into(), ["set", "vm1", "weight=300"].map(str::to_owned).into())
        );
        let Some(Command::Top(top)) = parse(&["top", "s", "--interval", "2s", "--count", "3"]) else {
            panic!("top")
        };
        assert_eq!((top.socket, top.interval.as_str(), top.count), ("s".into(), "2s", Some(3)));
        let Some(Command::Top(top)) = parse(&["top", "s"]) else { panic!("top") };
        assert_eq!((top.interval.as_str(), top.count, top.plain), ("1s", None, false));
        let Some(Command::Top(top)) = parse(&["top", "s", "--plain"]) else { panic!("top") };
        assert!(top.plain);
        assert!(refused(&["ctl"]).contains("<SOCKET>"));
    }
}
