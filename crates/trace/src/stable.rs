//! Writes that have to be stable (FUA) on a device that needs a flush behind them.
//!
//! The kernel completes such a write twice: its sectors when the data is written, and the whole, without
//! sectors, when the flush behind it is done. The program waits for the second:
//!
//! ```text
//! Q FWFS 96+8   D FF   C FF   D WS 96+8   C WS 96+8   D FF   C FF   C WS 96+0
//! └ record                                └ written                 └ completed
//! ```
//!
//! A device that has FUA itself completes once. Which of both a device does is learned from its first write
//! that completes twice; that one keeps the time of its sectors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of writes that are remembered to recognise a second completion.
const REMEMBERED: usize = 256;

/// The device and the first sector of a write.
type Place = (u32, u64);

/// The writes of all devices that are written and not yet stable.
#[derive(Default)]
pub(crate) struct Stable {
    /// The devices that complete such writes twice.
    twice: BTreeSet<u32>,
    /// The last writes of other devices.
    last: VecDeque<Place>,
    /// The writes whose second completion is missing, and their records.
    written: BTreeMap<Place, u64>,
}

impl Stable {
    /// The sectors of a write are complete. Returns whether its record has to wait, and the record that
    /// waited at the same place and is given up.
    pub(crate) fn write(&mut self, place: Place, record: u64) -> (bool, Option<u64>) {
        if self.twice.contains(&place.0) {
            return (true, self.written.insert(place, record));
        }
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(place);
        (false, None)
    }

    /// A write without sectors completes. Returns the record that waited for it.
    pub(crate) fn complete(&mut self, place: Place) -> Option<u64> {
        if let Some(at) = self.last.iter().position(|p| *p == place) {
            self.last.remove(at);
            self.twice.insert(place.0);
        }
        self.written.remove(&place)
    }

    /// Forgets a record that waits no longer.
    pub(crate) fn forget(&mut self, place: Place, record: u64) {
        if self.written.get(&place) == Some(&record) {
            self.written.remove(&place);
        }
    }
}
