//! Commands that several members of a composition serve: done when the last part is.

use alloc::vec::Vec;
use fairhead_core::units::Tag;

/// The commands in flight with more than one part.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Tag and parts that are not done. As few as a queue holds, so a list will do.
    list: Vec<(Tag, u32)>,
}

impl Parts {
    /// For that many commands at a time.
    pub(crate) fn new(commands: usize) -> Self {
        Self { list: Vec::with_capacity(commands) }
    }

    /// Records that a command was split into `parts` parts.
    pub(crate) fn begin(&mut self, tag: Tag, parts: u32) {
        if parts > 1 {
            self.list.push((tag, parts));
        }
    }

    /// A part of a command is done. Whether all of it is.
    pub(crate) fn is_last(&mut self, tag: Tag) -> bool {
        let Some(i) = self.list.iter().position(|p| p.0 == tag) else { return true };
        self.list[i].1 -= 1;
        let last = self.list[i].1 == 0;
        if last {
            self.list.swap_remove(i);
        }
        last
    }
}
