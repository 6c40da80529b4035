//! What a question means: nothing is left to look up.

use fairhead_core::Duration;
use fairhead_core::sched::any::{PRESETS, Preset, preset};
use fairhead_core::sched::catalogue::Named;
use fairhead_device::{DeviceParams, preset_names};
use fairhead_report::words::time;
use fairhead_sim::job::{JobFile, nearest, time_value};
use fairhead_sim::why::{self, When, Window};
use fairhead_sim::{Host, Outcome, Scenario, groups_kept};

use crate::Error;
use crate::tunables::Scheduler;

/// A run, with nothing left to look up.
#[derive(Debug)]
pub struct Plan {
    /// What is done.
    pub jobs: JobFile,
    /// To which disk, and its name; that of all disks if there are several. The model is for those of which
    /// the jobs do not say it.
    pub disk: (String, DeviceParams),
    /// What `--disk` names.
    pub of_run: String,
    /// In which machine, and its name.
    pub host: (String, Host),
    /// Under which schedulers, in this order.
    pub schedulers: Vec<Scheduler>,
    /// What all chance follows from.
    pub seed: u64,
    /// The length of the intervals of the series, if one is wanted.
    pub interval: Option<Duration>,
    /// How often the disk time of control groups is reported; `None`: not at all.
    pub watch: Option<Duration>,
    /// The clients whose time is to be explained, if there are any.
    pub why: Option<Why>,
}

impl Plan {
    /// The scenario of one of the plan's schedulers.
    #[must_use]
    pub fn scenario(&self, scheduler: &Scheduler) -> Scenario {
        Scenario {
            jobs: self.jobs.clone(),
            disk: self.disk.1.clone(),
            host: self.host.1.clone(),
            scheduler: scheduler.name.to_owned(),
            config: scheduler.config,
            seed: self.seed,
            interval: self.interval,
            time_max: None,
            watch: self.watch,
        }
    }

    /// Whether a run is as long as one interval of `watch`.
    ///
    /// # Errors
    /// If it is not: there would be nothing to see.
    pub fn watch_is_short_enough(&self, outcomes: &[Outcome]) -> Result<(), Error> {
        let longest = outcomes.iter().map(|o| o.elapsed).max().unwrap_or_default();
        match self.watch {
            Some(period) if period > longest => Err(Error::Misuse(format!(
                "--watch={} is longer than the run, which ended after {}",
                time(period),
                time(longest)
            ))),
            _ => Ok(()),
        }
    }
}

/// The clients whose time is to be explained, and the part of the run that is to be explained apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// What they were called.
    pub name: String,
    /// Which clients they are.
    pub clients: Vec<usize>,
    /// Which part.
    pub when: When,
}

/// The clients of `NAME`, or of `NAME@FROM-TO` in a part of the run.
///
/// # Errors
/// If no client is called so, or the part is not one.
pub fn choose_clients(jobs: &JobFile, text: &str) -> Result<Why, Error> {
    let clients = |name: &str| why::select(jobs, name).map_err(Error::Misuse);
    // A job may be called so.
    let Some((name, part)) = text.rsplit_once('@').filter(|_| why::select(jobs, text).is_err()) else {
        return Ok(Why { name: text.to_owned(), clients: clients(text)?, when: When::Worst });
    };
    let misuse = |message: &str| Error::Misuse(format!("--why={text}: {message}, such as {name}@3s-4s"));
    let Some((from, to)) = part.split_once('-') else {
        return Err(misuse("write a part of the run as FROM-TO"));
    };
    let time = |t: &str| time_value("--why", t).map_err(|e| misuse(&format!("{e}; write two times")));
    let (from, to) = (time(from)?, time(to)?);
    if from >= to {
        return Err(misuse("the part ends before it begins; write the earlier time first"));
    }
    let when = When::Within(Window { from, to });
    Ok(Why { name: name.to_owned(), clients: clients(name)?, when })
}

/// A time above zero, as the option `flag` has it.
///
/// # Errors
/// If it is none.
pub fn positive_time(flag: &str, text: &str) -> Result<Duration, Error> {
    match time_value(flag, text).map_err(Error::Misuse)? {
        Duration::ZERO => {
            Err(Error::Misuse(format!("'{flag}={text}' is zero; write a time such as {flag}=10s")))
        }
        time => Ok(time),
    }
}

