//! The files that the kernel knows: their numbers, the way to each, and where each begins on the disk that
//! the scheduler sees.
//!
//! A node is found by device and inode, so that hard links are one node. It stays as long as the kernel has
//! not forgotten it as often as it has looked it up, and the kernel may know millions. Therefore a node has a
//! [way](Way) by which its file is opened again, and only the most recently used ones have a
//! [descriptor](Descriptors) at a time. A descriptor of a node only names the file (`O_PATH`).
//!
//! ```text
//!   look up a/b ─► device 8, inode 77 ─► node 5, once        forget 5, once ─► gone
//!   node 5: descriptor, if there is one   else handle, if the file system has them   else name in a folder
//! ```
//!
//! A handle leads to the file itself. A name may lead to another file by now: then the node is stale. To keep
//! that rare, a name follows what is renamed in the mount, and a file whose name is removed in the mount
//! keeps a descriptor until the kernel forgets it. Folders that are moved below the mount may even have names
//! that lead round in a circle: these nodes are stale until they are looked up again.
//!
//! What it does not do: open, read or write anything; [`Found::open`] is called without the lock.

use super::descriptors::{Descriptors, Evicted};
use super::file_handle::FileHandle;
use super::protocol::ROOT;
use crate::bio::Errno;
use fairhead_core::units::Sector;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};

/// Memory of fewer nodes is not worth the time that it takes to give it back.
const MANY_GONE: usize = 4 << 10;

/// The least region of a file, in bytes.
const REGION_MIN: u64 = 64 << 20;

/// A file, whichever name it has: device, inode and kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key(u64, u64, u32);

impl Key {
    pub(super) fn of(meta: &Metadata) -> Self {
        Self(meta.dev(), meta.ino(), meta.mode() & libc::S_IFMT)
    }
}

/// The way to a file that has no descriptor at the moment.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// It always has one.
    Open(Arc<File>),
    Handle {
        mount: Arc<File>,
        handle: FileHandle,
    },
    Name {
        folder: u64,
        name: OsString,
    },
}

impl Way {
    /// Whether this is the way to the same file, as far as ways can tell.
    fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Handle { handle, .. }, Self::Handle { handle: other, .. }) => handle == other,
            _ => true,
        }
    }
}

/// The way from what has a descriptor to a node.
#[derive(Debug)]
pub(super) enum Found {
    Here(Arc<File>),
    ByHandle(Arc<File>, FileHandle),
    /// One name after the other, from a folder.
    ByNames(Arc<File>, Vec<Step>),
}

#[derive(Debug)]
pub(super) struct Step {
    key: Key,
    name: OsString,
}

impl Found {
    /// Opens the file, to name it.
    ///
    /// # Errors
    /// `ESTALE` if it is gone, or its name leads to another file.
    pub(super) fn open(self) -> Result<Arc<File>, Errno> {
        match self {
            Self::Here(file) => Ok(file),
            Self::ByHandle(mount, handle) => Ok(Arc::new(handle.open(&mount)?)),
            Self::ByNames(folder, steps) => steps.iter().try_fold(folder, |folder, step| {
                let file = open_path(&folder, &step.name).map_err(|e| match e.0 {
                    libc::ENOENT | libc::ENOTDIR => Errno(libc::ESTALE),
                    _ => e,
                })?;
                let is_same = Key::of(&file.metadata()?) == step.key;
                if is_same { Ok(Arc::new(file)) } else { Err(Errno(libc::ESTALE)) }
            }),
        }
    }
}

/// Opens a name in a folder, to name it.
pub(super) fn open_path(folder: &File, name: &OsStr) -> Result<File, Errno> {
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, how, Mode::empty())?.into())
}

