//! The exports of a server while it runs. They may come, go, and change their size.
//!
//! ```text
//!   add ─► served ──remove──► closing ──last connection──► leaving ──last request──► gone
//!             └─resize─► served, with the new size; the old one is closing, for the connections that know it
//! ```
//!
//! An export has a number as long as a connection or a request needs it; [`Session`](super::Session)s know
//! exports by that number. One that is closing is hidden from clients that have not chosen yet. Its image
//! stays open and locked until the disk has no request of it. Then its group goes, too, if an export made it
//! and no other export is in it.
//!
//! What it does not do: open files and take locks, which may take long and is not for the engine's thread
//! (`desk.rs`).

use super::session::{Access, Facts};
use crate::bio::FileId;
use crate::counters::{Books, Counters};
use crate::disk::GAP;
use crate::engine::Context;
use crate::error::Error;
use crate::mapped::Map;
use crate::peer::{Allowed, Peer};
use crate::store::{FileTable, Identity};
use fairhead_core::units::{IoPrio, Sector};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Index;
use std::path::PathBuf;
use std::sync::Arc;

/// An export, as the front needs it.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) file: FileId,
    pub(super) path: PathBuf,
    /// What tells the image from others.
    pub(super) identity: Option<Identity>,
    pub(super) start: Sector,
    pub(super) group: String,
    pub(super) prio: IoPrio,
    /// The image's lock, which ends when the last export of the image drops this.
    pub(super) lock: Arc<File>,
    /// The clients that may open it, and the connections that it may have.
    pub(super) allowed: Allowed,
    pub(super) connections_max: usize,
    /// Whether its pages can be sent as they are; and where they are, if it has no holes.
    pub(super) has_pages: bool,
    pub(super) map: Option<Arc<Map>>,
    pub(super) counters: Arc<Counters>,
}

/// The connections of an export, and whether it takes more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Use {
    /// Connections that have chosen it and have not ended.
    open: usize,
    /// Those, and the ones that have ended and whose memory the kernel still has.
    known: usize,
    is_closing: bool,
}

/// An export as `ctl exports` lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// Its number, unless it has no connections any more.
    pub(crate) number: Option<usize>,
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) size: u64,
    pub(crate) group: String,
    pub(crate) read_only: bool,
    pub(crate) connections: usize,
    /// The clients that have these, and how many each has.
    pub(crate) peers: BTreeMap<String, usize>,
    /// Whether it was removed, or has another size by now, and some connections still use it.
    pub(crate) is_closing: bool,
    pub(crate) identity: Option<Identity>,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ExportTable {
    /// By number. What is at a number that is free, no client sees.
    facts: Vec<Facts>,
    served: Vec<Option<(Served, Use)>>,
    /// Exports without connections of which the disk may have requests.
    leaving: Vec<Served>,
    has_closing: bool,
    /// Grows whenever [`Self::access`] may say something else.
    version: u64,
    files: Arc<FileTable>,
    books: Books,
    /// Where the sectors of the next image begin.
    next: Sector,
    /// The groups that exports made, by their paths.
    made: BTreeSet<String>,
}

impl ExportTable {
    /// The exports that there are from the start. `taken` are sectors and bytes of other images of the disk.
    pub(super) fn new(
        exports: Vec<(Facts, Served)>,
        taken: impl Iterator<Item = (Sector, u64)>,
        files: Arc<FileTable>,
        books: Books,
    ) -> Self {
        let mut table = Self {
            facts: Vec::new(),
            served: Vec::new(),
            leaving: Vec::new(),
            has_closing: false,
            version: 0,
            files,
            books,
            next: taken.map(|(start, size)| after(start, size)).max().unwrap_or(Sector(0)),
            made: BTreeSet::new(),
        };
        for (facts, served) in exports {
            table.next = Sector(table.next.0.max(after(served.start, facts.size).0));
            table.put(facts, served);
        }
        table
    }

    /// Makes the groups of the exports that there are from the start. If there can be no more, their clients
    /// hear of it.
    pub(super) fn begin(&mut self, context: &mut Context) {
        let groups: Vec<String> = self.all().map(|(_, served, _)| served.group.clone()).collect();
        groups.iter().for_each(|group| drop(self.make_group(context, group)));
    }

    /// What clients may learn, by number.
    pub(super) fn facts(&self) -> &[Facts] {
        &self.facts
    }

    fn all(&self) -> impl Iterator<Item = (usize, &Served, Use)> {
        let all = self.served.iter().enumerate();
        all.filter_map(|(i, one)| one.as_ref().map(|(served, uses)| (i, served, *uses)))
    }

