//! Live: servers and mounts, and those who ask or control them.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = SERVE_LEGEND)]
pub(crate) struct ServeArgs {
    /// A file or block device, and what clients call it. May be repeated: all are on one disk and share it.
    #[arg(long = "export", value_name = "NAME=FILE[,KEY=VALUE…]", required = true)]
    pub(crate) exports: Vec<String>,
    /// Listen on a unix socket, which only its owner can open. May be repeated.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Vec<PathBuf>,
    /// Listen on TCP: a port of this machine, or ADDRESS:PORT. May be repeated.
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) listen: Vec<String>,
    /// Let other machines connect, though nothing is encrypted and nobody is asked for a password.
    #[arg(long)]
    pub(crate) insecure_remote: bool,
    /// The scheduler (`fairhead list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "bfq")]
    pub(crate) sched: String,
    /// Set a tunable, such as slice_idle=4ms. May be repeated.
    #[arg(long = "set", value_name = "TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// How many requests the disk has at a time. Default: what the disk's own queue takes, up to 32 (1 if that is unknown); for a disk without a head 32, and down to 8 while it takes long for them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) depth: Option<u16>,
    /// Be as slow as this disk, in real time: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) emulate: Option<String>,
    /// Go through the page cache instead of around it: then any offset and length will do, and the disk is not seen.
    #[arg(long)]
    pub(crate) cached: bool,
    /// How many threads may copy large data beside the scheduler's own, which serves all exports. Default: four for each processor. With 0, that one thread copies everything.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub(crate) threads: Option<u16>,
    /// How many connections there may be.
    #[arg(long, value_name = "N", default_value = "256", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) connections: u16,
    /// Record what the scheduler is told and decides, for `fairhead replay-live`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Serve only while this shell command runs; $uri and $socket tell it where, $control where it can be controlled.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// What an export can be told.
const SERVE_LEGEND: &str = "\
Keys of an export: weight=1…10000, class=rt|be|idle, rbps=, wbps= (such as 50m), riops=, wiops= (a number): the most it gets; min_iops= the \
requests a second it gets at least; leaf_weight= and burst= as in docs/control.md; group=PATH, if not a group of its own name; readonly; description=TEXT. Ctrl-C or SIGTERM end it: what \
is under way is finished, and a table tells what each export did.";

/// Of all that run until they are told to end.
#[derive(Debug, Default, Args)]
pub(crate) struct ControlArgs {
    /// Listen on a unix socket, which only its owner can open, for `fairhead ctl` and `fairhead top`.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Tell Prometheus, over HTTP: a port of this machine, or ADDRESS:PORT.
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) metrics: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = CTL_LEGEND)]
pub(crate) struct CtlArgs {
    /// The socket of --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// What to do. Default: stats.
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
}

/// What can be said.
const CTL_LEGEND: &str = "\
stats: everything there is to know, as JSON; metrics: the same as Prometheus reads it; make GROUP [KEY=VALUE…], set GROUP KEY=VALUE…, \
remove GROUP; sched NAME [TUNABLE=VALUE…]: another scheduler; tune TUNABLE=VALUE…: other tunables; \
depth N|auto: the most requests at the disk. Keys: weight=, leaf_weight= 1…10000, \
class=rt|be|idle, rbps=, wbps= (such as 50m), riops=, wiops= (a number), or max for no limit, burst= (a time), min_iops=. docs/control.md.";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The socket of --control.
    #[arg(value_name = "SOCKET")]
    pub(crate) socket: PathBuf,
    /// How long to look each time.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: String,
    /// End after that many tables.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = EMULATE_LEGEND)]
pub(crate) struct EmulateArgs {
    /// The disk: a preset (`fairhead list disks`) or a TOML file.
    #[arg(value_name = "PRESET|FILE")]
    pub(crate) disk: String,
    /// What is on it: a file, whose size is the disk's, or a block device. It has to be faster than the disk that it plays.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A folder, in which it is shown as `disk`.
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) at: PathBuf,
}

/// How it ends.
const EMULATE_LEGEND: &str = "\
It ends by Ctrl-C, SIGTERM or `umount MOUNTPOINT`, and tells then how late it was. Requests reach the disk in the order in which they
come, so that whoever uses it schedules: docs/emulate.md.";

#[derive(Debug, Args)]
#[command(after_help = MOUNT_LEGEND)]
pub(crate) struct MountArgs {
    /// The folder whose files are read and written.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: PathBuf,
    /// The folder where it is shown.
    #[arg(value_name = "MOUNTPOINT")]
    pub(crate) at: PathBuf,
    /// The scheduler (`fairhead list schedulers`).
    #[arg(long, value_name = "NAME", default_value = "bfq")]
    pub(crate) sched: String,
    /// Set a tunable, such as bfq.low_latency=0. May be repeated.
    #[arg(long = "set", value_name = "SCHED.TUNABLE=VALUE")]
    pub(crate) set: Vec<String>,
    /// What the threads of a cgroup get, such as tenants/gold,weight=300. May be repeated.
    #[arg(long = "group", value_name = "PATH,KEY=VALUE…")]
    pub(crate) groups: Vec<String>,
    /// How many requests the disk has at a time. Default: what the disk's own queue takes, up to 32 (1 if that is unknown); for a disk without a head 32, and down to 8 while it takes long for them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) depth: Option<u16>,
    /// As slow as this disk, in real time: a preset (`fairhead list disks`) or a TOML file.
    #[arg(long, value_name = "PRESET|FILE")]
    pub(crate) emulate: Option<String>,
    /// Record what the scheduler is told and decides, for `fairhead replay-live`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// What a group can be told.
const MOUNT_LEGEND: &str = "\
Keys of a group: weight=1…10000, class=rt|be|idle, rbps=, wbps= (such as 50m), riops=, wiops= (a number): the most it gets; min_iops= the \
requests a second it gets at least. It ends by Ctrl-C, SIGTERM or `umount MOUNTPOINT`; docs/mount.md.";

#[derive(Debug, Args)]
pub(crate) struct ReplayLiveArgs {
    /// The recording.
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
        assert_eq!((top.interval.as_str(), top.count), ("1s", None));
        assert!(refused(&["ctl"]).contains("<SOCKET>"));
    }
}
