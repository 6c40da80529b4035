//! What all readers of events have in common.

use crate::error::TraceError;
use crate::event::Event;
use crate::record::{Names, Notes};

/// A source of events, nearly in order of time.
pub(crate) trait Events {
    /// Returns the next event, or `None` after the last.
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Event>, TraceError>;
}
