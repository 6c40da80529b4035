//! Finds the disk or partition that a word means: `sda`, `/dev/sda`, or a link such as `/dev/disk/by-id/…`.

use crate::disks::Disk;
use crate::machine::Machine;
use crate::tree::Tree;
use fairhead_sim::job::nearest;
use std::path::Path;

impl Machine {
    /// The disk that the word means.
    ///
    /// # Errors
    ///
    /// One line: it is a partition, and of which disk; or there is no such disk, and which there are.
    pub fn find(&self, tree: &Tree, word: &str) -> Result<&Disk, String> {
        let name = name(tree, word);
        if let Some(disk) = self.disk(&name) {
            return Ok(disk);
        }
        if let Some(disk) = tree.disk_of_partition(&name) {
            return Err(format!("{name} is a partition of {disk}; a scheduler is a disk's: write {disk}"));
        }
        if !name.is_empty() && tree.exists(&format!("sys/block/{name}")) {
            return Err(format!(
                "{name} is empty, hidden, or of the kernel's own use: it has no requests to schedule"
            ));
        }
        let names = || self.disks.iter().map(|d| d.name.as_str());
        if self.disks.is_empty() {
            let host = match &self.container {
                Some(kind) => format!(": this is a container ({kind}); run this on its host"),
                None => String::new(),
            };
            return Err(format!("no disk '{word}': /sys/block shows none{host}"));
        }
        let hint = nearest(&name, names()).map(|n| format!("; did you mean '{n}'?")).unwrap_or_default();
        Err(format!("no disk '{word}'; there are {}{hint}", names().collect::<Vec<_>>().join(", ")))
    }
}

/// The name in `/sys/block` or of a partition: there, a slash of `/dev/cciss/c0d0` is an exclamation mark.
pub(crate) fn name(tree: &Tree, word: &str) -> String {
    let path = word.strip_prefix('/').filter(|_| tree.is_live());
    let file = path.and_then(|p| tree.place(p).canonicalize().ok());
    let path = file.as_deref().and_then(Path::to_str).unwrap_or(word);
    path.strip_prefix("/dev/").unwrap_or(path).replace('/', "!")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_a_partition_and_a_typing_error() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("sys/block/nvme0n1/size", "100");
        write("sys/block/nvme0n1/nvme0n1p2/partition", "2");
        write("sys/block/loop7/size", "0");
        let tree = Tree::new(root.path());
        let machine = Machine::read(&tree);
        let find = |word| machine.find(&tree, word).map(|d| d.name.clone());
        assert_eq!(find("/dev/nvme0n1").unwrap(), "nvme0n1");
        assert_eq!(
            find("nvme0n1p2").unwrap_err(),
            "nvme0n1p2 is a partition of nvme0n1; a scheduler is a disk's: write nvme0n1"
        );
        assert_eq!(
            find("nvme1n1").unwrap_err(),
            "no disk 'nvme1n1'; there are nvme0n1; did you mean 'nvme0n1'?"
        );
        assert!(find("loop7").unwrap_err().starts_with("loop7 is empty"));
        assert!(find("").is_err());
    }
}
