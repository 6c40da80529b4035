//! A log made by hand: two readers; the second comes while the first is served.

use super::*;

const HEADER: &str = "# scenario small scheduler=bfq rotational=1 hz=250
# low_latency=0
# timeout_sync=124
";

/// Time in microseconds, task, and what it did.
const STEPS: &[(u32, u32, &str)] = &[
    (100, 7, "Q RS 1000 + 8 [reader]"),
    (101, 7, "m N bfq0A new_ioprio 4 new_weight 40"),
    (102, 7, "m N bfq7S allocated"),
    (103, 7, "m N bfq7S get_request 00000000aaaa0001: bfqq 00000000bbbb0007, 2"),
    (104, 7, "I RS 1000 + 8 [reader]"),
    (105, 7, "m N bfq7S add_request 1"),
    (106, 7, "m N bfq7S add to busy"),
    (107, 7, "m N bfq7S calc_finish: serv 10922, w 40"),
    (108, 7, "m N bfq7S calc_finish: start 0, finish 1145254707, delta 1145254707"),
    (110, 7, "m N bfq dispatch requests: 1 busy queues"),
    (111, 7, "m N bfq7S set_in_service_queue, cur-budget = 10922"),
    (112, 7, "m N bfq7S select_queue: returned this queue"),
    (113, 7, "m N bfq7S bfqq_served 8 secs"),
    (114, 7, "D RS 1000 + 8 [reader]"),
    (200, 8, "Q RS 900000 + 8 [reader]"),
    (201, 8, "m N bfq8S allocated"),
    (202, 8, "m N bfq8S get_request 00000000aaaa0002: bfqq 00000000bbbb0008, 2"),
    (203, 8, "I RS 900000 + 8 [reader]"),
    (204, 8, "m N bfq8S add_request 1"),
    (205, 8, "m N bfq8S add to busy"),
    (206, 8, "m N bfq8S calc_finish: serv 10922, w 40"),
    // V has moved by 8 sectors at a weight of 40.
    (207, 8, "m N bfq8S calc_finish: start 838860, finish 1146093567, delta 1145254707"),
    (210, 8, "m N bfq dispatch requests: 2 busy queues"),
    (211, 8, "m N bfq7S select_queue: already in-service queue"),
    (212, 8, "m N bfq7S may_budget_timeout: wait_request 0 left 1 timeout 0"),
    (213, 8, "m N bfq select_queue: no queue returned"),
    (5000, 0, "C RS 1000 + 8 [0]"),
    (5002, 0, "m N bfq7S put_queue: 00000000bbbb0007 3"),
    // The disk idles for task 7 for 8 ms, in vain; the turn of 4.9 ms is not seeky, so not slow.
    (13010, 0, "m N bfq7S bfq_bfqq_is_slow: slow 0"),
    (13011, 0, "m N bfq7S expire (0, slow 0, num_disp 0, short_ttime 1)"),
    (13012, 0, "m N bfq7S recalc_budg: last budg 10922, budg left 10914"),
    (13013, 0, "m N bfq7S recalc_budg: last max_budg 10922, min budg 512"),
    (13014, 0, "m N bfq7S recalc_budg: sync 1, seeky 0"),
    (13015, 0, "m N bfq7S head sect: 0, new budget 10922"),
    (13016, 0, "m N bfq7S del from busy"),
    (13017, 0, "m N bfq7S calc_finish: serv 8, w 40"),
    (13018, 0, "m N bfq7S calc_finish: start 0, finish 838860, delta 838860"),
    (13020, 9, "m N bfq dispatch requests: 1 busy queues"),
    (13021, 9, "m N bfq8S set_in_service_queue, cur-budget = 10922"),
    (13022, 9, "m N bfq8S select_queue: returned this queue"),
    (13023, 9, "m N bfq8S bfqq_served 8 secs"),
    (13024, 9, "D RS 900000 + 8 [kworker]"),
    (20000, 0, "C RS 900000 + 8 [0]"),
    (20001, 0, "m N bfq8S put_queue: 00000000bbbb0008 3"),
];

