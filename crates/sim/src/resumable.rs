//! Many runs that can be interrupted: the results of finished runs are kept, and those runs are not repeated.
//!
//! ```text
//!   work ─► is it known? ─yes─► its result, read
//!                        └no──► run it ─► keep its result, written ─► its result
//! ```
//!
//! The caller provides a place for results ([`Keep`]). A result is kept there as a line of text under the
//! name of its run, and is read back exactly. So an interrupted and resumed command gives the same bytes as
//! an uninterrupted one. The results of one place belong to one question: [`fingerprint`] distinguishes
//! questions.
//!
//! The module does not keep parts of a run, and does not access files.

use crate::parallel;
use std::fmt::{self, Write as _};

/// A place where results are kept.
pub trait Keep: Sync {
    /// Returns the result of this run, if it is known.
    fn known(&self, run: &str) -> Option<&str>;
    /// Stores the result of a finished run.
    fn keep(&self, run: &str, result: &str);
    /// Whether no more runs should be begun, because of an interruption.
    fn is_over(&self) -> bool {
        false
    }
}

/// A place that keeps nothing.
impl Keep for () {
    fn known(&self, _: &str) -> Option<&str> {
        None
    }
    fn keep(&self, _: &str, _: &str) {}
}

/// A result that a line of text can hold.
pub trait Line: Sized + Send {
    /// Returns the result as text, without line breaks and tabs.
    fn write(&self) -> String;
    /// Parses the text of [`Line::write`]; `None` for any other text.
    fn read(text: &str) -> Option<Self>;
}

/// Returns the results of `count` runs in order: the known result, or else that of `work`, on `threads`
/// threads. A result is `None` if its run was not begun because [`Keep::is_over`]. `name` returns the name of
/// a run; `done` is called with the number of finished runs.
pub fn map<T: Line, E: Send>(
    count: usize,
    threads: usize,
    keep: &dyn Keep,
    done: &(dyn Fn(usize) + Sync),
    name: impl Fn(usize) -> String + Sync,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Vec<Option<Result<T, E>>> {
    parallel::map(count, threads, done, |i| {
        let name = name(i);
        if let Some(known) = keep.known(&name).and_then(T::read) {
            return Some(Ok(known));
        }
        if keep.is_over() {
            return None;
        }
        let result = work(i);
        if let Ok(result) = &result {
            keep.keep(&name, &result.write());
        }
        Some(result)
    })
}

/// Returns a hash of a question: equal for equal questions, and almost never for different ones.
///
/// It hashes the text of `Debug`, which is the same on every machine.
///
/// ```
/// use fairhead_sim::resumable::fingerprint;
/// assert_eq!(fingerprint(&("cfq", 1)), fingerprint(&("cfq", 1)));
/// assert_ne!(fingerprint(&("cfq", 1)), fingerprint(&("cfq", 2)));
/// ```
//= G. Fowler, L. Noll, K. Vo, FNV-1a with 64 bits
#[must_use]
pub fn fingerprint(question: &dyn fmt::Debug) -> u64 {
    struct Fnv(u64);
    impl fmt::Write for Fnv {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for b in text.bytes() {
                self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing to it cannot fail, and a `Debug` that fails all the same has written what it could.
    let _ = write!(hash, "{question:?}");
    hash.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    impl Line for u64 {
        fn write(&self) -> String {
            self.to_string()
        }
        fn read(text: &str) -> Option<Self> {
            text.parse().ok()
        }
    }

    #[derive(Default)]
    struct Memory {
        known: BTreeMap<String, String>,
        new: Mutex<BTreeMap<String, String>>,
        most: usize,
    }

    impl Keep for Memory {
        fn known(&self, run: &str) -> Option<&str> {
            self.known.get(run).map(String::as_str)
        }
        fn keep(&self, run: &str, result: &str) {
            self.new.lock().unwrap().insert(run.to_owned(), result.to_owned());
        }
        fn is_over(&self) -> bool {
            self.new.lock().unwrap().len() >= self.most
        }
    }

    #[test]
    fn what_was_interrupted_goes_on_where_it_was() {
        let ran = AtomicUsize::new(0);
        let go = |memory: &Memory| {
            map::<u64, ()>(
                10,
                1,
                memory,
                &|_| {},
                |i| format!("run {i}"),
                |i| {
                    ran.fetch_add(1, Ordering::Relaxed);
                    Ok(i as u64 * 7)
                },
            )
        };
        let first = Memory { most: 4, ..Memory::default() };
        let got = go(&first);
        assert_eq!((got.iter().flatten().count(), ran.load(Ordering::Relaxed)), (4, 4));
        let mut known = first.new.into_inner().unwrap();
        // What cannot be read is run again.
        known.insert("run 2".to_owned(), "garbage".to_owned());
        let second = Memory { known, most: usize::MAX, ..Memory::default() };
        let got: Vec<u64> = go(&second).into_iter().map(|r| r.unwrap().unwrap()).collect();
        assert_eq!(got, (0..10).map(|i| i * 7).collect::<Vec<u64>>());
        assert_eq!(ran.load(Ordering::Relaxed), 4 + 7);
    }

    #[test]
    fn questions_are_told_apart() {
        //= http://www.isthe.com/chongo/tech/comp/fnv, test vectors of FNV-1a: "" and "a" type=test
        assert_eq!(fingerprint(&format_args!("")), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fingerprint(&format_args!("a")), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(fingerprint(&(1, 2)), fingerprint(&(2, 1)));
    }
}
