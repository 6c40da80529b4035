//! What each line of control has the engine do, in counts: no socket and no clock.
//!
//! A line is parsed outside of the engine's thread. What it has that thread do is one call, which submits
//! nothing to the queue, and answers are bounded. Clients take turns, a line each (`Host::work`).

use super::request::{Request, words};
use super::work;
use crate::neighbours::messages::of_control;
use crate::stage;
use fairhead_core::sched::catalogue::Catalogue;

/// Each word that the table has, and one that it has not.
#[test]
fn a_line_leaves_nothing_in_the_queue_however_often_it_comes() {
    let words: Vec<&str> = words().collect();
    for (name, line) in of_control(&words) {
        let mut context = stage::context("bfq");
        let request = Request::parse(line.trim_end().as_bytes(), &Catalogue::default());
        let is_right = name.ends_with(", right") && !name.contains("unknown");
        assert_eq!(request.is_ok(), is_right, "{name}: {request:?}");
        let Ok(request) = request else { continue };
        let submitted = context.queue.submitted();
        for _ in 0..1000 {
            // One that needs a group finds none after the first, or none at all, and says so.
            let _ = work::change(&mut context, &request);
        }
        assert_eq!(context.queue.submitted(), submitted, "{name}: it asks the disk for nothing");
        assert!(context.groups.names().count() <= 1, "{name}: groups do not pile up");
        context.queue.check();
    }
}
