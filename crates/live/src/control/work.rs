//! What a request does, in the engine's thread: short, and all of it or nothing.

use super::change::Change;
use super::export_request::ExportRequest;
use super::request::Request;
use super::value::{self, unknown};
use crate::disk::Disk;
use crate::emulation::Lateness;
use crate::engine::Context;
use crate::error::{Error, ErrorKind};
use crate::latency::Latency;
use crate::nbd::{Export, Exports};
use fairhead_core::config::ConfigError;
use fairhead_core::groups::{GroupStats, Refusal};
use fairhead_core::sched::any::AnyConfig;
use fairhead_core::units::{Class, Duration, GroupId, Id, Instant, Weight};
use fairhead_core::{Control, Limits, Max, Min};
use serde_json::{Value, json};

impl Disk {
    /// Tells a group all of that, or nothing; it is made if there is none, with those around it.
    ///
    /// # Errors
    /// If the group is the root, if the change contradicts itself or an earlier setting, if there can be no
    /// more groups, or if the engine has stopped.
    pub fn tell_group(&self, group: &str, change: Change) -> Result<(), Error> {
        let name = group.to_owned();
        self.call(move |context| context.tell_group(&name, &change))?
    }
}

impl Exports {
    /// Serves another file. Its group is made with these settings if there is none of its name.
    ///
    /// # Errors
    /// If the name is taken, the file cannot be had or is served already, another program has locked it, the
    /// export names users although only the server's own can open its sockets, its group exists and there are
    /// settings for it, or the engine has stopped.
    pub fn add(&self, export: &Export, change: Change) -> Result<(), Error> {
        let group = export.group.clone();
        let tell = move |context: &mut Context| context.tell_group(&group, &change);
        self.add_with(export, change != Change::default(), tell)
    }
}

impl Context {
    /// See [`Disk::tell_group`].
    pub(crate) fn tell_group(&mut self, group: &str, change: &Change) -> Result<(), Error> {
        let id = self.groups.ensure(self.now, &mut self.queue, group)?;
        tell(self, id, change).map_err(|r| Error::new(ErrorKind::Group, format!("group {group}: {r}")))
    }
}

/// How everything is at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) now: Instant,
    pub(super) config: AnyConfig,
    pub(super) limits: Limits,
    pub(super) depth: (u16, bool),
    pub(super) in_flight: (u16, u32),
    pub(super) lateness: Option<Lateness>,
    pub(super) groups: Vec<Group>,
}

/// How a group is, and what it got, without the groups in it.
#[derive(Debug)]
pub(super) struct Group {
    /// Empty for the root.
    pub(super) name: String,
    pub(super) settings: GroupSettings,
    pub(super) stats: GroupStats,
    /// Of reads, and of everything else.
    pub(super) latency: Option<Box<[Latency; 2]>>,
}

/// The settings of a group that are in force.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupSettings {
    pub(super) weight: Weight,
    pub(super) leaf_weight: Weight,
    pub(super) class: Class,
    pub(super) max: Max,
    pub(super) min: Min,
    pub(super) latency: Option<Duration>,
}

impl GroupSettings {
    fn of(context: &Context, id: GroupId) -> Self {
        let groups = context.queue.elevator().groups();
        Self {
            weight: groups.weight(id),
            leaf_weight: groups.leaf_weight(id),
            class: groups.class(id),
            max: groups.max(id),
            min: groups.min(id),
            latency: groups.latency(id),
        }
    }
}

impl Snapshot {
    pub(super) fn take(context: &Context) -> Self {
        let all = [("", GroupId::ROOT)].into_iter().chain(context.groups.names());
        let stats = context.queue.all_stats();
        let group = |(name, id): (&str, GroupId)| Group {
            name: name.to_owned(),
            settings: GroupSettings::of(context, id),
            stats: stats[id.index()],
            latency: context.groups.latencies.of(id),
        };
        Self {
            now: context.now,
            config: *context.queue.config(),
            limits: *context.queue.limits(),
            depth: context.queue.depth(),
            in_flight: context.queue.in_flight(),
            lateness: context.lateness(),
            groups: all.map(group).collect(),
        }
    }
}

/// Does what changes something.
pub(super) fn change(context: &mut Context, request: &Request) -> Result<(), String> {
    match request {
        // These are not for the engine's thread.
        Request::Stats | Request::Metrics | Request::Export(_) => Ok(()),
        Request::Make(name, change) => make(context, name, change),
        Request::Set(name, change) => {
            let id = find(context, name)?;
            // Its settings would go with it.
            context.groups.keep(id);
            tell(context, id, change).map_err(|why| format!("group {}: {why}", shown(name)))
        }
        Request::Remove(name) => {
            if find(context, name)? == GroupId::ROOT {
                return Err(Refusal::Root.to_string());
            }
            context.groups.remove(context.now, &mut context.queue, name).map_err(|e| e.to_string())
        }
        Request::Depth(depth) => context.queue.set_depth(*depth),
        Request::Sched(config) => switch(context, **config),
        Request::Tune(tunables) => switch(context, value::tuned(*context.queue.config(), tunables)?),
    }
}

