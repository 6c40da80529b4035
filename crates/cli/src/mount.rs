//! `fairhead mount`: a folder, scheduled.

use fairhead_live::confine::{Confinement, Role};
use fairhead_live::control::{Change, ControlOptions};
use fairhead_live::{DiskOptions, Mount, Transport};
use std::path::PathBuf;

use crate::args::MountArgs;
use crate::confine;
use crate::control;
use crate::emulate;
use crate::error::CliError;
use crate::out;
use crate::plan;
use crate::schedulers::{choose_for_live, sets_idling};
use crate::share;
use fairhead_lab::tunables::{self, Scheduler};

/// Shows the folder until it is taken away.
pub(crate) fn mount(args: &MountArgs) -> Result<(), CliError> {
    fairhead_live::keep_heap_small();
    let mut schedulers = [Scheduler::from(choose_for_live(&args.sched)?)];
    args.set.iter().try_for_each(|text| tunables::set(&mut schedulers, text))?;
    let control = control::options(&args.control, false)?;
    let groups = groups(&args.groups)?;
    let mut options = DiskOptions::new::<PathBuf>([]).config(schedulers[0].config);
    if let Some(depth) = args.depth {
        options = options.depth(depth);
    }
    if sets_idling(&args.set) {
        options = options.idles_freely();
    }
    if let Some(text) = &args.timeout {
        options = options.timeout(plan::positive_time("--timeout", text)?);
    }
    if let Some(disk) = &args.emulate {
        options = emulate::disk(options, disk)?;
    }
    if let Some(path) = &args.record {
        options = options.record(path);
    }
    let transport = match args.fuse_transport.as_str() {
        "uring" => Transport::Uring,
        "dev" => Transport::Dev,
        _ => Transport::Auto,
    };
    options = options.transport(transport);
    let refused = |e: fairhead_live::Error| CliError::from(&e);
    if let Err(e) = Mount::raise_descriptor_limit() {
        out::note(&format!("cannot raise the limit of open files: {e}"));
    }
    confine::raise_size_limit();
    if let Some(path) = &control.socket {
        Mount::refuse_inside(&args.at, path, "a control socket").map_err(refused)?;
    }
    // Before the process is confined, so that a device can be measured.
    let about = options.clone().on([args.source.as_path()]).about();
    let confinement = confine::begin_mount(args.no_confinement, needs(&control))?;
    let mount = Mount::directory(options, &args.source, &args.at).map_err(refused)?;
    let _control = control::start(&control, mount.disk()).map_err(refused)?;
    for (path, change) in &groups {
        mount.disk().tell_group(path, *change).map_err(refused)?;
    }
    let is_over_uring = transport != Transport::Dev && Transport::missing().is_none();
    let way = if is_over_uring { "io_uring" } else { "/dev/fuse" };
    let (source, at) = (args.source.display(), args.at.display());
    let what = format!("{at} is {source}, scheduled by {}, over {way}, {about}; Ctrl-C ends it", args.sched);
    emulate::serve((&mount, &args.at), &what, confinement)
}

/// What the mount needs for its start, beside its folder.
fn needs(control: &ControlOptions) -> Confinement {
    let needs = Confinement::new(Role::Mount);
    match control.metrics {
        Some(address) => needs.listens(address),
        None => needs,
    }
}

/// Parses the groups: the path of each cgroup, and its settings.
fn groups(texts: &[String]) -> Result<Vec<(String, Change)>, CliError> {
    let mut groups: Vec<(String, Change)> = Vec::new();
    for text in texts {
        let misuse = |m: String| CliError::Misuse(format!("--group {text}: {m}"));
        let (path, keys) = text.split_once(',').unwrap_or((text, ""));
        let path = path.trim_matches('/');
        if path.is_empty() || keys.is_empty() {
            return Err(misuse("write PATH,KEY=VALUE, such as tenants/gold,weight=300".to_owned()));
        }
        if groups.iter().any(|(other, _)| other == path) {
            return Err(misuse(
                "this group is named twice; write all its settings in one --group".to_owned(),
            ));
        }
        let mut told = Change::default();
        for part in keys.split(',') {
            let (key, value) = share::split(part, &[]).map_err(misuse)?;
            told.set(key, share::needed(key, value).map_err(misuse)?).map_err(misuse)?;
        }
        groups.push((path.to_owned(), told));
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Vec<(String, Change)>, String> {
        let texts: Vec<String> = texts.iter().map(|&t| t.to_owned()).collect();
        groups(&texts).map_err(|e| e.to_string())
    }

    #[test]
    fn a_group_is_a_path_and_keys() {
        let told = parse(&["/a/b/,weight=300,class=rt,rbps=50m,min_iops=40", "c,weight=1"]).unwrap();
        let paths: Vec<&str> = told.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["a/b", "c"]);
        assert!(told.iter().all(|(_, change)| *change != Change::default()));
        assert_ne!(told[0].1, told[1].1);
    }

    #[test]
    fn mistakes_are_named() {
        for (texts, why) in [
            (&["a"][..], "--group a: write PATH,KEY=VALUE, such as tenants/gold,weight=300"),
            (&["/,weight=2"], "--group /,weight=2: write PATH,KEY=VALUE, such as tenants/gold,weight=300"),
            (&["a,wieght=2"], "--group a,wieght=2: unknown key 'wieght'; did you mean 'weight'?"),
            (
                &["a,readonly"],
                "--group a,readonly: unknown key 'readonly'; there are weight, leaf_weight, class, rbps, wbps, riops, wiops, burst, min_iops, latency",
            ),
            (&["a,weight"], "--group a,weight: weight has no value"),
            (&["a,weight=10001"], "--group a,weight=10001: weight=10001: 1 to 10000"),
            (
                &["a,weight=2", "/a,class=be"],
                "--group /a,class=be: this group is named twice; write all its settings in one --group",
            ),
        ] {
            assert_eq!(parse(texts).unwrap_err(), why);
        }
    }
}
