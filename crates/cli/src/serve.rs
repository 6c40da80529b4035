//! `fairhead serve`: files as block devices over NBD and as disks of virtual machines, each with its share of
//! the disk.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use fairhead_live::confine::{Confinement, Role};
use fairhead_live::control::{Change, ControlOptions};
use fairhead_live::nbd::{EXPORT_KEYS, Export, ExportStats, Listen, Options, Server, TlsMode, TlsOptions};
use fairhead_live::vhost::{Device, QUEUES_MAX};
use fairhead_live::{DiskOptions, Error, ErrorKind};

use crate::args::{ServeArgs, TlsArg};
use crate::confine;
use crate::control::{self, address};
use crate::emulate;
use crate::error::CliError;
use crate::files::{self, Outputs};
use crate::out;
use crate::plan::positive_time;
use crate::schedulers::choose_for_live;
use crate::share;
use fairhead_lab::tunables::{self, Scheduler};

/// The channel that ends a server.
static END: OnceLock<Sender<Ended>> = OnceLock::new();

/// Why a server ends.
enum Ended {
    Told,
    /// The command of `--run` has ended, with this result.
    Run(Result<(), String>),
}

/// Tells a server to end. Returns whether there is one.
pub(crate) fn end() -> bool {
    END.get().is_some_and(|server| server.send(Ended::Told).is_ok())
}

