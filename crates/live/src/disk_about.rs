//! What a disk is taken for, in words: whether it has a head, how many requests it may have, and why.

use crate::depth::{Depth, Source};
use crate::disk::DiskOptions;
use std::path::Path;

impl DiskOptions {
    /// Options as these, for a disk of these files or folders: to say something [about](Self::about) it.
    #[must_use]
    pub fn on<'a>(self, files: impl IntoIterator<Item = &'a Path>) -> Self {
        self.files(files.into_iter().map(|path| (path.to_owned(), true)))
    }

    /// Says how many requests the disk may have at a time, whether it has a head, and why.
    #[must_use]
    pub fn about(&self) -> String {
        let facts = self.facts();
        let depth = match self.depth {
            Some(depth) if facts.source == Source::Model && facts.queue == Some(depth) => {
                format!("{depth}, as its model takes")
            }
            Some(depth) => format!("{depth}, as set"),
            None => {
                let usual = Depth::usual(facts.is_rotational, facts.queue);
                let how = match (facts.can_adapt(), facts.queue) {
                    (true, _) => "at first, and adapts".to_owned(),
                    (false, Some(queue)) if queue != usual => format!("(its own queue takes {queue})"),
                    (false, Some(_)) => "as its queue takes".to_owned(),
                    (false, None) => "as its queue is not known".to_owned(),
                };
                format!("{usual} {how}")
            }
        };
        format!("{facts}; depth {depth}")
    }
}
