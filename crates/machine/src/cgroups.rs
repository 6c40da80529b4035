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
    /// The file: `io.weight`, `io.bfq.weight` or `blkio.bfq.weight`.
    pub file: String,
    /// The weight; 100 is the default.
    pub weight: u32,
}

/// The control groups of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cgroups {
    /// Where the io controller is.
    pub controller: Controller,
    /// Weights that are not the default.
    pub weights: Vec<GroupWeight>,
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
        Self { controller, weights: weights(tree, &start), io_cost: io_cost(tree) }
    }
}

/// The disks of lines `8:0 enable=1 …`.
fn io_cost(tree: &Tree) -> Vec<String> {
    let text = tree.text(&format!("{ROOT}/io.cost.qos")).unwrap_or_default();
    let on = text.lines().filter(|l| l.split_whitespace().any(|w| w == "enable=1"));
    on.filter_map(|l| l.split_whitespace().next()).map(str::to_owned).collect()
}

fn weights(tree: &Tree, root: &str) -> Vec<GroupWeight> {
    let (mut found, mut to_do, mut seen) = (Vec::new(), vec![root.to_owned()], 0);
    while let Some(folder) = to_do.pop() {
        seen += 1;
        if seen > GROUPS_MAX {
            break;
        }
        for name in tree.names(&folder) {
            let path = format!("{folder}/{name}");
            match name.as_str() {
                "io.weight" | "io.bfq.weight" | "blkio.bfq.weight" => {
                    let weight = default_weight(&tree.text(&path).unwrap_or_default());
                    let group = folder[root.len()..].to_owned();
                    let other = weight.filter(|&w| w != 100 && !group.is_empty());
                    found.extend(other.map(|weight| GroupWeight { group, file: name, weight }));
                }
                _ if tree.place(&path).symlink_metadata().is_ok_and(|m| m.is_dir()) => to_do.push(path),
                _ => {}
            }
        }
    }
    found.sort_by(|a, b| (&a.group, &a.file).cmp(&(&b.group, &b.file)));
    found
}

/// The number in `default 100`, or in a file that has nothing else.
fn default_weight(text: &str) -> Option<u32> {
    let first = text.lines().next()?;
    first.strip_prefix("default ").unwrap_or(first).trim().parse().ok()
}