    /// Returns a number that grows whenever exports change, and what clients may choose.
    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    /// What a client that has not chosen its export may choose now.
    pub(super) fn access(&self, peer: &Peer) -> Vec<Access> {
        let mut open = BTreeMap::<&str, usize>::new();
        self.all().for_each(|(i, _, uses)| *open.entry(&self.facts[i].name).or_default() += uses.open);
        let access = |(i, one): (usize, &Option<(Served, Use)>)| match one {
            Some((served, uses)) if !uses.is_closing && served.allowed.allows(peer) => {
                let most = served.connections_max;
                let is_full =
                    most < usize::MAX && open.get(&*self.facts[i].name).is_some_and(|&open| open >= most);
                if is_full { Access::Full } else { Access::Open }
            }
            _ => Access::Hidden,
        };
        self.served.iter().enumerate().map(access).collect()
    }

    fn uses(&mut self, number: usize) -> &mut Use {
        &mut self.served[number].as_mut().expect("a connection keeps its export").1
    }

    /// A connection has chosen an export.
    pub(super) fn joined(&mut self, number: usize) {
        self.changed_use(number);
        let uses = self.uses(number);
        (uses.open, uses.known) = (uses.open + 1, uses.known + 1);
    }

    /// A connection of this export has ended.
    pub(super) fn ended(&mut self, number: usize) {
        self.changed_use(number);
        self.uses(number).open -= 1;
    }

    /// Of an export that takes any number of connections, it does not matter how many there are.
    fn changed_use(&mut self, number: usize) {
        let is_limited = self[number].connections_max < usize::MAX;
        self.version += u64::from(is_limited);
    }

    /// The kernel has none of its memory any more.
    pub(super) fn forgotten(&mut self, number: usize) {
        self.uses(number).known -= 1;
    }

    /// The image of this export gets holes. One image may be several exports'.
    pub(super) fn thin(&self, number: usize) {
        let Some(map) = &self[number].map else { return };
        let maps = self.all().filter_map(|(_, served, _)| served.map.as_ref());
        maps.filter(|m| m.is_of_same_file(map)).for_each(|m| m.thin());
    }

