//! `fairhead emulate`: a slow disk, in real time.

use fairhead_live::confine::{Begun, Confinement, Role};
use fairhead_live::{DiskOptions, Lateness, Mount, Watch, Way};
use fairhead_sim::Host;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::args::EmulateArgs;
use crate::confine::{self, Unmounter};
use crate::error::CliError;
use crate::out;
use crate::plan;

/// The time between two looks at whether the end was asked for.
const STEP: Duration = Duration::from_millis(500);
/// The number of steps after that for which programs may use the files that they have open: 3 seconds.
const GRACE_STEPS: u32 = 6;
/// The longest time from Ctrl-C to the end of the process.
const END_MAX: Duration = Duration::from_millis(4500);

/// Shows the disk until it is taken away, and tells how well it kept time, how far away it is, and who waited
/// for a processor.
pub(crate) fn emulate(args: &EmulateArgs) -> Result<(), CliError> {
    let (name, params) = plan::choose_disk(&args.disk)?;
    confine::raise_size_limit();
    let confinement = confine::begin_mount(args.no_confinement, Confinement::new(Role::Emulate))?;
    let mount = Mount::emulate(params.clone(), &args.file, &args.at).map_err(|e| CliError::from(&e))?;
    let path = match mount.ways(&params) {
        Ok((near, far)) => path_lines(&near, &far),
        Err(e) => format!("path: not measured: {e}\n"),
    };
    let failed = |e: std::io::Error| {
        CliError::Failed(format!("cannot see how long threads wait for a processor: {e}"))
    };
    let (watch, missing) = Watch::begin(&mount.file()).map_err(failed)?;
    missing.iter().for_each(|line| out::note(line));
    let (disk, about) = (args.at.join("disk"), Mount::about_model(&params));
    let what = format!("{} is a disk as slow as {name}, {about}; Ctrl-C ends it", disk.display());
    let lateness = serve_until_end((&mount, &args.at), &what, confinement)?.unwrap_or_default();
    let waits = watch.end();
    waits.missing.difference(&missing).for_each(|line| out::note(line));
    out::print(&format!("{}{path}{}\n", report(&lateness), waits.told(&lateness)))?;
    judge([lateness.verdict(), waits.verdict(&lateness)]);
    Ok(())
}

/// A disk of `serve` or `mount` that is as slow as the one of that name, and whose groups are guaranteed no
/// more than a job file may promise.
pub(crate) fn disk(options: DiskOptions, name: &str) -> Result<DiskOptions, CliError> {
    let params = plan::choose_disk(name)?.1;
    let capacity = fairhead_sim::capacity(&params).map_err(|e| CliError::Misuse(e.to_string()))?;
    Ok(options.emulate(params).capacity(capacity))
}

/// Says what there is, waits until it is taken away, and tells how well time was kept, if it is emulated.
pub(crate) fn serve(mount: (&Mount, &Path), what: &str, confinement: Option<Begun>) -> Result<(), CliError> {
    let Some(lateness) = serve_until_end(mount, what, confinement)? else { return Ok(()) };
    out::print(&report(&lateness))?;
    judge([lateness.verdict(), None]);
    Ok(())
}

/// Says what there is, and waits until it is taken away. Returns how well time was kept, if it is emulated.
fn serve_until_end(
    (mount, at): (&Mount, &Path),
    what: &str,
    confinement: Option<Begun>,
) -> Result<Option<Lateness>, CliError> {
    let outside = if confinement.is_some() { Unmounter::start(at)? } else { None };
    let needs_outside = outside.is_some();
    let outside = Arc::new(Mutex::new(outside));
    let (unmounter, for_end) = (mount.unmounter(), Arc::clone(&outside));
    let is_ending = Arc::new(AtomicBool::new(false));
    let ending = Arc::clone(&is_ending);
    let end = move || {
        ending.store(true, Ordering::Release);
        // A thread of its own: to unmount may wait for another mount that does not answer.
        std::thread::spawn(|| {
            std::thread::sleep(END_MAX);
            out::note("ended by force: the engine or the unmount did not end in time");
            std::process::exit(1);
        });
        if needs_outside {
            drop(take(&for_end));
        } else if let Err(e) = unmounter.unmount() {
            out::note(&format!("cannot unmount: {e}"));
        }
    };
    ctrlc::set_handler(end).map_err(|e| CliError::Failed(format!("cannot listen for Ctrl-C: {e}")))?;
    confine::finish(confinement)?;
    out::note(what);
    wait(mount, &is_ending);
    take(&outside).into_iter().for_each(Unmounter::let_go);
    mount.lateness().map_err(|e| CliError::Failed(e.to_string()))
}

/// Waits until the mount has ended. Once the end was asked for, open files keep it for [`GRACE_STEPS`]
/// times [`STEP`] at most.
fn wait(mount: &Mount, is_ending: &AtomicBool) {
    let mut steps = 0;
    while !mount.wait_for(STEP) {
        steps += u32::from(is_ending.load(Ordering::Acquire));
        if steps == GRACE_STEPS {
            return out::note("programs still have files of the mount open; from now on they get errors");
        }
    }
}

fn take(outside: &Mutex<Option<Unmounter>>) -> Option<Unmounter> {
    outside.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn judge(verdicts: [Option<String>; 2]) {
    for why in verdicts.into_iter().flatten() {
        out::note(&format!("the figures of this run are not to be trusted: {why}"));
    }
}

fn report(lateness: &Lateness) -> String {
    format!("{} ios; {lateness}\n", lateness.ios)
}

/// How far away the disk is, for the lab: a line for each way.
fn path_lines(near: &io::Result<Way>, far: &io::Result<Way>) -> String {
    let line = |name: &str, way: &io::Result<Way>| match way {
        Ok(way) => format!("{name}: {} us both ways; --host {}\n", way.mean.as_us(), host(*way)),
        Err(e) => format!("{name}: not measured: {e}\n"),
    };
    line("path of a program that reads the file", near) + &line("path through a loop device", far)
}

/// A host that is as far away: the lab adds the path in each direction, the jitter on the way back, and the
/// interrupt, which the way has in it.
fn host(way: Way) -> String {
    let lab = Host::of_2020();
    let way_out = way.mean.saturating_sub(lab.irq + lab.irq_jitter).saturating_sub(way.jitter) / 2;
    let us = |d: fairhead_core::Duration| (d + fairhead_core::Duration::from_ns(500)).as_us();
    format!("2020,path={}us,path_jitter={}us", us(way_out), us(way.jitter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_ios_is_told_too() {
        assert_eq!(report(&Lateness::default()), "0 ios; 0 moments, 99 % less than 0s late, at most 0s\n");
        let told = fairhead_live::Waits::default().told(&Lateness::default());
        assert!(told.contains("answers were 0.0 us later in the mean, 0.00 %"), "{told}");
    }

    /// 76 us less 6 for the interrupt and 10 of jitter: 30 us each way.
    #[test]
    fn a_path_is_told_as_the_lab_takes_it() {
        let us = fairhead_core::Duration::from_us;
        let way = |mean, jitter| Way { mean: us(mean), jitter: us(jitter) };
        let text = path_lines(&Ok(way(76, 10)), &Err(io::Error::other("no loop devices")));
        assert_eq!(
            text,
            "path of a program that reads the file: 76 us both ways; --host 2020,path=30us,path_jitter=10us\n\
             path through a loop device: not measured: no loop devices\n"
        );
        assert_eq!(Host::parse(&host(way(76, 10)), "nas2020").unwrap().1.path, us(30));
        assert_eq!(host(way(3, 1)), "2020,path=0us,path_jitter=1us");
    }
}