/// Returns the schedulers of these names, which `choose` looks up. If there are none: without groups in the
/// jobs, all presets except those under the controller; with groups, the schedulers that can share by group,
/// with and without that.
///
/// # Errors
/// That of `choose`, and if a name is there twice.
pub fn choose_schedulers<E: From<Error>>(
    names: &[String],
    jobs: &JobFile,
    choose: impl Fn(&str) -> Result<Named, E>,
) -> Result<Vec<Scheduler>, E> {
    let scheduler = |p: &Preset| Scheduler::from(Named::from(p));
    let all = || PRESETS.iter();
    if names.is_empty() && jobs.cgroups.len() > 1 {
        // Of each scheduler the preset that has its name, not those of other eras.
        let has_groups = |p: &Preset| {
            let knows = !groups_kept(&(p.config)()).is_empty();
            (p.config)().scheduler() == p.name && (knows || preset(&format!("{}+groups", p.name)).is_some())
        };
        return Ok(all().filter(|p| has_groups(p)).map(scheduler).collect());
    }
    if names.is_empty() || names == ["all"] {
        return Ok(all().filter(|p| !p.has_controller()).map(scheduler).collect());
    }
    let mut chosen: Vec<Scheduler> = Vec::new();
    for name in names.iter().map(|n| n.trim()) {
        let named = choose(name)?;
        if chosen.iter().any(|s| s.name == named.name) {
            return Err(Error::Misuse(format!("scheduler '{name}' is named twice")).into());
        }
        chosen.push(named.into());
    }
    Ok(chosen)
}

/// A disk by its name, and a host by its name.
pub type Setting = ((String, DeviceParams), (String, Host));

/// The setting for jobs that may name disks of their own: called after all of them, on a host of the time of
/// the newest.
///
/// # Errors
/// If the host is none.
pub fn with_disks_of(jobs: &JobFile, (disk, machine): Setting, host: Option<&str>) -> Result<Setting, Error> {
    let names = jobs.model_names(&disk.0);
    if names == [disk.0.as_str()] {
        return Ok((disk, machine));
    }
    let newest = names.iter().copied().max_by_key(|name| Host::name_for_disk(name)).unwrap_or(&disk.0);
    let machine = Host::parse(host.unwrap_or_default(), newest).map_err(Error::Misuse)?;
    Ok(((in_words(jobs, &names), disk.1), machine))
}

/// `4 nvme` for disks of one model; of several models each with the name that the job file gives the disk:
/// `nvme (log), nas2020 (data)`.
fn in_words(jobs: &JobFile, names: &[&str]) -> String {
    match names {
        [one] => (*one).to_owned(),
        [first, rest @ ..] if rest.iter().all(|name| name == first) => format!("{} {first}", names.len()),
        _ => {
            let each = jobs.disks.iter().zip(names).map(|(d, name)| format!("{name} ({})", d.label));
            each.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A disk, the machine around it (that of the disk's time if none is named), and the jobs, which may name
/// disks of their own.
///
/// # Errors
/// If the host is none, or `read` says so.
pub fn choose_load<E: From<Error>>(
    disk: (String, DeviceParams),
    host: Option<&str>,
    read: impl Fn(&Host) -> Result<JobFile, E>,
) -> Result<(Setting, JobFile), E> {
    let first = with_host(disk, host)?;
    let jobs = read(&first.1.1)?;
    let setting = with_disks_of(&jobs, first.clone(), host)?;
    // A job file may ask for its host's figures.
    let is_other = setting.1.0 != first.1.0;
    let jobs = if is_other { read(&setting.1.1)? } else { jobs };
    Ok((setting, jobs))
}

/// A disk, and the machine around it: that of the disk's time if none is named.
///
/// # Errors
/// If the host is none.
pub fn with_host(disk: (String, DeviceParams), host: Option<&str>) -> Result<Setting, Error> {
    let host = Host::parse(host.unwrap_or_default(), &disk.0).map_err(Error::Misuse)?;
    Ok((disk, host))
}

/// Looking more often than that tells nothing that a slice of 100 ms would.
const WATCH_MIN: Duration = Duration::from_ms(10);

/// How often to look at control groups.
///
/// # Errors
/// If that is too often, or the jobs have no groups.
pub fn choose_watch(text: &str, jobs: &JobFile) -> Result<Duration, Error> {
    let period = positive_time("--watch", text)?;
    let misuse = |message: &str| Err(Error::Misuse(format!("--watch={text}: {message}")));
    if period < WATCH_MIN {
        return misuse("too short; write at least 10ms");
    }
    if jobs.cgroups.len() < 2 {
        return misuse("there are no control groups to watch; add cgroup=NAME to jobs");
    }
    Ok(period)
}

/// Returns a built-in disk by its name, if there is one.
///
/// # Errors
/// If no preset has that name.
pub fn choose_preset(name: &str) -> Result<(String, DeviceParams), Error> {
    if preset_names().contains(&name) {
        let params = DeviceParams::preset(name).map_err(|e| Error::Failed(e.to_string()))?;
        return Ok((name.to_owned(), params));
    }
    let begins = || preset_names().iter().copied().find(|known| name.len() > 2 && known.starts_with(name));
    Err(Error::Misuse(match nearest(name, preset_names().iter().copied()).or_else(begins) {
        Some(word) => format!("unknown disk '{name}'; did you mean '{word}'?"),
        None => {
            format!("unknown disk '{name}': no preset of that name (fairhead list disks), and no such file")
        }
    }))
}
