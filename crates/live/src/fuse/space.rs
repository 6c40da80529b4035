//! Space of files that were removed in the folder itself, not through the mount. The kernel does not hear of
//! that, so their nodes stay known, and a descriptor of a node keeps the space of its file.
//!
//! So when the file system is short of space, each file that a node has a descriptor of is asked whether it
//! still has a name. If not, the descriptor is closed. A file that a program has open in the mount stays, as
//! it does in the folder.
//!
//! ```text
//!   every second: less than a twentieth is free? ┐
//!   a caller has got ENOSPC ─────────────────────┴─► ask all descriptors, some at a time ─► close
//! ```
//!
//! Limit: of file systems that are mounted in the folder, only `ENOSPC` is heard.

use super::nodes::Nodes;
use crate::clock::Clock;
use fairhead_core::units::Duration;
use rustix::fs::fstatvfs;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How often the file system is asked, while it has space and while it is short of it.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_SHORT: Duration = Duration::from_ms(500);
/// To ask all files takes at most one part in this many of a processor's time.
const PART: u64 = 20;
/// The file system is short of space if less than one part in this many is free.
const FREE: u64 = 20;
/// The most files that are looked up under the lock of the nodes at a time.
const BATCH: usize = 256;

/// Closes what keeps space for no program. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct SpaceWatch(SyncSender<()>);

impl SpaceWatch {
    /// A thread that looks after the file system of `root` and these nodes.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(super) fn start(root: File, nodes: Arc<Mutex<Nodes>>) -> io::Result<Self> {
        let (full, signs) = mpsc::sync_channel(1);
        let work = move || watch(&root, &nodes, &signs);
        thread::Builder::new().name("fairhead-space".to_owned()).spawn(work)?;
        Ok(Self(full))
    }

    /// The answer to a caller is that there is no space.
    pub(super) fn is_full(&self) {
        // One sign is enough.
        let _ = self.0.try_send(());
    }
}

fn watch(root: &File, nodes: &Mutex<Nodes>, signs: &Receiver<()>) {
    let clock = Clock::start();
    let mut pause = PAUSE;
    loop {
        let is_full = match signs.recv_timeout(std::time::Duration::from_nanos(pause.as_ns())) {
            Ok(()) => true,
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        pause = PAUSE;
        if is_full || is_short(root) {
            let began = clock.now();
            let_go(nodes);
            pause = PAUSE_SHORT.max(clock.now().since(began) * PART);
        }
    }
}

/// Whether little space is free, or few inodes. A file system without such numbers has enough.
fn is_short(root: &File) -> bool {
    let less = |free: u64, all: u64| all > 0 && free < all / FREE;
    fstatvfs(root).is_ok_and(|stat| less(stat.f_bavail, stat.f_blocks) || less(stat.f_favail, stat.f_files))
}

/// Closes the descriptors of files without a name. Returns how many there were.
fn let_go(nodes: &Mutex<Nodes>) -> usize {
    let (mut at, mut count) = (0, 0);
    loop {
        let files = lock(nodes).files_from(at, BATCH);
        let Some((last, ..)) = files.last() else { return count };
        at = last + 1;
        let is_removed = |file: &File| file.metadata().is_ok_and(|meta| meta.nlink() == 0);
        let removed: Vec<u64> =
            files.iter().filter(|(.., file)| is_removed(file)).map(|(_, node, _)| *node).collect();
        count += removed.len();
        let closed: Vec<Arc<File>> =
            removed.into_iter().filter_map(|node| lock(nodes).close_descriptor(node)).collect();
        // Without the lock, as the space is given back now.
        drop((closed, files));
    }
}

fn lock(nodes: &Mutex<Nodes>) -> MutexGuard<'_, Nodes> {
    nodes.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::nodes::{Key, Way, open_path};
    use crate::fuse::protocol::ROOT;
    use std::ffi::OsStr;
    use std::fs;

    #[test]
    fn files_without_a_name_are_let_go_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let folder = File::open(dir.path()).unwrap();
        let all = 3 * BATCH;
        let mut nodes = Nodes::new(folder.try_clone().unwrap(), 2 * all).unwrap();
        let mut know = |name: &str| {
            fs::write(dir.path().join(name), b"x").unwrap();
            let file = Arc::new(open_path(&folder, OsStr::new(name)).unwrap());
            let key = Key::of(&file.metadata().unwrap());
            let (node, _) = nodes.know(Arc::clone(&file), key, Way::Name { folder: ROOT, name: name.into() });
            (node, Arc::downgrade(&file))
        };
        let known: Vec<_> = (0..all).map(|n| know(&format!("f{n}"))).collect();
        let is_gone = |n: usize| n.is_multiple_of(3) || n == all - 1;
        (0..all)
            .filter(|&n| is_gone(n))
            .for_each(|n| fs::remove_file(dir.path().join(format!("f{n}"))).unwrap());
        let nodes = Mutex::new(nodes);
        assert_eq!(let_go(&nodes), all / 3 + 1);
        for (n, (node, file)) in known.iter().enumerate() {
            assert_eq!(file.upgrade().is_none(), is_gone(n), "f{n}");
            // It is known still, and stale until it is looked up.
            let found = lock(&nodes).find(*node).and_then(|found| found.open());
            assert_eq!(found.is_err(), is_gone(n), "f{n}");
        }
        assert_eq!(let_go(&nodes), 0);
    }
}
