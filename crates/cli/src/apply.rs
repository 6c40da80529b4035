//! `fairhead apply`: shows what would change, asks, and has it done.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::process::{Command, Stdio};

use fairhead_machine::{ApplyError, Changed, Disk, Machine, Plan, Queue, QueueError, Tree, is_root, wanted};

use crate::args::ApplyArgs;
use crate::error::CliError;
use crate::out;

/// Writes or removes the rule of a disk, and changes its present settings.
pub(crate) fn apply(args: &ApplyArgs) -> Result<(), CliError> {
    let tree = Tree::new(&args.root);
    let machine = Machine::read(&tree);
    let disk = machine.find(&tree, &args.disk).map_err(CliError::Misuse)?;
    let plan = plan(args, &tree, &machine, disk).map_err(CliError::Misuse)?;
    if plan.is_nothing() {
        return out::print(&format!("{} is so already; nothing to do\n", disk.name));
    }
    out::print(&shown(args, &plan))?;
    if args.dry_run {
        return Ok(());
    }
    plan.check(&tree).map_err(|e| failed(&machine, &e))?;
    let is_live = args.root == Path::new("/");
    let queue = if is_live { Some(ready(&machine, &disk.name)?) } else { None };
    if !args.yes && !agreed()? {
        return Err(CliError::Failed("nothing was changed".to_owned()));
    }
    if is_live && let Some(scheduler) = plan.scheduler() {
        load_module(disk, scheduler)?;
    }
    let changed = plan.carry_out(&tree, queue.as_ref()).map_err(|e| failed(&machine, &e))?;
    for c in changed {
        out::note(&format!("{} is {}, not {}: the kernel prefers that", c.name, c.read, c.written));
    }
    if is_live {
        reload();
    }
    overruled(args, &tree, &disk.name, &plan);
    let undo =
        if args.undo { String::new() } else { format!("; fairhead apply {} --undo undoes it", disk.name) };
    out::print(&format!("done{undo}\n"))
}

fn plan(args: &ApplyArgs, tree: &Tree, machine: &Machine, disk: &Disk) -> Result<Plan, String> {
    if args.undo {
        return Plan::undo(tree, disk);
    }
    let sets = wanted(disk, &args.settings)?;
    Plan::apply(tree, machine, disk, sets)
}

/// The difference of the file, and of the present settings.
fn shown(args: &ApplyArgs, plan: &Plan) -> String {
    let mut text = format!("{}\n{}", plan.path(), plan.difference());
    if args.root == Path::new("/") {
        for (name, present, value) in plan.changes() {
            let from = if present.is_empty() { "" } else { &format!(", now {present}") };
            text.push_str(&format!("at once: {name} becomes {value}{from}\n"));
        }
    } else {
        text.push_str(&format!("nothing is set at once: {} is not this machine\n", args.root.display()));
    }
    text
}

/// The queue of the disk, locked, if its settings may be written.
pub(crate) fn ready(machine: &Machine, disk: &str) -> Result<Queue, CliError> {
    let queue = Queue::open(disk).map_err(|e| refused(machine, &e))?;
    queue.check().map_err(|e| refused(machine, &e))?;
    match queue.lock() {
        Ok(true) => Ok(queue),
        Ok(false) => Err(CliError::Failed(format!(
            "another fairhead try or apply is at work on {disk}; wait until it has ended"
        ))),
        Err(e) => Err(CliError::Failed(format!("cannot lock /sys/block/{disk}/queue: {e}"))),
    }
}

/// What is said of a value that the kernel made another one of.
pub(crate) fn not_taken(c: &Changed) -> String {
    let name = c.name.trim_start_matches("iosched/");
    format!("{name}={}: the kernel makes {} of it on this disk, so it is set as before", c.written, c.read)
}

/// The error with the way out.
pub(crate) fn refused(machine: &Machine, e: &QueueError) -> CliError {
    let hint = match &machine.container {
        _ if e.is_refused() && is_root() => "; this is root, so a security module forbids it".to_owned(),
        _ if e.is_refused() => "; only root may change a disk: use sudo".to_owned(),
        Some(kind) if e.is_read_only() => format!("; this is a container ({kind}): run this on its host"),
        _ if e.is_read_only() => "; /sys is mounted read-only here".to_owned(),
        _ => String::new(),
    };
    CliError::Failed(format!("{e}{hint}"))
}

fn failed(machine: &Machine, e: &ApplyError) -> CliError {
    match e {
        ApplyError::Queue(e) => refused(machine, e),
        ApplyError::Changed(changed) => CliError::Failed(not_taken(changed)),
        ApplyError::File(path, e) => {
            let hint = match e.kind() {
                io::ErrorKind::PermissionDenied if is_root() => {
                    "; this is root, so a security module forbids it"
                }
                io::ErrorKind::PermissionDenied => "; only root may write there: use sudo",
                io::ErrorKind::ReadOnlyFilesystem => {
                    "; it is on a read-only file system: set it where this system is configured"
                }
                _ => "",
            };
            CliError::Failed(format!("cannot write {path}: {e}{hint}"))
        }
    }
}

/// Asks on the terminal.
fn agreed() -> Result<bool, CliError> {
    if !io::stdin().is_terminal() {
        return Err(CliError::Misuse(
            "there is no terminal to ask on: --yes applies it without asking".to_owned(),
        ));
    }
    eprint!("Do this? [y/N] ");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(|e| CliError::Failed(format!("cannot ask: {e}")))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes" | "Yes"))
}

/// Loads the scheduler, if the disk does not offer it yet.
pub(crate) fn load_module(disk: &Disk, scheduler: &str) -> Result<(), CliError> {
    if disk.offered.iter().any(|s| s == scheduler) {
        return Ok(());
    }
    let loaded =
        Command::new("modprobe").args(["-q", &format!("{scheduler}-iosched")]).stderr(Stdio::null()).status();
    match loaded {
        Ok(status) if status.success() => Ok(()),
        _ => Err(CliError::Failed(format!(
            "this kernel has no scheduler {scheduler} for {}: it offers {}, \
             and there is no module {scheduler}-iosched",
            disk.name,
            disk.offered.join(", ")
        ))),
    }
}

/// Tells udev, if it runs.
fn reload() {
    if !Path::new("/run/udev/control").exists() {
        return out::note("udev does not run here: the rule is for the next start");
    }
    let done = Command::new("udevadm").args(["control", "--reload"]).status();
    if !done.is_ok_and(|s| s.success()) {
        out::note("udev was not told: udevadm control --reload failed; it reads the rule at the next start");
    }
}

/// Says who overrules the rule that was written.
fn overruled(args: &ApplyArgs, tree: &Tree, disk: &str, plan: &Plan) {
    if args.undo {
        return;
    }
    let machine = Machine::read(tree);
    let Some(disk) = machine.disk(disk) else { return };
    for name in plan.names() {
        if let Some((rule, value)) = machine.rule_for(disk, name).filter(|(r, _)| r.file != plan.path()) {
            let place = format!("{}:{}", rule.file, rule.line);
            out::note(&format!("{place} comes later and sets {name} to {value}: remove it, or it wins"));
        }
    }
    if let Some(other) = machine.other_setter(disk) {
        out::note(&format!(
            "{other} sets the scheduler of {}, too, at each start: switch that off",
            disk.name
        ));
    }
}
