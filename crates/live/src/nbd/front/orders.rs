//! What other threads ask of the front between two turns, about exports and their clients.

use super::NbdFront;
use crate::engine::Context;
use crate::nbd::connection::{Connection, State};
use crate::nbd::export_table::ExportTable;
use crate::nbd::session::{Command, Request};
use std::collections::BTreeMap;

impl NbdFront {
    /// Returns the clients of an export, and how many connections each has.
    pub(in crate::nbd) fn peers_of(&self, export: usize) -> BTreeMap<String, usize> {
        let open = self.connections.iter().filter(|(_, c)| c.state != State::Dead && c.identity.is_some());
        let mut peers = BTreeMap::new();
        for (_, c) in open.filter(|(_, c)| c.session.export() == Some(export)) {
            *peers.entry(c.peer.owner.to_string()).or_insert(0) += 1;
        }
        peers
    }

    pub(in crate::nbd) const fn exports(&mut self) -> &mut ExportTable {
        &mut self.exports
    }

    /// Ends all connections of an export.
    pub(in crate::nbd) fn end_all_of(&mut self, context: &mut Context, export: usize) {
        let is_one = |c: &Connection| c.identity.is_some() && c.session.export() == Some(export);
        let slots: Vec<usize> =
            self.connections.iter().filter(|(_, c)| is_one(c)).map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.end(context, slot));
    }

    /// Whether a client of these exports has begun to change bytes behind `end`: the disk is at it, or its
    /// data are on their way.
    pub(in crate::nbd) fn changes_behind(&self, context: &Context, exports: &[usize], end: u64) -> bool {
        let reaches = |request: &Request| request.offset.saturating_add(request.len) > end;
        let is_one = |c: &Connection| c.session.export().is_some_and(|export| exports.contains(&export));
        let comes = |c: &Connection| {
            let writing = c.writing.as_ref().map(|w| w.request);
            let asked = c.asked.filter(|request| !matches!(request.command, Command::Read));
            writing.is_some_and(|w| reaches(&w)) || asked.is_some_and(|asked| reaches(&asked))
        };
        let open = self.connections.iter().filter(|(_, c)| c.state != State::Dead);
        open.map(|(_, c)| c).any(|c| is_one(c) && comes(c))
            || exports.iter().any(|&export| context.queue.changes_behind(self.exports[export].file, end))
    }
}