/// Serves until a signal ends it, or until the command of `--run` ends.
pub(crate) fn serve(args: &ServeArgs) -> Result<(), CliError> {
    let exports = args.exports.iter().map(|text| Wanted::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let devices =
        args.vhost_user.iter().map(|text| WantedDevice::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let groups = || {
        let of_exports = exports.iter().map(|w| (w.export.group.as_str(), w.change));
        of_exports.chain(devices.iter().map(|w| (w.device.group.as_str(), w.change)))
    };
    check_groups(&groups().collect::<Vec<_>>())?;
    let listen = places(args)?;
    let tls = tls(args)?;
    let mut control = control::options(&args.control, args.insecure_remote)?;
    let disk = disk(args)?;
    let images = exports.iter().map(|w| &w.export.file).chain(devices.iter().map(|w| &w.device.file));
    // Before the process is confined, so that a device can be measured.
    let about = disk.clone().on(images.map(PathBuf::as_path)).about();
    exports.iter().for_each(|w| files::will_read(&w.export.file));
    devices.iter().for_each(|w| files::will_read(&w.device.file));
    Outputs::default().file("--record", args.record.as_deref()).check()?;
    // Started before the process is confined, so that its command is not.
    let launcher = args.run.as_deref().map(Launcher::start);
    confine::raise_size_limit();
    let confinement =
        confine::begin(args.no_confinement, needs(args, &exports, &devices, &listen, &control))?;
    crate::end_quietly_on_ctrl_c();
    let options = Options {
        connections_max: usize::from(args.connections),
        connections_per_peer: args.connections_per_peer.map(usize::from),
        trust_network: args.insecure_remote,
        force_share: args.force_share,
        tls,
    };
    let files: Vec<Export> = exports.iter().map(|w| w.export.clone()).collect();
    let (ended, end) = mpsc::channel();
    let guests: Vec<Device> = devices.iter().map(|w| w.device.clone()).collect();
    let server =
        Server::start_with_devices(disk, &files, &listen, &guests, options).map_err(|e| refused(&e))?;
    for (group, change) in groups() {
        server.disk().tell_group(group, change).map_err(|e| refused(&e))?;
    }
    control.exports = Some(server.exports());
    let control = control::start(&control, server.disk()).map_err(|e| refused(&e))?;
    // Signals reach only the first server of a process; there is only one.
    let _ = END.set(ended.clone());
    out::note(&about);
    server.addresses().iter().for_each(|place| out::note(&format!("listening on {}", shown(place))));
    let waiting =
        |w: &WantedDevice| format!("listening on {} for a virtual machine", w.device.socket.display());
    devices.iter().for_each(|w| out::note(&waiting(w)));
    if let Some(launcher) = launcher {
        let place = server.addresses().first().cloned();
        let place = place.unwrap_or_else(|| Listen::Unix(devices[0].device.socket.clone()));
        launcher.run(&uri(&place, args), &place, args.control.control.as_deref(), ended)?;
    }
    confine::finish(confinement)?;
    let result = wait(&end, &server);
    drop(control);
    let lateness = args.emulate.as_ref().and_then(|_| server.disk().lateness().ok().flatten());
    let mut text = table(&server.stop());
    if let Some(late) = lateness {
        let _ = writeln!(text, "\nemulated disk: {late}");
        let verdict = late.verdict().map_or("these figures can be trusted".to_owned(), |why| {
            format!("these figures are NOT to be trusted: {why}")
        });
        let _ = writeln!(text, "{verdict}");
    }
    out::print(&text)?;
    result
}

fn refused(e: &Error) -> CliError {
    let hint = if e.to_string().contains("nothing is encrypted") {
        "; --tls require encrypts it, --insecure-remote allows it"
    } else if e.to_string().contains("can be reached from other machines") {
        "; --insecure-remote allows it"
    } else if e.kind() == ErrorKind::Locked {
        "; --force-share serves it all the same"
    } else {
        ""
    };
    match CliError::from(e) {
        CliError::Failed(message) => CliError::Failed(message + hint),
        misuse => misuse,
    }
}

/// Waits until a signal, the command of `--run` or an error ends the server.
fn wait(end: &Receiver<Ended>, server: &Server) -> Result<(), CliError> {
    loop {
        match end.recv_timeout(Duration::from_secs(1)) {
            Ok(Ended::Run(Err(why))) => return Err(CliError::Failed(why)),
            Ok(Ended::Told | Ended::Run(Ok(()))) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                // To ask the engine would take as long as the disk keeps it.
                if !server.disk().is_running() {
                    return Err(CliError::Failed("the engine has stopped".to_owned()));
                }
            }
        }
    }
}

/// The scheduled disk, without its files.
fn disk(args: &ServeArgs) -> Result<DiskOptions, CliError> {
    let mut disk = DiskOptions::new::<&str>([]).config(scheduler(args)?).direct(!args.cached);
    if let Some(depth) = args.depth {
        disk = disk.depth(depth);
    }
    if crate::schedulers::sets_idling(&args.set) {
        disk = disk.idles_freely();
    }
    if let Some(threads) = args.threads {
        disk = disk.threads(threads.into());
    }
    if let Some(text) = &args.timeout {
        disk = disk.timeout(positive_time("--timeout", text)?);
    }
    if let Some(path) = &args.record {
        disk = disk.record(path);
    }
    match &args.emulate {
        Some(name) => emulate::disk(disk, name),
        None => Ok(disk),
    }
}

/// What the server needs for its start, from its arguments.
fn needs(
    args: &ServeArgs,
    exports: &[Wanted],
    devices: &[WantedDevice],
    listen: &[Listen],
    control: &ControlOptions,
) -> Confinement {
    let mut needs = Confinement::new(Role::Serve);
    for Wanted { export, .. } in exports {
        needs = needs.file(&export.file, export.read_only);
    }
    for WantedDevice { device, .. } in devices {
        needs = needs.file(&device.file, device.read_only).socket(&device.socket);
    }
    if let Some(folder) = &args.export_dir {
        needs = needs.opens_in(folder);
    }
    if let Some(folder) = &args.tls_certificates {
        needs = needs.file(folder, true);
    }
    for place in listen {
        needs = match place {
            Listen::Unix(path) => needs.socket(path),
            Listen::Tcp(address) => needs.listens(*address),
            Listen::Vsock(_) | Listen::Descriptor(_) => needs,
        };
    }
    if let Some(path) = &control.socket {
        needs = needs.socket(path);
    }
    if let Some(address) = control.metrics {
        needs = needs.listens(address);
    }
    match &args.record {
        Some(path) => needs.creates(path),
        None => needs,
    }
}

/// A thread that runs a command.
struct Launcher {
    command: String,
    /// The command, and where its end is reported.
    order: Sender<(Command, Sender<Ended>)>,
    /// Whether it could be started.
    started: Receiver<std::io::Result<()>>,
}

impl Launcher {
    /// Starts the thread, which waits for [`Self::run`].
    fn start(command: &str) -> Self {
        let (order, orders) = mpsc::channel::<(Command, Sender<Ended>)>();
        let (start, started) = mpsc::channel();
        let name = command.to_owned();
        std::thread::spawn(move || {
            let Ok((mut command, ended)) = orders.recv() else { return };
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(e) => return drop(start.send(Err(e))),
            };
            let _ = start.send(Ok(()));
            let result = match child.wait() {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("'{name}' ended with {status}")),
                Err(e) => Err(format!("'{name}': {e}")),
            };
            let _ = ended.send(Ended::Run(result));
        });
        Self { command: command.to_owned(), order, started }
    }

    /// Runs the command, and tells when it has ended.
    fn run(
        self,
        uri: &str,
        place: &Listen,
        control: Option<&Path>,
        ended: Sender<Ended>,
    ) -> Result<(), CliError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", &self.command]).env("uri", uri);
        if let Listen::Unix(path) = place {
            shell.env("socket", path);
        }
        if let Some(path) = control {
            shell.env("control", path);
        }
        let _ = self.order.send((shell, ended));
        let started = self.started.recv().map_err(std::io::Error::other).flatten();
        started.map_err(|e| CliError::Failed(format!("cannot run '{}': {e}", self.command)))
    }
}

