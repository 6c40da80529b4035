//! From a scenario to the machine that runs it.

use super::balance::Balance;
use super::cache::Cache;
use super::client::{Client, Region};
use super::clock::Clock;
use super::cpus::Cpus;
use super::disks::{Disks, Wanted};
use super::files::{self, Files};
use super::flusher::Flushers;
use super::groups::{self, Groups};
use super::lane::Lane;
use super::queue::Sizes;
use super::replay::Replay;
use super::script::Script;
use super::series::Series;
use super::steer::Flows;
use super::waves::Waves;
use super::{Machine, Scenario, flusher, startup, steady, traced, work};
use crate::error::SimError;
use crate::host::Host;
use crate::job::{self, Distribution, Job, JobFile, Program, Size};
use crate::metrics::Result;
use crate::rng::Rng;
use fairhead_core::TaskId;
use fairhead_core::sched::any::preset;
use std::collections::VecDeque;

impl<'a> Machine<'a> {
    /// Makes the machine of a scenario, before its first event. The elevators' traces keep `trace` events.
    ///
    /// # Errors
    /// If the scenario cannot be.
    #[allow(clippy::too_many_lines, reason = "most are a list of fields, one in a line")]
    pub(super) fn new(scenario: &'a Scenario, trace: u32) -> Result<Self> {
        let (jobs, host) = (&scenario.jobs, &scenario.host);
        let (flushers, tasks) = Self::flushers_and_tasks(jobs, host);
        let mut groups = Groups::of(jobs);
        // A process that has ended may leave requests behind while the next one starts.
        let starters = jobs.clients().filter(|c| c.job.iterations > 1).count();
        let slots = tasks + u32::try_from(starters).unwrap_or(0);
        let sizes = Sizes { tasks: slots, groups: groups.count(), guarantees: groups.has_guarantees() };
        let mut disks = Disks::new(&wanted_disks(scenario)?, host, sizes, trace)?;
        groups::give(&mut groups, &mut disks)?;
        let files = Files::place(jobs, disks.all_facts().map(|f| f.capacity), scenario.seed)?;
        let limits = host.dirty_limits();
        let cache = Cache::new(host.memory, files.files.len(), limits);
        let (mut clients, lanes) = Self::make_clients(scenario, &files, &groups)?;
        let (traces, replays) = (traced::traces(&mut clients)?, replays(scenario)?);
        for client in clients.iter_mut().filter(|c| replays[c.stats.job].is_some()) {
            client.script = Script::Replay;
        }
        let processors = work::processors(jobs, host, scenario.seed)?;
        Ok(Self {
            clock: Clock::new(scenario.time_max),
            journal: None,
            keeps_books: false,
            watch: groups::Watch::new(scenario.watch, groups.count()),
            groups,
            files,
            series: Series::new(scenario.interval, clients.len(), disks.count()),
            clients,
            lanes,
            replays,
            traces,
            steady: steady::Watches::new(jobs),
            failed: None,
            flushers: Flushers::new(flushers),
            host,
            disks,
            cache,
            balance: Balance::new(limits),
            jitter: Rng::new(scenario.seed, "host.jitter"),
            cpus: Cpus::new(jobs.cpus.unwrap_or(host.cpus)),
            processors,
            is_submitting: false,
            next_task: tasks,
            waves: Waves::new(jobs, scenario.seed),
            ended: false,
            stop: None,
            disk_full: None,
            owners: Vec::new(),
            woken: VecDeque::new(),
            touched: Vec::new(),
        })
    }

    /// Returns the threads that write dirty pages, and the number of tasks: task 0 (no task), the clients,
    /// and those threads.
    fn flushers_and_tasks(jobs: &JobFile, host: &Host) -> (Vec<flusher::Thread>, u32) {
        let first = u32::try_from(jobs.client_count()).unwrap_or(u32::MAX - 4) + 1;
        let flushers = Self::flusher_threads(host.flusher, first);
        #[allow(clippy::cast_possible_truncation, reason = "two at most")]
        let tasks = first + flushers.len() as u32;
        (flushers, tasks)
    }

