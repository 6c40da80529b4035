//! Control groups: which hierarchy has the io controller, where it is on, and who has which weight.

use crate::tree::Tree;

const ROOT: &str = "sys/fs/cgroup";

/// The largest number of groups that are read. A host of containers has thousands, and the first are enough.
const GROUPS_MAX: usize = 4096;

/// Where the io controller is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Controller {
    /// Version 2, and the root passes it on to its children.
    On,
    /// Version 2, but the root does not pass it on: children have no weights.
    Off,
    /// Version 1 (`blkio`).
    V1,
    /// Nowhere.
    None,
}

/// A weight that is not the default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupWeight {
    /// The group's path below the hierarchy.
    pub group: String,
    /// The file: `io.weight`, `io.bfq.weight`, `blkio.bfq.weight`, or cfq's `blkio.weight`.
    pub file: String,
    /// The weight; 100 is the default, and 500 of `blkio.weight`.
    pub weight: u32,
}

/// A limit of a group's writes in the hierarchy of version 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLimit {
    /// The group's path below the hierarchy.
    pub group: String,
    /// The file, such as `blkio.throttle.write_bps_device`.
    pub file: String,
    /// Its first line, such as `8:0 10485760`.
    pub text: String,
}

/// The control groups of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroups {
    /// Where the io controller is.
    pub controller: Controller,
    /// Weights that are not the default.
    pub weights: Vec<GroupWeight>,
    /// Limits of writes, of version 1.
    pub limits: Vec<GroupLimit>,
    /// The first group of a user's manager (`user@1000.service`) to which the io controller is not passed on.
    pub without_io: Option<String>,
    /// Disks, by device number (`8:0`), for which io.cost is on.
    pub io_cost: Vec<String>,
}

impl Cgroups {
    /// Reads the hierarchy.
    pub(crate) fn read(tree: &Tree) -> Self {
        let has = |file: &str| {
            let text = tree.text(&format!("{ROOT}/{file}"));
            text.is_some_and(|t| t.split_whitespace().any(|c| c == "io"))
        };
        let controller = match (has("cgroup.controllers"), has("cgroup.subtree_control")) {
            (true, true) => Controller::On,
            (true, false) => Controller::Off,
            _ if tree.exists(&format!("{ROOT}/blkio")) => Controller::V1,
            _ => Controller::None,
        };
        let start = if controller == Controller::V1 { format!("{ROOT}/blkio") } else { ROOT.to_owned() };
        let (mut weights, mut limits) = (Vec::new(), Vec::new());
        for (group, name) in files(tree, &start) {
            let text = || tree.text(&format!("{start}{group}/{name}")).unwrap_or_default();
            if let Some(default) = default_of(&name) {
                let weight = default_weight(&text()).filter(|&w| w != default && !group.is_empty());
                weights.extend(weight.map(|weight| GroupWeight { group, file: name, weight }));
            } else if name.starts_with("blkio.throttle.write_") {
                let line = text().lines().next().map(str::to_owned);
                limits.extend(line.map(|text| GroupLimit { group, file: name, text }));
            }
        }
        weights.sort_by(|a, b| (&a.group, &a.file).cmp(&(&b.group, &b.file)));
        limits.sort_by(|a, b| (&a.group, &a.file).cmp(&(&b.group, &b.file)));
        Self { controller, weights, limits, without_io: without_io(tree), io_cost: io_cost(tree) }
    }
}

/// The disks of lines `8:0 enable=1 …`.
fn io_cost(tree: &Tree) -> Vec<String> {
    let text = tree.text(&format!("{ROOT}/io.cost.qos")).unwrap_or_default();
    let on = text.lines().filter(|l| l.split_whitespace().any(|w| w == "enable=1"));
    on.filter_map(|l| l.split_whitespace().next()).map(str::to_owned).collect()
}

/// The files of weights and limits of all groups: the group's path below `root`, and the file's name.
fn files(tree: &Tree, root: &str) -> Vec<(String, String)> {
    let (mut found, mut to_do, mut seen) = (Vec::new(), vec![root.to_owned()], 0);
    while let Some(folder) = to_do.pop() {
        seen += 1;
        if seen > GROUPS_MAX {
            break;
        }
        for name in tree.names(&folder) {
            if default_of(&name).is_some() || LIMITS.contains(&name.as_str()) {
                found.push((folder[root.len()..].to_owned(), name));
                continue;
            }
            let path = format!("{folder}/{name}");
            if tree.place(&path).symlink_metadata().is_ok_and(|m| m.is_dir()) {
                to_do.push(path);
            }
        }
    }
    found
}

/// Files with limits of a group's writes.
const LIMITS: [&str; 2] = ["blkio.throttle.write_bps_device", "blkio.throttle.write_iops_device"];

/// The default of a file of weights; `None` for another file. cfq's ended with Linux 5.0.
fn default_of(file: &str) -> Option<u32> {
    match file {
        "io.weight" | "io.bfq.weight" | "blkio.bfq.weight" => Some(100),
        "blkio.weight" => Some(500),
        _ => None,
    }
}

/// The first group of a user's manager without the io controller.
fn without_io(tree: &Tree) -> Option<String> {
    let slices = tree.names(&format!("{ROOT}/user.slice")).into_iter().filter(|n| n.starts_with("user-"));
    slices
        .flat_map(|slice| {
            let folder = format!("user.slice/{slice}");
            let names = tree.names(&format!("{ROOT}/{folder}")).into_iter();
            names.filter(|n| n.starts_with("user@")).map(move |n| format!("{folder}/{n}")).collect::<Vec<_>>()
        })
        .find(|group| {
            let controllers = tree.text(&format!("{ROOT}/{group}/cgroup.controllers"));
            controllers.is_some_and(|c| c.split_whitespace().all(|c| c != "io"))
        })
}

/// The number in `default 100`, or in a file that has nothing else.
fn default_weight(text: &str) -> Option<u32> {
    let first = text.lines().next()?;
    first.strip_prefix("default ").unwrap_or(first).trim().parse().ok()
}
