//! The answer to arguments that cannot be used: one line, and exit code 2.

use std::process::Command;

/// A sequential reader that came to the region of the next one touched its request, and the two merged.
#[test]
fn a_long_loop_does_not_end_in_a_panic() {
    for requests in ["85000", "300000"] {
        let program = env!("CARGO_BIN_EXE_fairhead-bench");
        let output =
            Command::new(program).args(["run", "mq-deadline", "16", requests]).output().expect("it runs");
        let (said, wrong) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && wrong.is_empty(), "{requests}: {wrong}");
        assert_eq!(said.lines().count(), 1, "{requests}: {said}");
    }
}

#[test]
fn numbers_that_a_loop_cannot_take_are_one_line() {
    for arguments in [&["crowd", "bfq", "0", "10"][..], &["simulate", "bfq", "0"], &["run", "bfq", "0", "9"]]
    {
        let program = env!("CARGO_BIN_EXE_fairhead-bench");
        let output = Command::new(program).args(arguments).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{arguments:?}: {said}");
    }
}

#[test]
fn a_bad_load_of_drives_is_one_line() {
    for (numbers, says) in [
        (&["5", "0", "128"][..], "numjobs"),
        (&["5", "8", "0"], "iodepth"),
        (&["5", "1000000", "128"], "numjobs"),
        (&["5", "eight", "128"], "write how many milliseconds"),
        (&["5", "8"], "write how many milliseconds"),
    ] {
        let program = env!("CARGO_BIN_EXE_fairhead-bench");
        let output = Command::new(program).args(["drives", "noop"]).args(numbers).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{numbers:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{numbers:?}: {text}");
        assert!(text.contains(says), "{numbers:?}: {text}");
    }
}