    fn make_clients(
        scenario: &Scenario,
        files: &Files,
        groups: &Groups<'_>,
    ) -> Result<(Vec<Client>, Vec<Lane>)> {
        let (mut clients, mut lanes) = (Vec::new(), Vec::new());
        let mut flows = Flows::default();
        // A job that has no room for a block makes no call, and others run. If none has, that is an error.
        let mut first_idle = None;
        for (i, c) in scenario.jobs.clients().enumerate() {
            let used = files.of_client[i].clone();
            let (region, idle) = match region(&c, files, i) {
                Ok(region) => (region, None),
                Err(error @ SimError::Job { .. }) if c.job.program.is_none() => (Region::EMPTY, Some(error)),
                Err(error) => return Err(error),
            };
            if idle.is_none() {
                must_have_zones(c.job, region.span)?;
            }
            let mut client = Client::new(&c, used, region, &scenario.host, scenario.seed);
            if c.job.filesize_max.is_some() {
                let lengths = client.files.iter().map(|&f| files.files[f as usize].size * 512);
                client.vary(lengths.map(|whole| whole.saturating_sub(region.base)).collect());
            }
            client.note = idle.as_ref().map(ToString::to_string);
            first_idle = first_idle.or(idle);
            let number =
                |n: usize| u32::try_from(n).expect("job files are limited to a few thousand clients");
            client.task = TaskId(number(i) + 1);
            client.group = groups.id(c.job);
            client.first_lane = number(lanes.len());
            client.share = flows.join(c.job.flow);
            lanes.extend((0..client.all_lanes).map(|_| Lane::new(number(i))));
            clients.push(client);
        }
        match first_idle {
            Some(error) if clients.iter().all(|c| c.note.is_some()) => Err(error),
            _ => Ok((clients, lanes)),
        }
    }
}

/// The disks that a scenario asks for.
fn wanted_disks<'a>(scenario: &'a Scenario) -> Result<Vec<Wanted<'a>>> {
    let (model, scheduler, config) = (&scenario.disk, scenario.scheduler.as_str(), scenario.config);
    let of_run = Wanted { label: "", model, scheduler, config };
    let wanted = |disk: &'a job::Disk| -> Result<Wanted<'a>> {
        let mut wanted = of_run;
        if let Some(preset) = disk.scheduler.filter(|name| *name != scheduler).and_then(preset) {
            (wanted.scheduler, wanted.config) = (preset.name, (preset.config)());
        }
        if let Some(model) = &disk.model {
            wanted.model = model.params.as_deref().ok_or_else(|| SimError::Model(model.name.clone()))?;
        }
        Ok(wanted)
    };
    if scenario.jobs.disks.is_empty() {
        return Ok(vec![of_run]);
    }
    let disks = scenario.jobs.disks.iter();
    disks.map(|disk| Ok(Wanted { label: &disk.label, ..wanted(disk)? })).collect()
}

/// The replays of recorded start-ups, by job.
fn replays(scenario: &Scenario) -> Result<Vec<Option<Replay>>> {
    let mut first_client = 0;
    let mut all = Vec::new();
    for (i, job) in scenario.jobs.jobs.iter().enumerate() {
        let replay = Replay::new(job, i, first_client, scenario.seed);
        if replay.is_none() && job.program == Some(Program::Replay) {
            let message = "its start-up trace has not been read".to_owned();
            return Err(SimError::Job { job: job.name.clone(), message });
        }
        all.push(replay);
        first_client += job.numjobs;
    }
    Ok(all)
}

