//! Flushes, for the clients that ask for them; and who hears of one that failed. Which flush covers whose
//! writes is in `flushes.rs`.

use super::RequestQueue;
use crate::bio::{Answer, ClientId, Errno, FileId};

impl<D> RequestQueue<D> {
    /// A client wants stable what was answered before.
    pub fn flush(&mut self, client: ClientId, file: FileId, cookie: u64) {
        self.serial += 1;
        let Some(c) = self.client(client) else { return };
        c.bios += 1;
        if let Err(who) = self.flushes.ask(file, (client, cookie)) {
            self.answer_flushes(file, vec![who], Err(Errno::TIMEDOUT));
        }
    }

    /// Data of the file could not be made stable. They may be any client's, so each client that is here gets
    /// the error once, with its next flush.
    pub fn sync_failed(&mut self, file: FileId, errno: Errno) {
        self.serial += 1;
        self.flushes.failed(file, self.serial, errno);
    }

    /// The file of this number is no more; the next one has nothing to do with it.
    pub fn forget(&mut self, file: FileId) {
        self.flushes.forget(file);
    }

    /// The file's flush is done.
    pub fn flushed(&mut self, file: FileId, result: Result<(), Errno>) {
        let whom = self.flushes.done(file, result.is_ok());
        if let Err(errno) = result {
            self.sync_failed(file, errno);
        }
        self.answer_flushes(file, whom, result);
    }

    pub(super) fn answer_flushes(
        &mut self,
        file: FileId,
        whom: Vec<(ClientId, u64)>,
        result: Result<(), Errno>,
    ) {
        for (client, cookie) in whom {
            // Of one that is gone the slot may be another's by now.
            let Some(c) = self.clients.get_mut(client.slot).filter(|c| c.serial == client.serial) else {
                continue;
            };
            c.bios -= 1;
            // The kernel reports a failed write-back once, to one caller. Here each client that was connected
            // then gets it, once.
            let heard = c.heard.get(&file).copied().unwrap_or(c.serial);
            let missed = self.flushes.news(file, heard);
            if let Some((at, _)) = missed {
                c.heard.insert(file, at);
            }
            let result = result.and(missed.map_or(Ok(()), |(_, errno)| Err(errno)));
            self.push_answer(Answer { client, cookie, result, origin: None, data: None });
            self.drop_if_done(client.slot);
        }
    }
}