#[derive(Debug)]
struct Node {
    key: Key,
    lookups: u64,
    /// The nodes whose way leads through this folder. It is known as long as there are any.
    children: u64,
    start: Option<Sector>,
    way: Way,
    /// Its place among the descriptors.
    place: Option<usize>,
    /// What a program has open. It names the file as well as any descriptor.
    opened: Weak<File>,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Nodes {
    /// Numbers begin at 1, the root. Trees, as tables would be copied while they grow, which takes tens of
    /// milliseconds for a million nodes, and stay as large as they were when the nodes have gone.
    all: BTreeMap<u64, Node>,
    by_key: BTreeMap<Key, u64>,
    descriptors: Descriptors,
    last: u64,
    /// Nodes with a name as their way.
    names: usize,
    /// Nodes that keep a descriptor because they have no other way any more.
    nameless: usize,
    /// Nodes that have gone since memory was last given back.
    gone: usize,
    /// Where the next file begins.
    next_sector: u64,
}

/// Descriptors to be closed, without the lock.
pub(super) type Closed = Vec<Arc<File>>;

impl Nodes {
    /// The root alone. At most `descriptors` others have a descriptor at a time.
    pub(super) fn new(root: File, descriptors: usize) -> io::Result<Self> {
        let key = Key::of(&root.metadata()?);
        let node = Node {
            key,
            lookups: 1,
            children: 0,
            start: None,
            way: Way::Open(Arc::new(root)),
            place: None,
            opened: Weak::new(),
        };
        Ok(Self {
            all: BTreeMap::from([(ROOT, node)]),
            by_key: BTreeMap::from([(key, ROOT)]),
            descriptors: Descriptors::new(descriptors),
            last: ROOT,
            names: 0,
            nameless: 0,
            gone: 0,
            next_sector: 0,
        })
    }

    /// A descriptor that names the node, if there is one.
    fn descriptor(&mut self, number: u64) -> Option<Arc<File>> {
        let node = self.all.get(&number)?;
        if let Way::Open(file) = &node.way {
            return Some(Arc::clone(file));
        }
        match node.place {
            Some(place) => Some(self.descriptors.get(place)),
            None => node.opened.upgrade(),
        }
    }

    /// The way to a node.
    ///
    /// # Errors
    /// `ESTALE` if there is none of that number, or its names lead round in a circle.
    pub(super) fn find(&mut self, number: u64) -> Result<Found, Errno> {
        let mut steps = Vec::new();
        let mut at = number;
        // A node of the way; each one twice as far along it as the one before, so that a circle comes back.
        let mut mark = number;
        loop {
            if let Some(file) = self.descriptor(at) {
                steps.reverse();
                return Ok(if at == number { Found::Here(file) } else { Found::ByNames(file, steps) });
            }
            let node = self.all.get(&at).ok_or(Errno(libc::ESTALE))?;
            match &node.way {
                Way::Name { folder, name } => {
                    steps.push(Step { key: node.key, name: name.clone() });
                    at = *folder;
                    if at == mark {
                        return Err(Errno(libc::ESTALE));
                    }
                    if steps.len().is_power_of_two() {
                        mark = at;
                    }
                }
                Way::Handle { mount, handle } if at == number => {
                    return Ok(Found::ByHandle(Arc::clone(mount), handle.clone()));
                }
                // A mount without handles in a folder that has one.
                Way::Handle { .. } | Way::Open(_) => return Err(Errno(libc::ESTALE)),
            }
        }
    }

    /// Counts one more look-up of the file, if its node has a descriptor: then it is certainly the same file.
    pub(super) fn seen_again(&mut self, key: Key) -> Option<u64> {
        let number = *self.by_key.get(&key)?;
        let node = self.all.get_mut(&number)?;
        if node.place.is_none() && node.opened.strong_count() == 0 && number != ROOT {
            return None;
        }
        if matches!(node.way, Way::Name { .. }) {
            return None;
        }
        node.lookups += 1;
        Some(number)
    }

    /// The node of what a descriptor names, looked up once more. If its inode number was that of another file
    /// before, it is a new node.
    pub(super) fn know(&mut self, file: Arc<File>, key: Key, way: Way) -> (u64, Closed) {
        let known = self.by_key.get(&key).copied();
        let known = known.filter(|number| self.all[number].way.fits(&way));
        let number = known.unwrap_or_else(|| {
            self.last += 1;
            let node = Node {
                key,
                lookups: 0,
                children: 0,
                start: None,
                way: way.clone(),
                place: None,
                opened: Weak::new(),
            };
            self.all.insert(self.last, node);
            self.by_key.insert(key, self.last);
            self.arrived(self.last);
            self.last
        });
        self.all.get_mut(&number).expect("just seen").lookups += 1;
        let mut closed = if known.is_some() { self.goes_by(number, way) } else { Closed::new() };
        closed.extend(self.keep(number, file));
        (number, closed)
    }