/// The region of a client whose files have sizes of their own: the longest. It moves all of them, or `size`
/// if that is less.
//= fio-3.33: nrfiles=8 filesize=16k-64k size=256k moves 256 KiB, and without size all files
fn region_of_varied(c: &crate::job::Client<'_>, files: &Files, client: usize) -> Result<Region> {
    let whole = files.of_client[client].iter().map(|&f| files.files[f as usize].size * 512);
    let (shortest, longest) = (whole.clone().min().unwrap_or(0), whole.clone().max().unwrap_or(0));
    let base = files::offset(c.job, c.clone, files.whole_of_offset(c.job, client, shortest));
    let span = longest.saturating_sub(base);
    if span < u64::from(c.job.smallest_block()) {
        let message = format!("nothing left to do at offset {base} of {longest} bytes");
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    let all = whole.map(|bytes| bytes.saturating_sub(base)).sum();
    let size = c.job.size.map_or(all, |s| s.bytes_of(all).min(all));
    Ok(Region { base, span, size, file: longest, room: span })
}

/// Refuses a distribution with a part that is longer than what the job uses, of `span` bytes.
fn must_have_zones(job: &Job, span: u64) -> Result<()> {
    if let Distribution::Zoned(zones) = &job.distribution
        && zones.iter().any(|z| matches!(z.size, Size::Bytes(b) if b > span))
    {
        let message = format!("its random_distribution has a part that is longer than its {span} bytes");
        return Err(SimError::Job { job: job.name.clone(), message });
    }
    Ok(())
}

/// Which part of each of its files a client uses.
fn region(c: &crate::job::Client<'_>, files: &Files, client: usize) -> Result<Region> {
    if c.job.filesize_max.is_some() {
        return region_of_varied(c, files, client);
    }
    let used = &files.of_client[client];
    let of_used = || used.iter().map(|&f| &files.files[f as usize]);
    let append_from = of_used().map(|f| f.append_from).max().unwrap_or(0) * 512;
    let whole = of_used().map(|f| f.size).min().unwrap_or(0) * 512;
    let share_of = files.whole_of_offset(c.job, client, whole);
    let base = files::offset(c.job, c.clone, share_of) + append_from;
    let room = whole.saturating_sub(base);
    let count = used.len() as u64;
    let disk = files.disk_bytes(client);
    // A file system check is of the whole disk, whatever the size.
    let size = c.job.size.filter(|_| c.job.program != Some(Program::Fsck)).map(|s| s.bytes_of(disk));
    // A share of each file, as far as it was there when the job was set up.
    let size = match c.job.size.filter(|_| files::is_share_of_file(c.job)) {
        Some(share) => {
            let each = c.job.filesize.map_or(files.known[client], |file| file.bytes_of(disk));
            Some(share.bytes_of(each) * count)
        }
        None => size,
    };
    let span = match (c.job.filesize, size) {
        (Some(_), Some(size)) if files::is_share_of_file(c.job) => (size / count).min(room),
        (Some(file), _) if !c.job.append => file.bytes_of(disk).saturating_sub(base).min(room),
        (_, Some(size)) => (size / count).min(room),
        (_, None) => room,
    };
    let block = u64::from(c.job.smallest_block());
    if span < block && c.job.program.is_none() {
        let message = if base >= whole {
            format!(
                "nothing left to do at offset {base} of {whole} bytes; offset= and offset_increment= must leave room for one block"
            )
        } else {
            format!(
                "a block of {block} bytes is longer than its range of {span}, so there is no call to make"
            )
        };
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    let room = files.known[client].saturating_sub(base).max(span);
    let region = Region { base, span, size: size.unwrap_or(span * count), file: whole, room };
    let span = span / 512;
    if let Some(Program::StartUp(application)) = c.job.program
        && span < startup::sectors_needed(application)
    {
        let needed = startup::sectors_needed(application).div_ceil(2048);
        let message = format!("it has {} MiB, and starting needs {needed}; use a larger size=", span / 2048);
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    if c.job.startup_trace.as_ref().and_then(|t| t.trace.as_ref()).is_some_and(|t| span < t.longest()) {
        let message = format!(
            "its files of {} KiB are shorter than the trace's longest request; use a larger size=",
            span / 2
        );
        return Err(SimError::Job { job: c.job.name.clone(), message });
    }
    Ok(region)
}
