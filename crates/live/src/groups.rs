//! Groups by name: cgroup paths, exports and what a program calls its clients share one tree.
//!
//! `vm/web` is the group `web` inside `vm`. A group is made when a client first names it, with those above
//! it; it stays until it is [removed](GroupTable::remove). Their number is that of the queue's
//! [`groups`](fairhead_core::Limits::groups).

use crate::error::{Error, ErrorKind};
use crate::latency::Latencies;
use crate::request_queue::RequestQueue;
use fairhead_core::Control;
use fairhead_core::units::{GroupId, Instant};
use std::collections::BTreeMap;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct GroupTable {
    names: BTreeMap<String, GroupId>,
    /// Numbers that no name has; those of removed groups may still have requests.
    free: Vec<GroupId>,
    /// How long their clients waited.
    pub(crate) latencies: Latencies,
}

impl GroupTable {
    pub(crate) fn new(groups: u32) -> Self {
        let free = (1..groups).rev().map(GroupId).collect();
        Self { names: BTreeMap::new(), free, latencies: Latencies::new(groups as usize) }
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, GroupId)> {
        self.names.iter().map(|(name, &id)| (name.as_str(), id))
    }

    /// The group of that name; the root has none.
    pub(crate) fn find(&self, name: &str) -> Option<GroupId> {
        let name = Self::tidy(name);
        if name.is_empty() { Some(GroupId::ROOT) } else { self.names.get(&name).copied() }
    }

    /// Without slashes that say nothing.
    pub(crate) fn tidy(name: &str) -> String {
        name.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }

    /// The group of that name, made if there is none.
    pub(crate) fn ensure<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        name: &str,
    ) -> Result<GroupId, Error> {
        let name = Self::tidy(name);
        let ends = name.match_indices('/').map(|(i, _)| i).chain([name.len()]);
        let mut parent = GroupId::ROOT;
        for end in ends.filter(|&end| end > 0) {
            let path = &name[..end];
            parent = match self.names.get(path) {
                Some(&id) => id,
                None => {
                    let id = self.make(now, queue, parent, path)?;
                    self.names.insert(path.to_owned(), id);
                    id
                }
            };
        }
        Ok(parent)
    }

    fn make<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        parent: GroupId,
        path: &str,
    ) -> Result<GroupId, Error> {
        let full = || {
            let most = queue.elevator().groups().count() - 1;
            Error::new(
                ErrorKind::Group,
                format!("group {path}: there can be {most} groups, and there are as many"),
            )
        };
        let mut last = full();
        // A removed group's number is free again when its last request is served.
        for i in (0..self.free.len()).rev() {
            match queue.control(now, Control::SetParent(self.free[i], parent)) {
                Ok(()) => {
                    self.latencies.forget(self.free[i]);
                    return Ok(self.free.remove(i));
                }
                Err(refusal) => last = Error::new(ErrorKind::Group, format!("group {path}: {refusal}")),
            }
        }
        Err(last)
    }

    /// The group is no more; its tasks are its parent's.
    pub(crate) fn remove<D>(
        &mut self,
        now: Instant,
        queue: &mut RequestQueue<D>,
        name: &str,
    ) -> Result<(), Error> {
        let name = Self::tidy(name);
        let Some(&id) = self.names.get(&name) else {
            return Err(Error::new(ErrorKind::Group, format!("group {name}: there is none")));
        };
        let refused = |refusal| Error::new(ErrorKind::Group, format!("group {name}: {refusal}"));
        queue.control(now, Control::GroupExit(id)).map_err(refused)?;
        self.names.remove(&name);
        self.free.insert(0, id);
        Ok(())
    }
}
