//! Running commands from the workspace's root.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The workspace's root directory.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_owned()
}

/// A command at the root, with nothing to read.
pub(crate) fn command(program: impl AsRef<OsStr>, args: &str) -> Command {
    let mut command = Command::new(program);
    command.args(args.split_whitespace()).current_dir(root()).stdin(Stdio::null());
    command
}

/// A cargo command; the same cargo that runs this.
pub(crate) fn cargo(args: &str) -> Command {
    let mut command = command(std::env::var("CARGO").unwrap_or_else(|_| "cargo".into()), args);
    // What cargo sets for this process is about this process.
    for (key, _) in
        std::env::vars().filter(|(key, _)| key.starts_with("CARGO_PKG_") || key == "CARGO_MANIFEST_DIR")
    {
        command.env_remove(key);
    }
    command
}

/// Whether there is a program: in the path, or, with arguments, one that runs with them.
pub(crate) fn exists(program: &str) -> bool {
    // Not all know `--version`: those of X do not.
    let Some((program, args)) = program.split_once(' ') else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        return std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    };
    command(program, &format!("{args} --version"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Calls a function for each item, as many at a time as there are processors. Returns what it gave, in the
/// order of the items, or the first error.
pub(crate) fn for_all<T: Sync, R: Send>(
    items: &[T],
    call: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some((i, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
        {
            done.push((i, call(item)?));
        }
        Ok::<_, String>(done)
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(some)).collect();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a thread panicked".to_owned())??);
        }
        Ok::<_, String>(())
    })?;
    all.sort_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// Runs a command to its end; its output if it succeeded, else what it said.
pub(crate) fn capture(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&said)))
}
