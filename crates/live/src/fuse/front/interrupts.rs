//! Callers that got a signal while they wait.

use super::{FuseFront, LOOK_AFTER, Tree};
use crate::bio::Errno;
use crate::engine::Context;
use crate::fuse::callers::is_ending;

impl<T: Tree> FuseFront<T> {
    /// The caller of that request got a signal. It may have its answer already.
    pub(super) fn interrupt(&mut self, context: &mut Context, unique: u64) {
        let Some(waiting) = self.waiting.get(&unique).copied() else {
            match self.interrupt_held_back(unique) {
                Some(true) => return,
                Some(false) => return self.look_again(context, unique),
                None => {}
            }
            let threads = self.workers.as_ref();
            if let Some(header) = threads.and_then(|t| t.take_back(unique, |h| is_ending(h.pid))) {
                self.reply(unique, header.entry, Err(Errno::INTR));
            }
            return;
        };
        if !is_ending(waiting.thread) {
            self.look_again(context, unique);
        } else if let Some(bio) = waiting.bio {
            context.queue.cancel(context.now, bio);
        } else {
            self.waiting.remove(&unique);
            self.take_back_flush(context, unique);
            self.reply(unique, waiting.entry, Err(Errno::INTR));
        }
    }

    /// Of a second signal the kernel says nothing.
    pub(super) fn look_after(&mut self, context: &mut Context) {
        if self.look_after.is_some_and(|at| at <= context.now) {
            self.look_after = None;
            let disturbed = std::mem::take(&mut self.disturbed);
            disturbed.into_iter().for_each(|unique| self.interrupt(context, unique));
        }
    }

    fn look_again(&mut self, context: &Context, unique: u64) {
        self.disturbed.push(unique);
        self.look_after.get_or_insert(context.now + LOOK_AFTER);
    }
}