    /// Counts a new way.
    fn arrived(&mut self, number: u64) {
        match self.all[&number].way {
            Way::Name { folder, .. } => {
                self.names += 1;
                if let Some(folder) = self.all.get_mut(&folder) {
                    folder.children += 1;
                }
            }
            Way::Open(_) => self.nameless += 1,
            Way::Handle { .. } => {}
        }
    }

    /// Takes a way out of the counts. Returns the folder that it led through.
    fn left(&mut self, way: &Way) -> Option<u64> {
        match way {
            Way::Name { folder, .. } => {
                self.names -= 1;
                let folder_node = self.all.get_mut(folder)?;
                folder_node.children -= 1;
                Some(*folder)
            }
            Way::Open(_) => {
                self.nameless -= 1;
                None
            }
            Way::Handle { .. } => None,
        }
    }

    /// A node is found by another way from now on.
    fn goes_by(&mut self, number: u64, way: Way) -> Closed {
        let node = self.all.get_mut(&number).expect("just seen");
        if number == ROOT || matches!(node.way, Way::Handle { .. }) && matches!(way, Way::Handle { .. }) {
            return Closed::new();
        }
        let old = std::mem::replace(&mut node.way, way);
        self.arrived(number);
        let mut closed = Closed::new();
        if let Some(folder) = self.left(&old) {
            self.drop_unused(folder, &mut closed);
        }
        if let Way::Open(file) = old {
            closed.push(file);
        }
        closed
    }

    /// Keeps a descriptor that names a node. Returns those to close.
    pub(super) fn keep(&mut self, number: u64, file: Arc<File>) -> Option<Arc<File>> {
        match self.all.get(&number) {
            Some(Node { place: None, way: Way::Handle { .. } | Way::Name { .. }, .. }) => {}
            _ => return Some(file),
        }
        let (place, evicted) = self.descriptors.keep(number, file);
        self.all.get_mut(&number).expect("just seen").place = Some(place);
        let Evicted { node, file } = evicted?;
        if let Some(node) = self.all.get_mut(&node) {
            node.place = None;
        }
        Some(file)
    }

    /// Files that have a descriptor, from a place on, at most `most`: places, nodes and descriptors. Folders
    /// and the like take no space to speak of, and a program may be in one that was removed.
    pub(super) fn files_from(&self, place: usize, most: usize) -> Vec<(usize, u64, Arc<File>)> {
        let mut files = Vec::new();
        let mut at = place;
        while files.is_empty() {
            let some = self.descriptors.from(at, most);
            let Some((last, ..)) = some.last() else { break };
            at = last + 1;
            let is_file = |node: &u64| self.all.get(node).is_some_and(|n| n.key.2 == libc::S_IFREG);
            files = some;
            files.retain(|(_, node, _)| is_file(node));
        }
        files
    }

    /// Takes a node's descriptor. The node stays, with the way that it has.
    pub(super) fn close_descriptor(&mut self, number: u64) -> Option<Arc<File>> {
        let place = self.all.get_mut(&number)?.place.take()?;
        Some(self.descriptors.remove(place))
    }

    /// Whether a node is on this device.
    pub(super) fn is_on(&self, number: u64, device: u64) -> bool {
        self.all.get(&number).is_some_and(|node| node.key.0 == device)
    }

    /// A program opens a node's file. What it has open names the node, as long as it is open.
    pub(super) fn opened(&mut self, number: u64, file: &Arc<File>) {
        if let Some(node) = self.all.get_mut(&number).filter(|n| n.opened.strong_count() == 0) {
            node.opened = Arc::downgrade(file);
        }
    }

    /// Whether names lead to some nodes, so that they have to hear of a change of names.
    pub(super) const fn has_names(&self) -> bool {
        self.names > 0
    }

    /// A file's name was removed in the mount. If the kernel knows it, the descriptor stays until it is
    /// forgotten, unless too many do already.
    pub(super) fn removed(&mut self, key: Key, file: Arc<File>) -> Closed {
        let known = self.by_key.get(&key).copied().filter(|_| self.nameless <= self.descriptors.most());
        match known {
            Some(number) if number != ROOT => self.goes_by(number, Way::Open(file)),
            _ => vec![file],
        }
    }