/// Does what is about exports, outside of the engine's thread: files may take their time.
pub(super) fn export(exports: &Exports, request: &ExportRequest) -> Result<Value, Error> {
    let mut answer = json!({ "ok": true });
    match request {
        ExportRequest::List => answer["exports"] = exports.list()?,
        ExportRequest::Add(export, change) => exports.add(export, *change)?,
        ExportRequest::Remove { name, force } => {
            let connections = exports.remove(name, *force)?;
            if connections > 0 && !force {
                answer["connections"] = connections.into();
            }
        }
        ExportRequest::Resize { name, size } => exports.resize(name, *size)?,
    }
    Ok(answer)
}

/// The root has no name.
fn shown(name: &str) -> &str {
    if name.is_empty() { "/" } else { name }
}

fn switch(context: &mut Context, config: AnyConfig) -> Result<(), String> {
    context.queue.switch(context.now, config).map_err(|e: ConfigError| e.to_string())
}

fn find(context: &Context, name: &str) -> Result<GroupId, String> {
    context.groups.find(name).ok_or_else(|| {
        let names: Vec<&str> = context.groups.names().map(|(name, _)| name).take(16).collect();
        match fairhead_device::nearest_word(name, context.groups.names().map(|(name, _)| name)) {
            None if names.is_empty() => format!("no group '{name}': there is none but the root, /"),
            _ => unknown("group", name, names),
        }
    })
}

/// A new group, and those around it that there are not.
fn make(context: &mut Context, name: &str, change: &Change) -> Result<(), String> {
    if context.groups.find(name).is_some() {
        return Err(format!("group {}: there is one; set changes it", shown(name)));
    }
    let ends = name.match_indices('/').map(|(i, _)| i).chain([name.len()]);
    let missing: Vec<&str> =
        ends.map(|end| &name[..end]).filter(|path| context.groups.find(path).is_none()).collect();
    let made = context.groups.ensure(context.now, &mut context.queue, name).map_err(|e| e.to_string());
    let told = made.and_then(|id| tell(context, id, change).map_err(|why| format!("group {name}: {why}")));
    if told.is_err() {
        for path in missing.into_iter().rev() {
            // Those that there were not enough numbers for are not there.
            let _ = context.groups.remove(context.now, &mut context.queue, path);
        }
    }
    told
}

/// Changes the settings of a group: all of them, or none if one is refused.
fn tell(context: &mut Context, id: GroupId, change: &Change) -> Result<(), Refusal> {
    let old = GroupSettings::of(context, id);
    let result = changes(id, change, &old).try_for_each(|c| context.queue.control(context.now, c));
    if result.is_err() {
        let back = Change {
            weight: change.weight.map(|_| old.weight),
            leaf_weight: change.leaf_weight.map(|_| old.leaf_weight),
            class: change.class.map(|_| old.class),
            rbps: Some(old.max.rbps),
            wbps: Some(old.max.wbps),
            riops: Some(old.max.riops),
            wiops: Some(old.max.wiops),
            burst: Some(old.max.burst),
            min_iops: Some(old.min.iops),
            latency: change.latency.map(|_| old.latency),
        };
        for c in changes(id, &back, &old) {
            // Of the root nothing but its leaf weight can have changed.
            let _ = context.queue.control(context.now, c);
        }
    }
    result
}

/// One after the other. A guarantee is taken back before its limit changes, or the two could contradict each
/// other on the way.
fn changes(id: GroupId, change: &Change, old: &GroupSettings) -> impl Iterator<Item = Control> {
    let limits = [change.rbps, change.wbps, change.riops, change.wiops];
    let has_limit = limits.iter().any(Option::is_some) || change.burst.is_some();
    let max = has_limit.then(|| change.max(old.max));
    let min = change.min_iops.map(|iops| Min { iops });
    [
        change.weight.map(|w| Control::SetWeight(id, w)),
        change.leaf_weight.map(|w| Control::SetLeafWeight(id, w)),
        change.class.map(|c| Control::SetClass(id, c)),
        min.filter(|_| max.is_some()).map(|_| Control::SetMin(id, Min::default())),
        max.map(|m| Control::SetMax(id, m)),
        min.map(|m| Control::SetMin(id, m)),
        change.latency.map(|t| Control::SetLatency(id, t)),
    ]
    .into_iter()
    .flatten()
}
