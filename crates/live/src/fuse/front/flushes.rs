//! Flushes of files and folders, on the account of the caller's group.

use super::{FuseFront, Tree, WaitingRequest, What, Who};
use crate::bio::{FileId, Flush};
use crate::engine::Context;
use crate::fuse::protocol::Header;
use fairhead_core::units::GroupId;

impl<T: Tree> FuseFront<T> {
    pub(super) fn flush(&mut self, context: &mut Context, header: &Header, file: FileId) {
        let Header { unique, pid: thread, entry, .. } = *header;
        self.waiting.insert(unique, WaitingRequest { what: What::Flush, bio: None, thread, entry });
        let Who { task, group, prio, .. } = self.tree.who(context, header, false);
        // One client for all: each failure is heard of once.
        let client = self.client(context, GroupId::ROOT);
        context.queue.flush(context.now, client, Flush { file, task, group, prio, cookie: unique });
    }

    /// Another thread has opened a folder, which has this number in the table until it is flushed.
    pub(super) fn flush_folder(&mut self, context: &mut Context, header: &Header, number: &[u8]) {
        let Ok(number) = number.try_into() else { return };
        let file = FileId(u32::from_ne_bytes(number));
        self.flush(context, header, file);
        self.leaving.push(file);
    }

    /// The caller hears nothing any more.
    pub(super) fn take_back_flush(&mut self, context: &mut Context, unique: u64) {
        let client = self.client(context, GroupId::ROOT);
        context.queue.cancel_flush(context.now, client, unique);
    }
}