    /// A file got another name in the mount.
    pub(super) fn renamed(&mut self, key: Key, folder: u64, name: &OsStr) -> Closed {
        match self.by_key.get(&key).copied() {
            Some(number) if matches!(self.all[&number].way, Way::Name { .. }) => {
                self.goes_by(number, Way::Name { folder, name: name.to_owned() })
            }
            _ => Closed::new(),
        }
    }

    /// The kernel drops `lookups` of its references to this node.
    pub(super) fn forget(&mut self, number: u64, lookups: u64, closed: &mut Closed) {
        let Some(node) = self.all.get_mut(&number).filter(|_| number != ROOT) else { return };
        node.lookups = node.lookups.saturating_sub(lookups);
        self.drop_unused(number, closed);
    }

    /// Whether it is time to give memory back: many nodes have gone, more than are left.
    pub(super) fn gives_back(&mut self) -> bool {
        let is_much = self.gone >= MANY_GONE.max(self.all.len());
        if is_much {
            self.gone = 0;
        }
        is_much
    }

    /// Drops a node that neither the kernel nor another node needs, and the folders that only it needed.
    fn drop_unused(&mut self, mut number: u64, closed: &mut Closed) {
        while let Some(node) = self.all.get(&number) {
            if node.lookups > 0 || node.children > 0 {
                return;
            }
            let node = self.all.remove(&number).expect("just seen");
            self.gone += 1;
            if self.by_key.get(&node.key) == Some(&number) {
                self.by_key.remove(&node.key);
            }
            closed.extend(node.place.map(|place| self.descriptors.remove(place)));
            let folder = self.left(&node.way);
            if let Way::Open(file) = node.way {
                closed.push(file);
            }
            let Some(folder) = folder else { return };
            number = folder;
        }
    }