/// The log, with `from` replaced by `to` in its steps.
fn log(from: &str, to: &str) -> String {
    let mut text = HEADER.to_owned();
    for (us, task, what) in STEPS {
        let what = what.replace(from, to);
        let (who, context) = if *task == 0 { ("<idle>", "d.h2.") } else { ("a task", "d..1.") };
        let group = if what.starts_with('m') { "1,0 " } else { "" };
        text += &format!(" {who}-{task} [000] {context} 10.{us:06}: 7,0 {group} {what}\n");
    }
    text
}

fn report(text: &str) -> Report {
    compare(&mut || Ok(text.as_bytes()), "small.txt", &mut |_| {}).unwrap()
}

fn counts(report: &Report, topic: Topic) -> (u64, u64) {
    let a = report.agreement(topic);
    (a.compared, a.agreed)
}

#[test]
fn what_the_kernel_would_say_agrees() {
    let report = report(&log("", ""));
    assert_eq!(report.differences, []);
    assert_eq!(report.requests, 2);
    assert_eq!(counts(&report, Topic::Selections), (2, 2));
    assert_eq!(counts(&report, Topic::Expiries), (1, 1));
    assert_eq!(counts(&report, Topic::Attempts), (3, 3));
    assert_eq!(counts(&report, Topic::Times), (3, 3));
    assert_eq!(counts(&report, Topic::Feedback), (1, 1));
    assert!(report.agrees());
}

#[test]
fn another_reason_is_a_difference_once() {
    let report = report(&log("expire (0", "expire (1"));
    assert_eq!(counts(&report, Topic::Expiries), (1, 0));
    assert_eq!(counts(&report, Topic::Selections), (2, 2), "what follows is not affected");
    let [difference] = &report.differences[..] else { panic!("{:?}", report.differences) };
    assert_eq!((difference.topic, difference.line), (Topic::Expiries, 33));
    assert!(difference.kernel.contains("expire (1"), "{}", difference.kernel);
    assert!(difference.ours.contains("IdleTimeout of task 7"), "{}", difference.ours);
    assert!(difference.state.contains("bfq7S in service"), "{}", difference.state);
    assert!(!report.agrees());
}

/// After a difference ours has the kernel's numbers, so that what follows from them agrees again.
#[test]
fn other_numbers_are_differences_and_are_adopted() {
    let budget = report(&log("last max_budg 10922", "last max_budg 9000"));
    assert_eq!(counts(&budget, Topic::Feedback), (1, 0));
    let start = report(&log("start 838860, finish 1146093567", "start 838861, finish 1146093568"));
    assert_eq!(counts(&start, Topic::Inputs), (3, 2));
    assert_eq!(counts(&start, Topic::Times), (2, 2));
    let finish = report(&log("finish 1146093567, delta", "finish 1146093560, delta"));
    assert_eq!(counts(&finish, Topic::Times), (3, 2), "from equal inputs");
}

/// The kernel raises no queue of a large burst that began before the log; ours sees that once.
#[test]
fn a_burst_that_the_log_shows_is_taken_over() {
    let report = report(&log("", "").replace("low_latency=0", "low_latency=1"));
    assert_eq!(counts(&report, Topic::Inputs), (3, 2), "{:?}", report.differences);
    assert_eq!(counts(&report, Topic::Budgets), (2, 2));
    assert_eq!(counts(&report, Topic::Times), (2, 2));
    assert_eq!(report.differences.len(), 1);
}

/// The device had no room: the request waits outside the scheduler, and another thread sends it. The first
/// thread has not said anything since, so that nothing has ended its step yet.
#[test]
fn what_another_thread_sends_belongs_to_the_attempt_that_is_still_open() {
    let text = log("", "");
    let own = " a task-9 [000] d..1. 10.013024: 7,0  D RS 900000 + 8 [kworker]\n";
    assert!(text.contains(own));
    let other = own.replace("task-9", "task-21").replace("13024", "19024");
    let report = report(&text.replace(own, &other));
    assert_eq!(report.differences, []);
    assert_eq!(counts(&report, Topic::Requests), (2, 2));
}

