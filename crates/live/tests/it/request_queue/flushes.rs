//! Flushes: who shares one, and for whom one fails.

use super::{Small, TIMEOUT};
use fairhead_live::{Errno, FileId, Start};

#[test]
fn flushes_that_come_while_one_is_under_way_share_the_next() {
    let mut s = Small::new(2);
    let client = s.queue.join();
    (1..=5).for_each(|cookie| {
        s.flush(client, 3, cookie);
        if cookie == 1 {
            assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(3))));
        }
    });
    assert_eq!(s.queue.next(s.now), None, "one at a time for each file");
    s.queue.flushed(s.now, FileId(3), Ok(()));
    assert_eq!(s.heard(), [(1, Ok(()))]);
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(3))));
    s.queue.flushed(s.now, FileId(3), Ok(()));
    assert_eq!(s.heard(), [2, 3, 4, 5].map(|c| (c, Ok(()))));
    assert_eq!(s.queue.next(s.now), None);
}

#[test]
fn a_failed_flush_fails_for_all_whose_writes_may_be_lost() {
    let mut s = Small::new(2);
    let [a, b, c] = [(); 3].map(|()| s.queue.join());
    s.flush(a, 0, 1);
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(0))));
    s.flush(b, 0, 2);
    s.queue.flushed(s.now, FileId(0), Err(Errno::IO));
    assert_eq!(
        s.heard(),
        [(1, Err(Errno::IO)), (2, Err(Errno::IO))],
        "b's writes may have been in the first"
    );
    assert_eq!(s.queue.next(s.now), None);
    let late = s.queue.join();
    for (cookie, client) in [(3, a), (4, c), (5, c), (6, late)] {
        s.flush(client, 0, cookie);
    }
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(0))));
    s.queue.flushed(s.now, FileId(0), Ok(()));
    let told = [(3, Ok(())), (4, Err(Errno::IO)), (5, Ok(())), (6, Ok(()))];
    assert_eq!(s.heard(), told, "each that was here hears it once");
    s.queue.sync_failed(FileId(0), Errno::IO);
    s.queue.forget(FileId(0));
    s.flush(a, 0, 7);
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(0))));
    s.queue.flushed(s.now, FileId(0), Ok(()));
    assert_eq!(s.heard(), [(7, Ok(()))], "that was another file");
    s.queue.check();
}

#[test]
fn nobody_waits_for_a_flush_that_was_given_up() {
    let mut s = Small::new(2);
    let client = s.queue.join();
    s.flush(client, 0, 1);
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(0))));
    s.flush(client, 0, 2);
    s.now = s.now + TIMEOUT;
    s.queue.timer(s.now);
    s.flush(client, 0, 3);
    s.flush(client, 1, 4);
    assert_eq!(s.heard(), [1, 2, 3].map(|cookie| (cookie, Err(Errno::TIMEDOUT))));
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(1))), "another file's begins");
    assert_eq!(s.queue.next(s.now), None);
    s.queue.flushed(s.now, FileId(0), Ok(()));
    s.flush(client, 0, 5);
    assert_eq!(s.queue.next(s.now), Some(Start::Flush(FileId(0))));
    s.queue.flushed(s.now, FileId(0), Ok(()));
    s.queue.flushed(s.now, FileId(1), Ok(()));
    assert_eq!(s.heard(), [(5, Ok(())), (4, Ok(()))]);
}
