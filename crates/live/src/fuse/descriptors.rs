//! The descriptors of nodes: the most recently used ones stay open, up to a number.
//!
//! A file walked over costs a descriptor until others need its place. The one that goes is found by a hand
//! that turns over all places, passes those used since it last came by, and stops at the first other one.
//!
//! What it does not do: open a file again (`nodes.rs`); limit the files that programs have open
//! (`open_files.rs`).

use slab::Slab;
use std::fs::File;
use std::sync::Arc;

#[derive(Debug)]
struct Kept {
    node: u64,
    file: Arc<File>,
    is_used: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Descriptors {
    places: Slab<Kept>,
    most: usize,
    hand: usize,
}

/// A descriptor that had to go, and the node that it was of. The caller drops it without a lock: the last
/// descriptor of a removed file frees its blocks, which takes time.
#[derive(Debug)]
pub(super) struct Evicted {
    pub(super) node: u64,
    pub(super) file: Arc<File>,
}

impl Descriptors {
    /// Room for `most` descriptors, at least one.
    pub(super) fn new(most: usize) -> Self {
        Self { places: Slab::new(), most: most.max(1), hand: 0 }
    }

    /// The most that it keeps.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// The descriptor in a place.
    pub(super) fn get(&mut self, place: usize) -> Arc<File> {
        let kept = &mut self.places[place];
        kept.is_used = true;
        Arc::clone(&kept.file)
    }

    /// Keeps a descriptor. Returns its place, and the one that had to make room.
    pub(super) fn keep(&mut self, node: u64, file: Arc<File>) -> (usize, Option<Evicted>) {
        let evicted = (self.places.len() >= self.most).then(|| self.evict());
        (self.places.insert(Kept { node, file, is_used: false }), evicted)
    }

    /// With all places taken, they are the numbers below `most`. Ends after two rounds at most.
    fn evict(&mut self) -> Evicted {
        loop {
            self.hand = (self.hand + 1) % self.most;
            let kept = &mut self.places[self.hand];
            if !std::mem::take(&mut kept.is_used) {
                let Kept { node, file, .. } = self.places.remove(self.hand);
                return Evicted { node, file };
            }
        }
    }

    /// The descriptors from a place on, at most `most`, each with its place and its node.
    pub(super) fn from(&self, place: usize, most: usize) -> Vec<(usize, u64, Arc<File>)> {
        let places = place..self.places.capacity();
        let kept = places.filter_map(|at| Some((at, self.places.get(at)?)));
        kept.take(most).map(|(at, kept)| (at, kept.node, Arc::clone(&kept.file))).collect()
    }

    /// Gives a place back.
    pub(super) fn remove(&mut self, place: usize) -> Arc<File> {
        self.places.remove(place).file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_there_are_never_more_than_fit() {
        let mut kept = Descriptors::new(3);
        let file = Arc::new(File::open("/dev/null").unwrap());
        let mut places: Vec<usize> = (0..3).map(|node| kept.keep(node, Arc::clone(&file)).0).collect();
        for node in 3..50 {
            // Node 0 is used all the time.
            let _ = kept.get(places[0]);
            let (place, evicted) = kept.keep(node, Arc::clone(&file));
            assert_ne!(evicted.map(|e| e.node), Some(0), "at node {node}");
            assert_eq!(kept.places.len(), 3);
            places.push(place);
        }
        drop(kept.remove(places[0]));
        assert!(kept.keep(50, Arc::clone(&file)).1.is_none(), "a place is free");
        assert_eq!(Arc::strong_count(&file), 4);
    }
}