/// The kernel serves the first queue again and again, although it would not.
#[test]
fn another_selection_is_forced() {
    let text = log("bfq8S set_in_service", "bfq7S set_in_service");
    let report = report(&text);
    assert_eq!(counts(&report, Topic::Selections), (2, 1));
    assert_eq!(report.requests, 2);
}

/// What is cut off in the middle of a step may differ, but nothing before it.
#[test]
fn a_log_that_ends_early_is_compared_as_far_as_it_goes() {
    let text = log("", "");
    let lines: Vec<&str> = text.lines().collect();
    for n in 4..lines.len() {
        let part = lines[..n].join("\n");
        let steps = report(&part).differences.len();
        assert!(steps <= 3, "{steps} differences after {n} lines");
    }
}

/// Lines in any order, twice, or missing: a report or an error, and no panic.
#[test]
fn no_log_makes_it_panic() {
    let text = log("", "");
    let lines: Vec<&str> = text.lines().collect();
    let mut x = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..300 {
        let mut picked = lines[..3].to_vec();
        for _ in 0..120 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            picked.push(lines[usize::try_from(x % lines.len() as u64).unwrap()]);
        }
        let text = picked.join("\n");
        let _ = compare(&mut || Ok(text.as_bytes()), "x", &mut |_| {});
    }
}

/// While a best-effort request is at the device, an idle one and then a real-time one come.
const CLASSES: &str = "# scenario classes scheduler=mq-deadline
# run: ionice -c1 fio --name=a --size=1m & fio --name=b --offset=1m --size=1m & ionice -c 3 fio --name=c --offset=2m --size=1m & wait
 fio-7 [000] d..1. 10.000100: 7,0 I RS 2048 + 8 [fio]
 fio-7 [000] d..1. 10.000101: 7,0 D RS 2048 + 8 [fio]
 fio-9 [000] d..1. 10.000200: 7,0 I RS 4096 + 8 [fio]
 fio-8 [000] d..1. 10.000300: 7,0 I RS 16 + 8 [fio]
 <idle>-0 [000] d.h2. 10.000400: 7,0 C RS 2048 + 8 [0]
 kworker-3 [000] d..1. 10.000401: 7,0 D RS 16 + 8 [kworker]
 <idle>-0 [000] d.h2. 10.000500: 7,0 C RS 16 + 8 [0]
 kworker-3 [000] d..1. 10.000501: 7,0 D RS 4096 + 8 [kworker]
";

#[test]
fn a_load_tells_the_classes_of_mq_deadline() {
    assert_eq!(counts(&report(CLASSES), Topic::Requests), (3, 3));
    // Without it all are best effort, and the batch continues upwards.
    let unknown = CLASSES.replace("# run:", "# ran:");
    assert_eq!(counts(&report(&unknown), Topic::Requests), (2, 1));
    let stated = CLASSES.replace("# run:", "# task 8 class=rt\n# task 9 class=idle\n# ran:");
    assert_eq!(counts(&report(&stated), Topic::Requests), (3, 3));
}

#[test]
fn a_task_of_either_of_two_classes_is_refused() {
    let text = CLASSES.replace("--offset=2m --size=1m", "--size=1m");
    let error = compare(&mut || Ok(text.as_bytes()), "x.txt", &mut |_| {}).unwrap_err().to_string();
    let right =
        "x.txt:6: task 8 begins at sector 16, where job 'a' or job 'c' may be at work; right is: # task PID";
    assert!(error.starts_with(right), "{error}");
    let text = CLASSES.replace("ionice -c 3 fio", "while true; do fio");
    let error = compare(&mut || Ok(text.as_bytes()), "x.txt", &mut |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("x.txt:2: the load has `while`"), "{error}");
}
