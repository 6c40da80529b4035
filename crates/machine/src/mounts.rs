//! Mounted file systems and the disks that they are on.

use crate::tree::Tree;

/// A mounted file system on a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mount {
    /// The disk's name in `/sys/block`.
    pub disk: String,
    /// The device as it was mounted, such as `/dev/sda1`.
    pub device: String,
    /// The folder.
    pub folder: String,
    /// The type of the file system.
    pub fs: String,
    /// The options in force.
    pub options: Vec<String>,
}

impl Mount {
    /// Whether the option is in force; `discard` is also `discard=async`.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option)
    }

    /// The file systems that are on a disk that `/sys/block` knows.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let disks = tree.names("sys/block");
        let text = ["proc/self/mounts", "proc/mounts"].iter().find_map(|f| tree.text(f));
        let lines: Vec<[String; 4]> = match text {
            Some(text) => text.lines().filter_map(four_words).collect(),
            // A copy may have the other list only.
            None => {
                let text = tree.text("proc/self/mountinfo").unwrap_or_default();
                text.lines().filter_map(of_mountinfo).collect()
            }
        };
        lines.iter().filter_map(|words| Self::new(tree, &disks, words)).collect()
    }

    fn new(tree: &Tree, disks: &[String], words: &[String; 4]) -> Option<Self> {
        let [device, folder, fs, options] = words;
        let disk = disk_of(tree, disks, &unescaped(device))?;
        Some(Self {
            disk,
            device: device.clone(),
            folder: unescaped(folder),
            fs: fs.clone(),
            options: options.split(',').map(str::to_owned).collect(),
        })
    }
}

/// Device, folder, type and options, as `/proc/self/mounts` has them.
fn four_words(line: &str) -> Option<[String; 4]> {
    let mut words = line.split(' ').map(str::to_owned);
    Some([words.next()?, words.next()?, words.next()?, words.next()?])
}

/// Device, folder, type and options of a line of `/proc/self/mountinfo`, which has the options of the mount
/// and those of the file system apart: `36 35 8:1 / /srv rw,noatime shared:1 - ext4 /dev/sda1 rw,discard`.
fn of_mountinfo(line: &str) -> Option<[String; 4]> {
    let (mount, fs) = line.split_once(" - ")?;
    let (mut mount, mut fs) = (mount.split(' ').skip(4), fs.split(' '));
    let (folder, of_mount) = (mount.next()?, mount.next()?);
    let (kind, device, of_fs) = (fs.next()?, fs.next()?, fs.next()?);
    Some([device.to_owned(), folder.to_owned(), kind.to_owned(), format!("{of_mount},{of_fs}")])
}

/// The path with `\040` and other characters in octal as they are.
fn unescaped(path: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), path.as_bytes());
    while let Some((&first, more)) = rest.split_first() {
        let digits = more.get(..3).filter(|_| first == b'\\').and_then(|d| std::str::from_utf8(d).ok());
        let byte = digits.and_then(|d| u8::from_str_radix(d, 8).ok());
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &more[3..] } else { more };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The disk of a device file: itself, the disk that it is a partition of, or the device mapper's disk of that
/// name.
fn disk_of(tree: &Tree, disks: &[String], device: &str) -> Option<String> {
    let name = device.strip_prefix("/dev/")?;
    let is = |disk: &&String| match name.strip_prefix("mapper/") {
        Some(mapped) => tree.text(&format!("sys/block/{disk}/dm/name")).as_deref() == Some(mapped),
        None => {
            disk.as_str() == name || (!name.contains('/') && tree.exists(&format!("sys/block/{disk}/{name}")))
        }
    };
    disks.iter().find(is).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_in_octal_are_put_back() {
        assert_eq!(unescaped("/mnt/my\\040disk\\011\\134x"), "/mnt/my disk\t\\x");
        assert_eq!(unescaped("/a\\04"), "/a\\04");
        assert_eq!(unescaped("/\\303\\274\\"), "/\u{fc}\\");
    }
}
