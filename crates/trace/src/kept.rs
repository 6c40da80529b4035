//! A trace out of a pipe: parsed once, and kept to be read as often as it is needed.

use crate::error::{Place, TraceError};
use crate::format::Format;
use crate::pages::{Pages, Records, Writer};
use crate::reader::{Trace, piped};
use crate::record::{Names, Notes};
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many requests are kept before the caller hears how far it is.
const PROGRESS_STEP: u64 = 1 << 14;

/// A trace that has been read to its end and can be read again: its requests are in a file without a name, in
/// the folder of `TMPDIR` or else in `/var/tmp`, which vanishes with it.
///
/// ```
/// let csv = "0,20941264,8192,W,0.5\n0,20939840,8192,W,0.7\n";
/// let kept = fairhead_trace::Kept::of("stdin", csv.as_bytes(), &|_| {}).unwrap();
/// assert_eq!(kept.requests(), 2);
/// for _ in 0..2 {
///     let records: Result<Vec<_>, _> = kept.open().collect();
///     assert_eq!(records.unwrap()[1].at.as_ms(), 200);
/// }
/// ```
pub struct Kept {
    name: String,
    format: Format,
    names: Names,
    notes: Notes,
    requests: u64,
    pages: Arc<Pages>,
}

/// Two are equal only if they are one: each is of a pipe of its own.
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pages, &other.pages)
    }
}

impl Eq for Kept {}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, format, requests, .. } = self;
        f.debug_struct("Kept")
            .field("name", name)
            .field("format", format)
            .field("requests", requests)
            .finish_non_exhaustive()
    }
}

impl Kept {
    /// Reads a trace to its end. `name` appears in error messages; `progress` hears now and then how many
    /// bytes have been read.
    ///
    /// # Errors
    /// If it cannot be read, or not to its end; if its end is missing, as far as that can be seen: a text has
    /// to end with a line feed; if there is no room to keep it.
    pub fn of(name: &str, input: impl Read + 'static, progress: &dyn Fn(u64)) -> Result<Self, TraceError> {
        let (mut trace, end) = piped(name, input)?;
        let fail = |message| TraceError { file: name.to_owned(), place: Place::File, message };
        let (mut writer, mut requests) = (Writer::default(), 0_u64);
        while let Some(record) = trace.next() {
            writer.put(&record?).map_err(fail)?;
            if requests.is_multiple_of(PROGRESS_STEP) {
                progress(trace.progress().0);
            }
            requests += 1;
        }
        let has_lines = !matches!(trace.format(), Format::Blktrace | Format::Vscsi);
        if has_lines && end.load(Ordering::Relaxed) != u64::from(b'\n') {
            return Err(fail(
                "ends in the middle of a line: what writes into the pipe stopped early (a whole trace ends with a line feed)"
                    .to_owned(),
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            format: trace.format(),
            names: trace.names().clone(),
            notes: trace.notes(),
            requests,
            pages: Arc::new(writer.finish()),
        })
    }

    /// Returns the name that it was given.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how many requests it has.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the trace, from its beginning.
    #[must_use]
    pub fn open(&self) -> Trace {
        let records = Records::new(self.name.clone(), Arc::clone(&self.pages));
        Trace::kept(self.format, records, self.names.clone(), self.notes)
    }
}
