//! `fairhead emulate`: a slow disk, in real time.

use fairhead_live::{DiskOptions, Lateness, Mount};

use crate::args::EmulateArgs;
use crate::error::CliError;
use crate::out;
use crate::plan;

/// Shows the disk until it is taken away, and tells how well it kept time.
pub(crate) fn emulate(args: &EmulateArgs) -> Result<(), CliError> {
    let (name, params) = plan::choose_disk(&args.disk)?;
    let mount = Mount::emulate(params, &args.file, &args.at).map_err(|e| CliError::from(&e))?;
    serve(&mount, &format!("{} is a disk as slow as {name}; Ctrl-C ends it", args.at.join("disk").display()))
}

/// A disk of `serve` or `mount` that is as slow as the one of that name, and whose groups are guaranteed no more than a job file may promise.
pub(crate) fn disk(options: DiskOptions, name: &str) -> Result<DiskOptions, CliError> {
    let params = plan::choose_disk(name)?.1;
    let capacity = fairhead_sim::capacity(&params).map_err(|e| CliError::Misuse(e.to_string()))?;
    Ok(options.emulate(params).capacity(capacity))
}

/// Says what there is, waits until it is taken away, and tells how well time was kept, if it is emulated.
pub(crate) fn serve(mount: &Mount, what: &str) -> Result<(), CliError> {
    let unmounter = mount.unmounter();
    let end = move || {
        if let Err(e) = unmounter.unmount() {
            out::note(&format!("cannot unmount: {e}"));
        }
    };
    ctrlc::set_handler(end).map_err(|e| CliError::Failed(format!("cannot listen for Ctrl-C: {e}")))?;
    out::note(what);
    mount.wait();
    let failed = |e: fairhead_live::Error| CliError::Failed(e.to_string());
    let Some(lateness) = mount.lateness().map_err(failed)? else { return Ok(()) };
    out::print(&report(&lateness))?;
    if let Some(why) = lateness.verdict() {
        out::note(&format!("the figures of this run are not to be trusted: {why}"));
    }
    Ok(())
}

fn report(lateness: &Lateness) -> String {
    format!("{} ios; {lateness}\n", lateness.ios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_ios_is_told_too() {
        assert_eq!(report(&Lateness::default()), "0 ios; 0 moments, 99 % less than 0s late, at most 0s\n");
    }
}
