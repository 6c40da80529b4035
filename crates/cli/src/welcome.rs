//! `fairhead` without a command: what a scheduler decides, in one picture, and where to go next.
//!
//! It does what `fairhead run --sched …` does with the built-in load, under the schedulers that differ most,
//! and draws how long the application takes to start under each.

use crate::args::RunArgs;
use crate::error::CliError;
use crate::out;
use crate::output::welcome::{Bar, render};
use crate::plan;
use crate::run;

/// In the order of their years. Those that start the application equally fast share a bar.
const SCHEDULERS: &str = "none,deadline,mq-deadline,kyber,as,cfq-ts1,cfq,bfq-v0,bfq";

/// The job whose time is drawn.
const JOB: &str = "application";

/// Prints the picture, or the table of all schedulers if `all`.
pub(crate) fn welcome(all: bool) -> Result<(), CliError> {
    if all {
        return run::run(&RunArgs::of(&[]));
    }
    let args = RunArgs::of(&["--sched", SCHEDULERS]);
    let plan = plan::of(&args)?;
    let mut bars: Vec<Bar> = Vec::new();
    for outcome in run::outcomes(&plan, args.threads.count())? {
        let client = outcome.clients.iter().find(|c| c.name == JOB);
        let took =
            client.map(|c| c.elapsed).ok_or_else(|| CliError::Failed(format!("there is no job {JOB}")))?;
        match bars.iter_mut().find(|b| b.took == took) {
            Some(bar) => bar.names.push(outcome.scheduler),
            None => bars.push(Bar { names: vec![outcome.scheduler], took }),
        }
    }
    out::print(&render(&bars, &out::look()))
}