/// Where clients find it: the default export. Those that have to use TLS need the authority's certificate.
fn uri(place: &Listen, args: &ServeArgs) -> String {
    let folder = args.tls_certificates.as_ref().filter(|_| args.tls == TlsArg::Require);
    let folder = folder.map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.clone()));
    let (s, more) = match &folder {
        Some(folder) => ("s", format!("tls-certificates={}", folder.display())),
        None => ("", String::new()),
    };
    let behind = |sign: &str| if more.is_empty() { String::new() } else { format!("{sign}{more}") };
    match place {
        Listen::Unix(path) => format!("nbd{s}+unix:///?socket={}{}", path.display(), behind("&")),
        // As a guest sees it: the host's number is 2.
        Listen::Vsock(port) => format!("nbd{s}+vsock://2:{port}/{}", behind("?")),
        Listen::Tcp(address) => format!("nbd{s}://{address}{}", behind("/?")),
        // A socket without a name is reached by the processes that have it open.
        Listen::Descriptor(_) => String::new(),
    }
}

fn shown(place: &Listen) -> String {
    match place {
        Listen::Unix(path) => path.display().to_string(),
        Listen::Tcp(address) => address.to_string(),
        Listen::Vsock(port) => format!("vsock port {port}"),
        Listen::Descriptor(number) => format!("descriptor {number}"),
    }
}

fn scheduler(args: &ServeArgs) -> Result<fairhead_core::sched::any::AnyConfig, CliError> {
    let mut chosen = [Scheduler::from(choose_for_live(&args.sched)?)];
    for text in &args.set {
        // There is only one that it can be about.
        let has_name = text.split('=').next().is_some_and(|path| path.contains('.'));
        let text = if has_name { text.clone() } else { format!("{}.{text}", chosen[0].name) };
        tunables::set(&mut chosen, &text)?;
    }
    Ok(chosen[0].config)
}

/// What the options about TLS say together.
fn tls(args: &ServeArgs) -> Result<TlsOptions, CliError> {
    let misuse = |why: &str| Err(CliError::Misuse(why.to_owned()));
    if args.tls_psk.is_some() {
        return misuse(
            "--tls-psk: pre-shared keys are not offered, since the TLS library has none; use --tls-certificates, \
             or a Unix socket with allow_uid",
        );
    }
    let mode = match args.tls {
        TlsArg::Off => TlsMode::Off,
        TlsArg::On => TlsMode::On,
        TlsArg::Require => TlsMode::Require,
    };
    match &args.tls_certificates {
        None if mode != TlsMode::Off => {
            misuse("--tls: which certificates? --tls-certificates DIR has server-cert.pem and server-key.pem")
        }
        Some(_) if mode == TlsMode::Off => {
            misuse("--tls-certificates: TLS is off; write --tls on or --tls require")
        }
        None if args.tls_verify_peer => misuse("--tls-verify-peer: TLS is off; write --tls require"),
        folder => Ok(TlsOptions {
            mode,
            certificates: folder.clone().unwrap_or_default(),
            verify_peer: args.tls_verify_peer,
        }),
    }
}

fn places(args: &ServeArgs) -> Result<Vec<Listen>, CliError> {
    let mut places: Vec<Listen> = args.socket.iter().cloned().map(Listen::Unix).collect();
    for text in &args.listen {
        places.push(Listen::Tcp(address("--listen", text)?));
    }
    places.extend(args.vsock.iter().map(|&port| Listen::Vsock(port)));
    places.extend(Listen::inherited());
    if places.is_empty() && !args.exports.is_empty() {
        return Err(CliError::Misuse(
            "no address to listen on; write --socket PATH or --listen PORT".to_owned(),
        ));
    }
    Ok(places)
}

/// An export, and the settings of its group.
#[derive(Debug)]
struct Wanted {
    export: Export,
    change: Change,
}

impl Wanted {
    fn parse(text: &str) -> Result<Self, CliError> {
        let misuse = |m: String| CliError::Misuse(format!("--export {text}: {m}"));
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let Some((name, file)) = first.split_once('=').filter(|(_, file)| !file.is_empty()) else {
            return Err(misuse("write NAME=FILE, such as vm1=/srv/vm1.img".to_owned()));
        };
        let mut wanted = Self { export: Export::new(name, file), change: Change::default() };
        for part in parts {
            let (key, value) = share::split(part, &EXPORT_KEYS).map_err(misuse)?;
            wanted.set(key, value).map_err(misuse)?;
        }
        Ok(wanted)
    }

    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        if EXPORT_KEYS.contains(&key) {
            return self.export.set(key, value);
        }
        self.change.set(key, share::needed(key, value)?)
    }
}

