//! Many independent runs on several threads, with the results in order.
//!
//! Threads take the next piece of work from a counter; which thread does which piece changes nothing, because
//! a run is a function of its scenario. If a piece panics, so does the caller, with the same payload. One
//! thread is the caller's own: a browser has no other.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work(i)` for each `i` below `count` on `threads` threads; `done` hears how many are finished after each.
pub fn map<T: Send>(
    count: usize,
    threads: usize,
    done: &(dyn Fn(usize) + Sync),
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        let take = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                let Some(slot) = results.get(i) else { break };
                let result = work(i);
                *slot.lock().expect("a panic elsewhere ends the scope first") = Some(result);
                done(finished.fetch_add(1, Ordering::Relaxed) + 1);
            }
        };
        if threads <= 1 || count <= 1 {
            return take();
        }
        let threads: Vec<_> = (0..threads.clamp(1, count.max(1))).map(|_| scope.spawn(take)).collect();
        // A thread that is joined here does not make the scope panic with a payload of its own.
        let panics: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().err()).collect();
        if let Some(payload) = panics.into_iter().next() {
            resume_unwind(payload);
        }
    });
    results
        .into_iter()
        .map(|slot| slot.into_inner().expect("the scope has joined").expect("every index was taken"))
        .collect()
}

/// How many threads are worth having here.
#[must_use]
pub fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_on_any_number_of_threads() {
        for threads in [0, 1, 3, 100] {
            let squares = map(10, threads, &|_| {}, |i| i * i);
            assert_eq!(squares, (0..10).map(|i| i * i).collect::<Vec<_>>());
        }
        assert!(map(0, 2, &|_| {}, |i| i).is_empty());
    }

    #[test]
    fn a_panic_keeps_its_payload() {
        let work = |i| if i == 3 { resume_unwind(Box::new(7_u8)) } else { i };
        let payload = std::panic::catch_unwind(|| map(5, 2, &|_| {}, work)).unwrap_err();
        assert_eq!(payload.downcast_ref::<u8>(), Some(&7));
    }
}
