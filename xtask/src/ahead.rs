//! Builds of later steps, begun while tests wait.
//!
//! The integration tests keep the processors busy for about half of their time: the rest they wait for disks
//! in real time. Meanwhile [`start`] has cargo build what the steps behind them need, in the kernel's idle
//! class (`chrt --idle`, sched(7)), so that a test that wants a processor gets it at once. No build is
//! here of the profile that the tests have, so that none waits for cargo's lock.
//!
//! Nothing is judged here. The step that needs a build asks cargo for it again, and reports what fails.

use crate::shell::{cargo, exists};
use crate::steps::Outcome;
use crate::{fuzz, steps};
use std::process::{Command, Stdio};
use std::thread;

/// What later steps build beside the fuzz targets and loom's tests, in cargo's words.
const BUILDS: [&str; 6] = [
    "build --release --package fairhead",
    "build --release --package fairhead-core-ffi",
    "build --release --package fairhead-bench",
    "test --package fairhead-sim --test same_bytes --profile release --no-run",
    "test --package fairhead-sim --test same_bytes --profile dev --no-run",
    "doc --workspace --no-deps",
];

/// Starts the builds, one after another, in a thread that nothing waits for.
pub(crate) fn start() -> Result<Outcome, String> {
    if !exists("chrt") {
        return Ok(Outcome::Skipped("no chrt to build in the idle class".to_owned()));
    }
    let mut builds = vec![fuzz::build()?, fuzz::replay("--no-run"), steps::loom("--no-run")];
    builds.extend(BUILDS.map(cargo));
    let count = builds.len();
    thread::spawn(move || builds.iter().for_each(|build| drop(idle(build).status())));
    Ok(Outcome::Passed(format!("{count}, in the idle class")))
}

/// Puts the command into the idle class, without output.
fn idle(command: &Command) -> Command {
    let mut idle = Command::new("chrt");
    idle.args(["--idle", "0"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => idle.env(name, value),
            None => idle.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        idle.current_dir(folder);
    }
    idle.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    idle
}
