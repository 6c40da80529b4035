//! Help on a terminal of 80 columns, for every command.

use std::process::{Command, Stdio};

fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
    let out = command.args(args).env("COLUMNS", "80").stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn commands() -> Vec<String> {
    let all = help(&["--help"]);
    let list = all.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let names = list.lines().filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn no_line_of_help_is_wider_than_the_terminal() {
    let commands = commands();
    assert!(commands.len() > 20 && commands.iter().any(|c| c == "new-scheduler"), "{commands:?}");
    let texts = commands.iter().flat_map(|c| [vec![c.as_str(), "--help"], vec![c.as_str(), "-h"]]);
    for args in texts.chain([vec!["--help"], vec!["-h"], vec![]]) {
        for line in help(&args).lines() {
            // Where the pages are is the place of this clone.
            let is_place = line.starts_with("The pages docs/…");
            assert!(line.chars().count() <= 80 || is_place, "{args:?}: {line}");
        }
    }
}

/// The README's table of a run, on a terminal of that width.
#[test]
fn the_table_of_a_run_is_no_wider_than_the_terminal_and_says_what_it_leaves_out() {
    let args = ["run", "app-start", "--sched", "deadline,cfq,bfq"];
    let said = help(&args);
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    assert!(said.contains("\nno room for: MiB/s while all ran"), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairhead"));
    let whole = command.args(args).env_remove("COLUMNS").stdin(Stdio::null()).output().unwrap();
    let whole = String::from_utf8(whole.stdout).unwrap();
    assert!(whole.contains("MiB/s while all ran") && !whole.contains("no room for"), "{whole}");
}

/// The headings of the options of a command, in order, and the options below each.
fn groups(command: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for line in help(&[command, "--help"]).lines() {
        match line.strip_suffix(':').filter(|head| !head.starts_with(' ')) {
            Some(head) => groups.push((head.to_owned(), Vec::new())),
            None => {
                let option = line.trim_start().split([' ', '\n']).find(|word| word.starts_with("--"));
                let is_option = line.starts_with("  ") && line.trim_start().starts_with('-');
                if let (Some((_, options)), Some(option), true) = (groups.last_mut(), option, is_option) {
                    options.push(option.to_owned());
                }
            }
        }
    }
    groups
}

#[test]
fn options_stand_below_headings_that_say_what_they_are_for() {
    for command in ["run", "advise", "sweep"] {
        let groups = groups(command);
        let of = |option: &str| {
            let has = |g: &&(String, Vec<String>)| g.1.iter().any(|o| o == option);
            groups.iter().find(has).map(|g| g.0.as_str())
        };
        for (option, heading) in [
            ("--replay", "Traces"),
            ("--replay-depth", "Traces"),
            ("--disk", "Disk and schedulers"),
            ("--sched", "Disk and schedulers"),
            ("--seed", "Runs"),
            ("--threads", "Runs"),
            ("--report", "Results"),
            ("--output", "Results"),
        ] {
            assert_eq!(of(option), Some(heading), "{command} {option}: {groups:?}");
        }
        let of_traces = &groups.iter().find(|g| g.0 == "Traces").unwrap().1;
        assert!(of_traces.iter().all(|o| o.starts_with("--replay")), "{command}: {of_traces:?}");
    }
}
