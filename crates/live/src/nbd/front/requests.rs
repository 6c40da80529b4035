//! Requests on their way to the queue: where their data go, and their bios, part by part.

use super::parts::{bio_len, data_len, part_len};
use super::{NbdFront, PendingRequest};
use crate::bio::{Bio, Flush, Op};
use crate::data::Data;
use crate::engine::Context;
use crate::extents::{EXTENTS_MAX, Question};
use crate::nbd::connection::{STRAIGHT, Socket, Writing};
use crate::nbd::session::{Command, Request};
use crate::ring::{LARGE, LONG};
use fairhead_core::units::Sector;

impl NbdFront {
    /// There is room: the request goes its way.
    pub(super) fn ask(&mut self, context: &mut Context, slot: usize, request: Request) {
        let len = data_len(&request);
        self.held += len;
        self.connections[slot].held += len;
        match request.command {
            Command::Write => {
                let data = self.room(slot, &request);
                self.connections[slot].writing = Some(Writing { request, data, filled: 0 });
            }
            Command::Status { one } => {
                let most = if one { 1 } else { EXTENTS_MAX };
                let question = Question { len: part_len(&request, 0), most };
                self.submit(context, slot, request, Some(Data::Question(question)));
            }
            Command::Read => {
                let data = self.pages(slot, &request);
                self.submit(context, slot, request, data);
            }
            Command::Flush | Command::Trim | Command::Zero { .. } => {
                self.submit(context, slot, request, None);
            }
        }
    }

    /// The data of a read, if bytes of a file in memory can be sent as they are.
    fn pages(&self, slot: usize, request: &Request) -> Option<Data> {
        let session = &self.connections[slot].session;
        let export = &self.exports[session.export()?];
        if request.len >= LARGE {
            let head = session.head(request, Ok(()));
            // Whether sockets of virtual machines take pages was not tried.
            let takes_pages = !matches!(self.connections[slot].socket, Socket::Vsock(_));
            return (export.has_pages && takes_pages).then(|| Data::Piped(self.pipes.reply(head.bytes())));
        }
        export.map.as_ref()?.window(request.offset, request.len as u32).map(Data::Mapped)
    }

    /// Room for the data of a write: a pipe, if it is to a file in memory and all of them are still in a unix
    /// socket.
    fn room(&self, slot: usize, request: &Request) -> Data {
        let c = &self.connections[slot];
        let len = request.len as usize;
        let has_pages = c.session.export().is_some_and(|e| self.exports[e].has_pages);
        let is_unix = matches!(c.socket, Socket::Unix(_));
        let is_piped = has_pages && is_unix && !request.fua && len >= STRAIGHT && (len as u64) < LONG;
        let load = (is_piped && c.input().is_empty()).then(|| self.pipes.load(len as u32)).flatten();
        load.map_or_else(|| Data::Memory(self.pool.buffer(len)), Data::Load)
    }

    pub(super) fn submit(
        &mut self,
        context: &mut Context,
        slot: usize,
        request: Request,
        data: Option<Data>,
    ) {
        let c = &mut self.connections[slot];
        let (Some(identity), Some(export)) = (c.identity, c.session.export()) else { return };
        c.open += 1;
        let pending = PendingRequest { slot, identity, export, request, done: 0, began: context.now };
        self.submit_part(context, pending, data);
    }

    /// Hands in the next part of a request, which mostly is all of it.
    pub(super) fn submit_part(
        &mut self,
        context: &mut Context,
        mut pending: PendingRequest,
        data: Option<Data>,
    ) {
        if context.groups.version() != self.groups_seen {
            self.look_up_groups(context);
        }
        let PendingRequest { slot, export, request, done, .. } = pending;
        // Its group may have gone since the part before.
        let Some(identity) = self.connections[slot].identity else { return };
        pending.identity = identity;
        let served = &self.exports[export];
        let cookie = self.pending.insert(pending) as u64;
        let op = match request.command {
            Command::Flush => {
                let flush = Flush {
                    file: served.file,
                    task: identity.task,
                    group: identity.group,
                    prio: served.prio,
                    cookie,
                };
                return context.queue.flush(context.now, identity.client, flush);
            }
            Command::Write => Op::Write,
            Command::Trim => Op::Discard,
            Command::Zero { no_hole } => Op::Zero { may_discard: !no_hole },
            Command::Read => Op::Read,
            Command::Status { .. } => Op::Extents,
        };
        if matches!(op, Op::Discard | Op::Zero { may_discard: true }) {
            self.exports.thin(export);
        }
        let bio = Bio {
            op,
            file: served.file,
            offset: request.offset + done,
            len: bio_len(&request, done),
            sector: Sector(served.start.0 + (request.offset + done) / 512),
            fua: request.fua && op.changes(),
            sync: true,
            task: identity.task,
            group: identity.group,
            prio: served.prio,
            cookie,
        };
        context.queue.submit(context.now, identity.client, bio, data);
    }
}
