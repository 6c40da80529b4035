//! From what a user calls a disk to the device numbers that the kernel's events have.

use crate::disks::chosen_scheduler;
use crate::locate;
use crate::tree::Tree;
use std::path::Path;

/// A disk to record, or a partition of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The disk's name: `sda`.
    pub disk: String,
    /// The name that was asked for: the disk's, or the partition's, `sda1`.
    pub name: String,
    /// The disk's major and minor number.
    pub number: (u32, u32),
    /// The numbers of its partitions: some kernels use them when a bio is queued.
    pub partitions: Vec<(u32, u32)>,
    /// The sectors of the partition that was asked for, as first and end; `None` for the whole disk.
    pub range: Option<(u64, u64)>,
    /// The scheduler in force; `None` for a disk without a queue.
    pub scheduler: Option<String>,
}

impl Target {
    /// Returns all numbers under which its requests may appear.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, u32)> {
        std::iter::once(self.number).chain(self.partitions.iter().copied())
    }

    /// Whether a request at these sectors is of the target. A flush, without sectors, is of every target.
    pub(super) fn covers(&self, sector: u64, sectors: u32) -> bool {
        self.range.is_none_or(|(first, end)| sectors == 0 || (first..end).contains(&sector))
    }
}

/// Returns the disks with these names; without names all disks that have a queue of requests and are not
/// made of other disks, whose requests would be recorded twice.
///
/// # Errors
/// If there is no such disk, or none at all. One line says which there are.
pub fn targets(tree: &Tree, names: &[String]) -> Result<Vec<Target>, String> {
    if names.is_empty() {
        let all: Vec<Target> = tree.names("sys/block").iter().filter_map(|n| by_default(tree, n)).collect();
        let message =
            "no disk to record: /sys/block has none with a queue of requests (a container may hide them)";
        return if all.is_empty() { Err(message.to_owned()) } else { Ok(all) };
    }
    let mut all: Vec<Target> = Vec::new();
    for name in names {
        let target = find(tree, name)?;
        if let Some(same) = all.iter().find(|t| t.disk == target.disk) {
            return Err(format!(
                "'{}' and '{name}' are on one disk, {}; name the disk",
                same.name, same.disk
            ));
        }
        all.push(target);
    }
    Ok(all)
}

fn by_default(tree: &Tree, name: &str) -> Option<Target> {
    let target = disk(tree, name, name, None)?;
    let made_of_others = !tree.names(&format!("sys/block/{name}/slaves")).is_empty();
    let own_use = ["ram", "zram", "fd", "sr"].iter().any(|p| name.starts_with(p));
    (has_sectors(tree, name) && !made_of_others && !own_use && target.scheduler.is_some()).then_some(target)
}

/// Whether a disk has a size. A loop device without a file, and a drive without a medium, have none.
fn has_sectors(tree: &Tree, name: &str) -> bool {
    tree.number::<u64>(&format!("sys/block/{name}/size")).is_some_and(|sectors| sectors > 0)
}

fn find(tree: &Tree, asked: &str) -> Result<Target, String> {
    let name = locate::name(tree, asked);
    let found = disk(tree, &name, &name, None).or_else(|| partition(tree, &name));
    found.ok_or_else(|| {
        let disks: Vec<String> =
            tree.names("sys/block").into_iter().filter(|n| has_sectors(tree, n)).collect();
        let there = if disks.is_empty() { "none".to_owned() } else { disks.join(", ") };
        let what = if Path::new(asked).is_file() { "a file, not a disk" } else { "no disk of this machine" };
        format!("'{asked}' is {what}; there are {there}")
    })
}

fn partition(tree: &Tree, name: &str) -> Option<Target> {
    let parent = tree.disk_of_partition(name)?;
    let number = |file: &str| tree.number::<u64>(&format!("sys/block/{parent}/{name}/{file}"));
    let (start, size) = (number("start")?, number("size")?);
    disk(tree, &parent, name, Some((start, start + size)))
}

fn disk(tree: &Tree, disk: &str, name: &str, range: Option<(u64, u64)>) -> Option<Target> {
    let plain = !disk.is_empty() && disk != "." && disk != "..";
    let folder = format!("sys/block/{disk}");
    let mut numbers = if plain { tree.devices(disk) } else { Vec::new() }.into_iter();
    let (number, partitions) = (numbers.next()?, numbers.collect());
    let text = tree.text(&format!("{folder}/queue/scheduler")).unwrap_or_default();
    let scheduler = chosen_scheduler(&text).map(str::to_owned);
    Some(Target { disk: disk.to_owned(), name: name.to_owned(), number, partitions, range, scheduler })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Two disks, one with a partition, and one made of others.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join("sys/block").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, number) in [("sda", "8:0"), ("sdb", "8:16"), ("dm-0", "253:0")] {
            put(&format!("{name}/dev"), number);
            put(&format!("{name}/size"), "4096\n");
            put(&format!("{name}/queue/scheduler"), "none [bfq]\n");
        }
        // A loop device without a file.
        put("loop0/dev", "7:0\n");
        put("loop0/size", "0\n");
        put("loop0/queue/scheduler", "[none]\n");
        put("sda/sda1/dev", "8:1\n");
        put("sda/sda1/partition", "1\n");
        put("sda/sda1/start", "2048\n");
        put("sda/sda1/size", "1024\n");
        put("dm-0/slaves/sdb", "");
        dir
    }

    #[test]
    fn disks_and_partitions_by_name() {
        let dir = machine();
        let tree = Tree::new(dir.path());
        let of = |names: &[&str]| targets(&tree, &names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        let sda = &of(&["/dev/sda"]).unwrap()[0];
        assert_eq!((sda.number, &sda.partitions[..], sda.range), ((8, 0), &[(8, 1)][..], None));
        assert_eq!(sda.scheduler.as_deref(), Some("bfq"));
        let part = &of(&["sda1"]).unwrap()[0];
        assert_eq!((part.disk.as_str(), part.number, part.range), ("sda", (8, 0), Some((2048, 3072))));
        assert!(part.covers(2048, 8) && !part.covers(3072, 8) && part.covers(0, 0));
        let all: Vec<String> = of(&[]).unwrap().into_iter().map(|t| t.name).collect();
        assert_eq!(all, ["sda", "sdb"]);
        assert_eq!(of(&["sdx"]).unwrap_err(), "'sdx' is no disk of this machine; there are dm-0, sda, sdb");
        assert!(of(&["sda", "sda1"]).unwrap_err().contains("on one disk, sda"));
        for odd in ["", "..", "/", "../block/sda"] {
            assert!(of(&[odd]).is_err(), "{odd}");
        }
    }
}
