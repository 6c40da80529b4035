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
        let text = tree.text("proc/self/mounts").unwrap_or_default();
        let disks = tree.names("sys/block");
        text.lines().filter_map(|line| Self::parse(tree, &disks, line)).collect()
    }

    fn parse(tree: &Tree, disks: &[String], line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (device, folder, fs, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let disk = disk_of(tree, disks, &unescaped(device))?;
        Some(Self {
            disk,
            device: device.to_owned(),
            folder: unescaped(folder),
            fs: fs.to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
        })
    }
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
