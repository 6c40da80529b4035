//! `fairhead mount`: a folder, scheduled.

use fairhead_live::{DiskOptions, Mount};
use std::path::PathBuf;

use crate::args::MountArgs;
use crate::control;
use crate::emulate;
use crate::error::CliError;
use crate::plan;
use crate::tunables::{self, Scheduler};

/// Shows the folder until it is taken away.
pub(crate) fn mount(args: &MountArgs) -> Result<(), CliError> {
    let preset = plan::choose_scheduler(&args.sched)?;
    let mut schedulers = [Scheduler { name: preset.name, config: (preset.config)() }];
    args.set.iter().try_for_each(|text| tunables::set(&mut schedulers, text))?;
    let control = control::options(&args.control, false)?;
    let mut options = DiskOptions::new::<PathBuf>([]).config(schedulers[0].config);
    if let Some(depth) = args.depth {
        options = options.depth(depth);
    }
    if let Some(disk) = &args.emulate {
        options = options.emulate(plan::choose_disk(disk)?.1);
    }
    let failed = |e: fairhead_live::Error| CliError::Failed(e.to_string());
    let mount = Mount::directory(options, &args.source, &args.at).map_err(failed)?;
    let _control = control::start(&control, mount.disk()).map_err(failed)?;
    let (source, at) = (args.source.display(), args.at.display());
    emulate::serve(&mount, &format!("{at} is {source}, scheduled by {}; Ctrl-C ends it", args.sched))
}