    /// The number of the export of this name that clients can choose.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.all().find(|(i, _, uses)| !uses.is_closing && self.facts[*i].name == name).map(|(i, ..)| i)
    }

    /// The numbers of all exports of an image, also of those that are closing.
    pub(super) fn of_image(&self, identity: Identity) -> Vec<usize> {
        self.all().filter(|(_, served, _)| served.identity == Some(identity)).map(|(i, ..)| i).collect()
    }

    fn put(&mut self, facts: Facts, served: Served) {
        self.version += 1;
        let one = Some((served, Use::default()));
        match self.served.iter().position(Option::is_none) {
            Some(free) => (self.facts[free], self.served[free]) = (facts, one),
            None => {
                self.facts.push(facts);
                self.served.push(one);
            }
        }
    }

    /// An export comes: its sectors lie behind all others, and its group is made if there is none.
    ///
    /// # Errors
    /// If there can be no group.
    pub(super) fn add(&mut self, context: &mut Context, facts: Facts, served: Served) -> Result<(), Error> {
        self.make_group(context, &served.group)?;
        let start = self.next;
        self.next = after(start, facts.size);
        self.books.add(&facts.name, &served.counters);
        self.put(facts, Served { start, ..served });
        Ok(())
    }

    /// The export goes when its connections have. Returns its number, and those under which clients know it
    /// with another size.
    pub(super) fn remove(&mut self, number: usize) -> Vec<usize> {
        let name = self.facts[number].name.clone();
        self.books.remove(&name);
        self.close(number);
        self.all().filter(|(i, ..)| self.facts[*i].name == name).map(|(i, ..)| i).collect()
    }

    /// Returns how many connections these have.
    pub(super) fn connections(&self, numbers: &[usize]) -> usize {
        self.all().filter(|(i, ..)| numbers.contains(i)).map(|(.., uses)| uses.open).sum()
    }

    /// No client may choose this export any more.
    fn close(&mut self, number: usize) {
        self.has_closing = true;
        self.version += 1;
        self.uses(number).is_closing = true;
    }

    /// Writes that end behind this byte of the image are refused from now on.
    pub(super) fn bound(&mut self, numbers: &[usize], end: u64) {
        numbers.iter().for_each(|&number| self.facts[number].write_end = end);
    }

    /// New connections see another size; those that there are keep what they know.
    pub(super) fn resize(&mut self, numbers: &[usize], size: u64) {
        for &number in numbers {
            self.facts[number].write_end = size;
            let Some((served, Use { is_closing: false, .. })) = &self.served[number] else { continue };
            let (mut served, mut facts) = (served.clone(), self.facts[number].clone());
            if size > facts.size {
                // What is new has sectors of its own; they would be another image's otherwise.
                served.start = self.next;
                self.next = after(self.next, size);
                // And it is a hole.
                served.map = None;
            }
            facts.size = size;
            self.close(number);
            self.put(facts, served);
        }
    }

    /// Whether there is anything to do for [`Self::let_go`].
    pub(super) const fn has_closing(&self) -> bool {
        self.has_closing
    }

    /// Removes the exports that no connection uses any more, and closes their images once the disk has no
    /// request of them.
    pub(super) fn let_go(&mut self, context: &mut Context) {
        for one in &mut self.served {
            if let Some((served, _)) = one.take_if(|(_, uses)| uses.is_closing && uses.known == 0) {
                self.leaving.push(served);
            }
        }
        let is_used = |file: FileId| self.served.iter().flatten().any(|(served, _)| served.file == file);
        let (stay, go) = std::mem::take(&mut self.leaving)
            .into_iter()
            .partition(|served| !is_used(served.file) && context.queue.knows(served.file));
        self.leaving = stay;
        let mut go: Vec<Served> = go;
        go.sort_by_key(|served| served.file.0);
        for served in &go {
            self.drop_group(context, &served.group);
        }
        go.dedup_by_key(|served| served.file.0);
        for served in go {
            if !self.served.iter().flatten().any(|(other, _)| other.file == served.file) {
                context.queue.forget(served.file);
                self.files.remove(served.file);
            }
        }
        self.has_closing =
            !self.leaving.is_empty() || self.served.iter().flatten().any(|(_, uses)| uses.is_closing);
    }

    fn make_group(&mut self, context: &mut Context, path: &str) -> Result<(), Error> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let paths = (1..=parts.len()).map(|n| parts[..n].join("/"));
        let missing: Vec<String> = paths.filter(|path| context.groups.find(path).is_none()).collect();
        context.groups.ensure(context.now, &mut context.queue, path)?;
        self.made.extend(missing);
        Ok(())
    }

    /// The group of an export that went goes, too, and those around it that only it needed.
    fn drop_group(&mut self, context: &mut Context, path: &str) {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        for n in (1..=parts.len()).rev() {
            let path = parts[..n].join("/");
            let is_used = self.all().any(|(_, served, _)| {
                served.group.split('/').filter(|part| !part.is_empty()).eq(parts[..n].iter().copied())
            });
            if is_used || !self.made.contains(&path) {
                return;
            }
            let gone = context.groups.remove(context.now, &mut context.queue, &path);
            if gone.is_err() && context.groups.find(&path).is_some() {
                // There are groups in it.
                return;
            }
            self.made.remove(&path);
        }
    }

    /// All exports, also those that are closing, by name.
    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |(i, served, uses): (usize, &Served, Use)| {
            let facts = &self.facts[i];
            Row {
                number: Some(i),
                name: facts.name.clone(),
                file: served.path.clone(),
                size: facts.size,
                group: served.group.clone(),
                read_only: facts.read_only,
                connections: uses.open,
                peers: BTreeMap::new(),
                is_closing: uses.is_closing,
                identity: served.identity,
            }
        };
        let mut rows: Vec<Row> = self.all().map(row).collect();
        // The image of one that has no connections is still open.
        rows.extend(self.leaving.iter().map(|served| Row {
            number: None,
            name: String::new(),
            file: served.path.clone(),
            size: 0,
            group: served.group.clone(),
            read_only: false,
            connections: 0,
            peers: BTreeMap::new(),
            is_closing: true,
            identity: served.identity,
        }));
        rows.sort_by(|a, b| (&a.name, a.is_closing).cmp(&(&b.name, b.is_closing)));
        rows
    }
}

/// The first sector that is free behind an image of this size.
const fn after(start: Sector, size: u64) -> Sector {
    Sector(start.0 + size.div_ceil(512) + GAP)
}

impl Index<usize> for ExportTable {
    type Output = Served;

    fn index(&self, number: usize) -> &Served {
        &self.served[number].as_ref().expect("a connection keeps its export").0
    }
}
