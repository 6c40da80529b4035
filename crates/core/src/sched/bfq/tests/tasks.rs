//! Which tasks have queues of their own when there are more tasks than slots.

use super::rig::*;

fn rig(tasks: u32) -> Rig {
    Rig::with(Limits { tasks, groups: 4, ..Limits::default() }, plain())
}

fn known<const N: usize>(rig: &Rig, tasks: [u32; N]) -> [bool; N] {
    tasks.map(|task| rig.bfq.tasks.find(TaskId(task)).is_some())
}

#[test]
fn tasks_that_have_been_idle_longest_make_room() {
    let mut rig = rig(8);
    for task in [1, 2, 3, 4, 5, 6, 7, 8, 1] {
        rig.serve(read(task, u64::from(task) * 100_000));
        rig.pass(ms(30));
    }
    let tag = rig.insert(read(9, 5000));
    assert_ne!(rig.bfq.rqs[tag].queue, QueueId::FALLBACK);
    assert_eq!(known(&rig, [1, 2, 3, 9]), [true, false, true, true]);
    // The next one takes the place of the task that is eldest then.
    let next = rig.insert(read(10, 6000));
    assert_ne!(rig.bfq.rqs[next].queue, QueueId::FALLBACK);
    assert_eq!(known(&rig, [1, 3, 4, 9, 10]), [true, false, true, true, true]);
}

#[test]
fn a_task_that_is_busy_thinks_or_was_given_a_priority_keeps_its_slot() {
    let mut rig = rig(3);
    rig.control(Control::SetPrio(TaskId(1), IoPrio::new(Class::RealTime, 0)));
    let waiting = rig.insert(read(2, 1000));
    rig.pass(ms(1000));
    rig.serve(read(3, 9000));
    rig.pass(ms(10));
    let newcomer = rig.insert(read(4, 5000));
    assert_eq!(rig.bfq.rqs[newcomer].queue, QueueId::FALLBACK);
    assert_eq!(known(&rig, [1, 2, 3, 4]), [true, true, true, false]);
    rig.finish(newcomer);
    assert!(rig.requests[waiting].state == State::Free, "served before");
    rig.pass(ms(1000));
    let again = rig.insert(read(4, 5000));
    assert_ne!(rig.bfq.rqs[again].queue, QueueId::FALLBACK);
    assert!(known(&rig, [1])[0], "its priority would be lost");
}

#[test]
fn ten_thousand_idle_tasks_leave_room_for_another() {
    let mut rig = rig(64);
    rig.check_every = 1000;
    for task in 1..=10_000 {
        rig.serve(read(task, u64::from(task) * 1000));
    }
    rig.pass(ms(100));
    let tag = rig.insert(read(10_001, 5000));
    assert_ne!(rig.bfq.rqs[tag].queue, QueueId::FALLBACK);
}
