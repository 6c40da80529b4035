//! Where a file has data, and where it has holes.
//!
//! To find out takes as long as the file system likes: it may walk all pages or extents up to the next hole,
//! and one whose server hangs does not return at all. So [`Finder`] has a thread for each file that was asked
//! about, and the engine's thread hears the answer as a message.
//!
//! ```text
//!   store ─Question─► channel ─► thread of the file: lseek … ─► inbox ─► engine ─► store
//! ```
//!
//! A question is bounded: it returns at most [`EXTENTS_MAX`] extents, which are two calls each. Its asker
//! asks again for the rest.

use crate::bio::FileId;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak, mpsc};
use std::thread;

/// The most extents that one question returns.
pub(crate) const EXTENTS_MAX: usize = 64;

/// A part of a range: its length, and whether it is a hole.
pub(crate) type Extent = (u32, bool);

/// A question about a range of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    /// The bytes of the range.
    pub(crate) len: u32,
    /// How many extents are wanted, at most.
    pub(crate) most: usize,
}

/// A question on its way to the thread of its file.
#[derive(Debug)]
struct Asked {
    number: usize,
    offset: u64,
    question: Question,
}

/// Takes the number of a question and the answer. Returns whether there may be more.
type Hear = dyn Fn(usize, Vec<Extent>) -> bool + Send + Sync;

/// See the [module](self).
pub(crate) struct Finder {
    /// By file. Its number may be another file's by now.
    threads: HashMap<FileId, (Weak<File>, mpsc::Sender<Asked>)>,
    hear: Arc<Hear>,
}

impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "finder for {} files", self.threads.len())
    }
}

impl Finder {
    /// A finder without threads. Those that it starts call `hear` with each answer.
    pub(crate) fn new(hear: impl Fn(usize, Vec<Extent>) -> bool + Send + Sync + 'static) -> Self {
        Self { threads: HashMap::new(), hear: Arc::new(hear) }
    }

    /// Asks the thread of the file, which is started if there is none. The answer comes under `number`.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(crate) fn ask(
        &mut self,
        (id, file): (FileId, &Arc<File>),
        number: usize,
        offset: u64,
        question: Question,
    ) -> io::Result<()> {
        let asked = match self.threads.get(&id) {
            Some((of, thread)) if of.as_ptr() == Arc::as_ptr(file) => {
                match thread.send(Asked { number, offset, question }) {
                    Ok(()) => return Ok(()),
                    Err(mpsc::SendError(asked)) => asked,
                }
            }
            _ => Asked { number, offset, question },
        };
        // Threads of files that have gone end.
        self.threads.retain(|_, (of, _)| of.strong_count() > 0);
        let (to_thread, questions) = mpsc::channel();
        let (of, hear) = (Arc::downgrade(file), Arc::clone(&self.hear));
        let its = Weak::clone(&of);
        thread::Builder::new().name("fairhead-extents".to_owned()).spawn(move || {
            for Asked { number, offset, question } in questions {
                // A question keeps its file.
                let found = its.upgrade().map(|file| extents(&file, offset, question));
                if !hear(number, found.unwrap_or_else(|| vec![(question.len, false)])) {
                    return;
                }
            }
        })?;
        // The thread has just been started, and listens.
        let _ = to_thread.send(asked);
        self.threads.insert(id, (of, to_thread));
        Ok(())
    }
}

/// Returns the extents of a range, in order. If there are more than wanted, the rest of the range is left
/// out. Where the file system does not say, there are data.
fn extents(file: &File, offset: u64, Question { len, most }: Question) -> Vec<Extent> {
    let end = offset + u64::from(len);
    // A file that has all its blocks has no holes, whatever the file system would walk to say so.
    if file.metadata().is_ok_and(|m| m.len() >= end && m.blocks() * 512 >= m.len()) {
        return vec![(len, false)];
    }
    let (mut at, mut found) = (offset, Vec::new());
    while at < end && found.len() < most {
        let (next, is_hole) = match seek(file, SeekFrom::Data(at)) {
            Ok(data) if data > at => (data, true),
            Ok(_) => (seek(file, SeekFrom::Hole(at)).unwrap_or(end), false),
            // Behind the last data.
            Err(Errno::NXIO) => (end, true),
            Err(_) => (end, false),
        };
        let next = next.clamp(at + 1, end);
        found.push(((next - at) as u32, is_hole));
        at = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn all_of(len: u32) -> Question {
        Question { len, most: EXTENTS_MAX }
    }

    #[test]
    fn extents_add_up_and_data_are_never_called_a_hole() {
        let path = std::env::temp_dir().join(format!("fairhead-holes-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[1; 4096], 256 << 10).unwrap();
        let all = extents(&file, 0, all_of(1 << 20));
        assert_eq!(all.iter().map(|e| e.0).sum::<u32>(), 1 << 20);
        let mut at = 0;
        for &(len, is_hole) in &all {
            let has_data = at <= 256 << 10 && at + len > 256 << 10;
            assert!(!(is_hole && has_data), "{all:?}");
            at += len;
        }
        assert_eq!(extents(&file, 4096, Question { len: 8192, most: 1 }).len(), 1);
        let inside = extents(&file, (256 << 10) + 512, all_of(1024));
        assert_eq!(inside, [(1024, false)]);
    }
}