    /// Where a file begins: in the order in which they were first opened.
    pub(super) fn region(&mut self, node: u64, size: u64) -> Sector {
        let next = Sector(self.next_sector);
        let Some(n) = self.all.get_mut(&node) else { return next };
        if let Some(start) = n.start {
            return start;
        }
        n.start = Some(next);
        self.next_sector += size.max(REGION_MIN).next_multiple_of(1 << 20) / 512 + 2048;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> Arc<File> {
        Arc::new(File::open("/dev/null").unwrap())
    }

    fn named(folder: u64, name: &str) -> Way {
        Way::Name { folder, name: name.into() }
    }

    const fn key(inode: u64) -> Key {
        Key(1, inode, libc::S_IFREG)
    }

    #[test]
    fn a_folder_is_known_as_long_as_a_name_leads_through_it() {
        let mut nodes = Nodes::new(File::open(".").unwrap(), 10).unwrap();
        let (folder, _) = nodes.know(null(), key(1), named(ROOT, "a"));
        let (file, _) = nodes.know(null(), key(2), named(folder, "b"));
        assert_eq!(nodes.know(null(), key(2), named(folder, "b")).0, file, "another look-up");
        let mut closed = Closed::new();
        nodes.forget(folder, 1, &mut closed);
        nodes.forget(file, 1, &mut closed);
        assert!(nodes.find(folder).is_ok() && closed.is_empty());
        // It is found by a name elsewhere, so the folder is not needed any more.
        closed.extend(nodes.renamed(key(2), ROOT, OsStr::new("c")));
        assert!(nodes.find(folder).is_err() && closed.len() == 1);
        nodes.forget(file, 1, &mut closed);
        assert_eq!((nodes.all.len(), nodes.by_key.len(), nodes.names, closed.len()), (1, 1, 0, 2));
    }

    #[test]
    fn memory_is_given_back_when_most_nodes_have_gone() {
        let mut nodes = Nodes::new(File::open(".").unwrap(), 10).unwrap();
        let (null, many) = (null(), MANY_GONE as u64 * 3);
        let numbers: Vec<u64> =
            (1..=many).map(|i| nodes.know(Arc::clone(&null), key(i), named(ROOT, "x")).0).collect();
        let mut gave_back = Vec::new();
        for (i, number) in numbers.iter().enumerate() {
            nodes.forget(*number, 1, &mut Closed::new());
            if nodes.gives_back() {
                gave_back.push(i + 1);
            }
        }
        // As many have gone as are left with the root; then as many as it is worth it for.
        let half = (many as usize + 1).div_ceil(2);
        assert_eq!(gave_back, [half, half + MANY_GONE]);
        assert_eq!((nodes.all.len(), nodes.by_key.len()), (1, 1));
    }

    #[test]
    fn without_a_descriptor_a_node_has_the_way_to_its_file() {
        let mut nodes = Nodes::new(File::open(".").unwrap(), 1).unwrap();
        let (folder, _) = nodes.know(null(), key(1), named(ROOT, "a"));
        let (file, closed) = nodes.know(null(), key(2), named(folder, "b"));
        assert_eq!(closed.len(), 1, "one at a time");
        assert!(matches!(nodes.find(file), Ok(Found::Here(_))));
        let Ok(Found::ByNames(_, steps)) = nodes.find(folder) else { panic!("it has none") };
        assert_eq!(steps.len(), 1);
        assert!(nodes.keep(folder, null()).is_some(), "the other one goes");
        let Ok(Found::ByNames(_, steps)) = nodes.find(file) else { panic!("it has none") };
        assert_eq!((steps.len(), steps[0].key), (1, key(2)), "from the folder, which has one");
        let open = null();
        nodes.opened(file, &open);
        assert!(matches!(nodes.find(file), Ok(Found::Here(_))), "a program has it open");
    }

    #[test]
    fn names_in_a_circle_are_stale_until_they_are_looked_up_again() {
        let mut nodes = Nodes::new(File::open(".").unwrap(), 1).unwrap();
        let (b, _) = nodes.know(null(), key(1), named(ROOT, "b"));
        let (a, _) = nodes.know(null(), key(2), named(b, "a"));
        let (file, _) = nodes.know(null(), key(3), named(a, "file"));
        // Below the mount `b/a` has become `a`, and `b` then `a/b`.
        nodes.know(null(), key(1), named(a, "b"));
        let (other, _) = nodes.know(null(), key(4), named(ROOT, "other"));
        for node in [a, b, file] {
            assert!(matches!(nodes.find(node), Err(Errno(libc::ESTALE))), "node {node}");
        }
        assert!(nodes.find(other).is_ok());
        nodes.know(null(), key(2), named(ROOT, "a"));
        nodes.know(null(), key(4), named(ROOT, "other"));
        for (node, len) in [(a, 1), (b, 2), (file, 2)] {
            let Ok(Found::ByNames(_, steps)) = nodes.find(node) else { panic!("node {node} has none") };
            assert_eq!(steps.len(), len);
        }
    }

    #[test]
    fn a_long_way_is_no_circle() {
        let mut nodes = Nodes::new(File::open(".").unwrap(), 1).unwrap();
        let last = (1..=1000).fold(ROOT, |folder, i| nodes.know(null(), key(i), named(folder, "x")).0);
        nodes.know(null(), key(2000), named(ROOT, "other"));
        let Ok(Found::ByNames(_, steps)) = nodes.find(last) else { panic!("it has none") };
        assert_eq!(steps.len(), 1000);
    }

    #[test]
    fn a_file_with_the_inode_number_of_one_that_is_gone_is_a_new_node() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let Ok((handle, _)) = FileHandle::of(&file) else { return println!("skipped: no handles here") };
        let (other, _) = FileHandle::of(&File::open(".").unwrap()).unwrap();
        let way = |handle: &FileHandle| Way::Handle { mount: null(), handle: handle.clone() };
        let mut nodes = Nodes::new(File::open("/").unwrap(), 1).unwrap();
        let (old, _) = nodes.know(null(), key(5), way(&handle));
        assert_eq!(nodes.seen_again(key(5)), Some(old), "it has a descriptor");
        let (next, _) = nodes.know(null(), key(6), way(&other));
        assert_eq!(nodes.seen_again(key(5)), None, "it may be another file");
        assert_eq!(nodes.know(null(), key(5), way(&handle)).0, old);
        let (new, _) = nodes.know(null(), key(5), way(&other));
        assert!(new > next);
        nodes.forget(old, 3, &mut Closed::new());
        assert!(nodes.find(old).is_err() && nodes.find(new).is_ok());
        assert_eq!(nodes.by_key.get(&key(5)), Some(&new));
    }
}
