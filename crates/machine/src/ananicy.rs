//! Ananicy, a daemon that gives programs I/O classes by their names.
//!
//! Its files of rules have a JSON object in each line: `{"name": "rsync", "ioclass": "idle"}`.
//
//= https://github.com/nefelim4ag/Ananicy README

use crate::tree::Tree;

/// The first file of rules below `/etc/ananicy.d` that sets an I/O class; `None` if there is none.
pub(crate) fn sets_classes(tree: &Tree) -> Option<String> {
    let (mut to_do, mut left) = (vec!["etc/ananicy.d".to_owned()], FILES_MAX);
    while let Some(folder) = to_do.pop() {
        for name in tree.names(&folder) {
            let path = format!("{folder}/{name}");
            let is_rule = [".rules", ".types"].iter().any(|end| name.ends_with(end));
            if !is_rule {
                if tree.place(&path).symlink_metadata().is_ok_and(|m| m.is_dir()) {
                    to_do.push(path);
                }
                continue;
            }
            left -= 1;
            if left == 0 {
                return None;
            }
            let text = tree.text(&path).unwrap_or_default();
            let is_set = |l: &str| !l.trim_start().starts_with('#') && l.contains("\"ioclass\"");
            if text.lines().any(is_set) {
                return Some(format!("/{path}"));
            }
        }
    }
    None
}

/// The largest number of files that are read. Distributions ship a few hundred.
const FILES_MAX: usize = 2000;
