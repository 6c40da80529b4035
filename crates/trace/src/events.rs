//! What all readers of events, and all readers of requests, have in common.

use crate::error::TraceError;
use crate::event::Event;
use crate::record::{Names, Notes, Record};

/// A source of events, nearly in order of time.
pub(crate) trait Events {
    /// Returns the next event, or `None` after the last.
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Event>, TraceError>;
}

/// A source of requests, nearly in order of time.
pub(crate) trait Records {
    /// Returns the next request, or `None` after the last.
    fn next(&mut self, names: &mut Names, notes: &mut Notes) -> Result<Option<Record>, TraceError>;
}
