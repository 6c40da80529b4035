//! A recording on its way to a file: a thread of its own writes, so that the engine never waits for it.
//!
//! If the file is slower than the disk, events wait in memory. If it cannot be written, recording ends and
//! says so once, and scheduling continues.

use crate::error::{Error, ErrorKind};
use crate::opening::create;
use crate::recording::{Event, Head};
use crate::request_queue::RequestQueue;
use crate::warning::warn;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

/// The most batches between the engine and the writer; further events wait in one batch until there is room.
const BATCHES: usize = 64;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Recorder {
    events: Vec<Event>,
    batches: Option<SyncSender<Vec<Event>>>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Begins a file with what the queue, which is new, is made for.
    pub(crate) fn start<D>(path: &Path, queue: &mut RequestQueue<D>) -> Result<Self, Error> {
        let name = path.display().to_string();
        let failed = |e: &io::Error| Error::new(ErrorKind::Recording, format!("{name}: {e}"));
        let mut file = BufWriter::new(create(path).map_err(|e| failed(&e))?);
        write!(file, "{}", Head(queue.limits())).map_err(|e| failed(&e))?;
        queue.record();
        let (batches, coming) = mpsc::sync_channel(BATCHES);
        let thread = thread::Builder::new().name("fairhead-record".to_owned()).spawn(move || {
            if let Err(e) = write(&mut file, &coming) {
                warn(&format!("{name}: {e}; recording ends here"));
            }
        });
        let thread = thread.map_err(|e| Error::new(ErrorKind::Recording, e.to_string()))?;
        Ok(Self { events: Vec::new(), batches: Some(batches), thread: Some(thread) })
    }

    /// What happened since the last time.
    pub(crate) fn see(&mut self, mut events: Vec<Event>) {
        self.events.append(&mut events);
        if self.events.is_empty() {
            return;
        }
        let Some(batches) = &self.batches else { return self.events.clear() };
        match batches.try_send(std::mem::take(&mut self.events)) {
            Ok(()) => {}
            Err(TrySendError::Full(events)) => self.events = events,
            Err(TrySendError::Disconnected(_)) => self.batches = None,
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(batches) = self.batches.take() {
            let _ = batches.send(std::mem::take(&mut self.events));
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn write(file: &mut BufWriter<File>, coming: &Receiver<Vec<Event>>) -> io::Result<()> {
    for events in coming {
        events.iter().try_for_each(|event| writeln!(file, "{event}"))?;
    }
    file.flush()
}
