//! What a disk is taken for, in words: whether it has a head, how many requests it may have, and why.

use crate::depth::Depth;
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
            Some(depth) => format!("{depth}, as set"),
            None => {
                let how = match (facts.can_adapt(), facts.queue) {
                    (true, _) => "at first, and adapts",
                    (false, Some(_)) => "as its queue takes",
                    (false, None) => "as its queue is not known",
                };
                format!("{} {how}", Depth::usual(facts.is_rotational, facts.queue))
            }
        };
        format!("{facts}; depth {depth}")
    }
}