/// A vhost-user device, and the settings of its group.
#[derive(Debug)]
struct WantedDevice {
    device: Device,
    change: Change,
}

/// The settings of a device other than those of its group.
const DEVICE_KEYS: [&str; 7] = ["allow_gid", "allow_uid", "group", "name", "queues", "readonly", "serial"];

impl WantedDevice {
    fn parse(text: &str) -> Result<Self, CliError> {
        let misuse = |m: String| CliError::Misuse(format!("--vhost-user {text}: {m}"));
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let places = first.split_once('=').filter(|(socket, file)| !socket.is_empty() && !file.is_empty());
        let Some((socket, file)) = places else {
            return Err(misuse("write PATH=FILE, such as /run/vm1.sock=/srv/vm1.img".to_owned()));
        };
        let parts: Vec<(&str, Option<&str>)> =
            parts.map(|part| share::split(part, &DEVICE_KEYS)).collect::<Result<_, _>>().map_err(misuse)?;
        let usual = Path::new(socket).file_name().map_or(socket, |name| name.to_str().unwrap_or(socket));
        let name =
            parts.iter().find(|(key, _)| *key == "name").map(|(key, value)| share::needed(key, *value));
        let name = name.transpose().map_err(misuse)?.unwrap_or(usual.trim_end_matches(".sock"));
        let mut wanted = Self { device: Device::new(name, socket, file), change: Change::default() };
        parts.into_iter().try_for_each(|(key, value)| wanted.set(key, value)).map_err(misuse)?;
        Ok(wanted)
    }

    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        if key == "readonly" {
            self.device.read_only = true;
            return value.map_or(Ok(()), |v| Err(format!("readonly={v}: it has no value")));
        }
        let value = share::needed(key, value)?;
        match key {
            // It has been used.
            "name" => {}
            "group" => value.clone_into(&mut self.device.group),
            "serial" => value.clone_into(&mut self.device.serial),
            "allow_uid" => self.device.allow_uids.push(number(key, value)?),
            "allow_gid" => self.device.allow_gids.push(number(key, value)?),
            "queues" => {
                let queues = value.parse().ok().filter(|n| (1..=QUEUES_MAX).contains(n));
                self.device.queues = queues.ok_or_else(|| format!("queues={value}: 1 to {QUEUES_MAX}"))?;
            }
            _ => self.change.set(key, value)?,
        }
        Ok(())
    }
}

fn number(key: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{key}={value}: not a number, such as {key}=1000"))
}

/// What is said of a group is said once.
fn check_groups(groups: &[(&str, Change)]) -> Result<(), CliError> {
    let is_set = |(_, change): &&(&str, Change)| *change != Change::default();
    for (i, (group, _)) in groups.iter().enumerate().filter(|(_, g)| is_set(g)) {
        if groups[..i].iter().filter(is_set).any(|(other, _)| other == group) {
            return Err(CliError::Misuse(format!(
                "group {group}: two exports have settings for it; write them at one export"
            )));
        }
    }
    Ok(())
}

/// What each export did.
fn table(stats: &[(String, ExportStats)]) -> String {
    let width = stats.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(6);
    let mut text = format!(
        "{:<width$} {:>7} {:>10} {:>10} {:>9} {:>10} {:>10} {:>9} {:>8} {:>6}\n",
        "export", "clients", "reads", "MiB", "mean", "writes", "MiB", "mean", "flushes", "errors"
    );
    for (name, s) in stats {
        let _ = writeln!(
            text,
            "{name:<width$} {:>7} {:>10} {:>10.1} {:>9} {:>10} {:>10.1} {:>9} {:>8} {:>6}",
            s.connections,
            s.reads,
            s.read_bytes as f64 / f64::from(1 << 20),
            mean(s.read_ns, s.reads),
            s.writes,
            s.write_bytes as f64 / f64::from(1 << 20),
            mean(s.write_ns, s.writes),
            s.flushes,
            s.errors,
        );
    }
    text
}

fn mean(ns: u64, count: u64) -> String {
    match ns.checked_div(count) {
        None => "-".to_owned(),
        Some(ns) if ns < 10_000_000 => format!("{} us", ns / 1000),
        Some(ns) => format!("{} ms", ns / 1_000_000),
    }
}
