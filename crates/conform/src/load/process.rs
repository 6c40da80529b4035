//! One command of a load: what it does to groups, and which `fio` it runs with which class.

use fairhead_core::Class;

/// `fio`, or the shell that runs it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Run {
    pub(super) group: String,
    /// What stands behind `fio`.
    pub(super) words: Vec<String>,
    pub(super) class: Option<Class>,
    pub(super) level: Option<u8>,
}

/// What a command does that matters.
pub(super) enum Effect {
    None,
    /// A group gets a weight.
    Weight {
        group: String,
        weight: u16,
    },
    Fio(Run),
    /// A further shell that runs this text.
    Script(String, Run),
}

/// The files by which a group is set.
const GROUP_FILES: [&str; 2] = ["cgroup.procs", "tasks"];

/// What the words do. `group` is the group of the shell, and may change; `outer` is what holds for the shell
/// itself.
pub(super) fn command(words: &[String], group: &mut String, outer: &Run) -> Result<Effect, String> {
    let Some(first) = words.first() else { return Ok(Effect::None) };
    if let Some(at) = words.iter().position(|w| w == ">")
        && let Some(target) = words.get(at + 1).filter(|target| sets_a_group(target))
    {
        return write(&words[..at], target, group);
    }
    if first == "tee" && words.iter().any(|w| sets_a_group(w)) {
        return Err("`tee` into a group's file; right is: echo WEIGHT > …/NAME/io.bfq.weight".to_owned());
    }
    run(words, group, outer)
}

fn sets_a_group(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file.ends_with("bfq.weight") || GROUP_FILES.contains(&file)
}

/// `echo WORDS > FILE`, where the file sets a group's weight or holds its tasks.
fn write(words: &[String], target: &str, group: &mut String) -> Result<Effect, String> {
    let Some((directory, file)) = target.rsplit_once('/') else {
        return Err(format!("`> {target}` without its directory"));
    };
    let path = below_root(known(directory)?);
    let [program, arguments @ ..] = words else { return Err(format!("`> {target}` without a command")) };
    if !matches!(program.as_str(), "echo" | "printf") {
        return Err(format!("`{program}` into {file}; right is: echo VALUE > …/{file}"));
    }
    // `default 300` and `8:0 300` end with the weight as well.
    let value = arguments.last().and_then(|a| a.split_whitespace().last()).unwrap_or_default();
    if file.ends_with("bfq.weight") {
        let weight = known(value)?.parse().ok().filter(|w| (1..=1000).contains(w));
        let weight =
            weight.ok_or_else(|| format!("the weight '{value}'; right is a number from 1 to 1000"))?;
        return Ok(Effect::Weight { group: path, weight });
    }
    if !matches!(value, "0" | "$$" | "$BASHPID") {
        return Err(format!("`echo {value} > …/{file}`, which moves another process than the shell itself"));
    }
    *group = path;
    Ok(Effect::None)
}

/// The text, if it is known in full.
pub(super) fn known(text: &str) -> Result<&str, String> {
    if text.contains(['$', '`']) {
        Err(format!("'{text}', whose value the log does not show"))
    } else {
        Ok(text)
    }
}

/// The path of a group's directory below its hierarchy's root.
fn below_root(directory: &str) -> String {
    let path = directory.trim_start_matches("/sys/fs/cgroup").trim_matches('/');
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_hierarchy = first == "unified" || first.split(',').any(|c| c == "blkio");
    (if is_hierarchy { rest } else { path }).to_owned()
}

fn is_program(word: &str, name: &str) -> bool {
    word.rsplit('/').next() == Some(name)
}

/// `fio` or a shell, with what may stand before it: `exec`, `time`, `taskset -c 0`, `ionice -c 1 -n 0`,
/// `cgexec -g blkio:a`.
fn run(words: &[String], group: &str, outer: &Run) -> Result<Effect, String> {
    let mut run = Run { group: group.to_owned(), words: Vec::new(), ..outer.clone() };
    let mut is_owned = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if is_program(word, "fio") {
            run.words = words[at..].to_vec();
            return Ok(Effect::Fio(run));
        }
        if ["sh", "bash", "dash"].iter().any(|shell| is_program(word, shell)) {
            return match &words[at..] {
                [c, text, ..] if c == "-c" => Ok(Effect::Script(text.clone(), run)),
                [] => Ok(Effect::None),
                _ => Err(format!("`{}`, a script that the log does not hold", words[at - 1..].join(" "))),
            };
        }
        if is_program(word, "ionice") {
            at = ionice(words, at, &mut run)?;
            is_owned = true;
        } else if is_program(word, "cgexec") {
            at = cgexec(words, at, &mut run)?;
            is_owned = true;
        } else if is_owned && !is_wrapper(word) {
            return Err(format!(
                "`{word}` in a class or group; where on the disk it works the log does not show"
            ));
        }
    }
    Ok(Effect::None)
}

/// Programs that run another, and their options.
fn is_wrapper(word: &str) -> bool {
    let starts = word.starts_with(['-', '.']) || word.starts_with(|c: char| c.is_ascii_digit());
    let names = ["exec", "time", "nice", "taskset", "timeout", "nohup", "setsid", "env", "sudo", "command"];
    starts || word.contains('=') || names.iter().any(|name| is_program(word, name))
}

/// The value of the option at `at`, which is `flag VALUE`, `flagVALUE` or `--long=VALUE`; and where the next
/// word is.
fn value<'a>(words: &'a [String], at: usize, flag: &str, long: &str) -> Option<(&'a str, usize)> {
    let word = words.get(at)?.as_str();
    if word == flag || word == long {
        return Some((words.get(at + 1)?, at + 2));
    }
    if let Some(value) = word.strip_prefix(long) {
        return Some((value.strip_prefix('=')?, at + 1));
    }
    Some((word.strip_prefix(flag)?, at + 1))
}

/// The options of `ionice`; returns where the program that it runs is.
fn ionice(words: &[String], mut at: usize, run: &mut Run) -> Result<usize, String> {
    while let Some(word) = words.get(at).filter(|w| w.starts_with('-')) {
        if let Some((class, next)) = value(words, at, "-c", "--class") {
            run.class = class_of(class)?;
            at = next;
        } else if let Some((level, next)) = value(words, at, "-n", "--classdata") {
            run.level = Some(level_of(level)?);
            at = next;
        } else if matches!(word.as_str(), "-t" | "--ignore") {
            at += 1;
        } else if word.starts_with("-p") || word.starts_with("--pid") {
            return Err("`ionice -p`, which changes a process that runs already".to_owned());
        } else {
            return Err(format!("`ionice {word}`"));
        }
    }
    Ok(at)
}

/// The options of `cgexec`; returns where the program that it runs is.
fn cgexec(words: &[String], mut at: usize, run: &mut Run) -> Result<usize, String> {
    while let Some(word) = words.get(at).filter(|w| w.starts_with('-')) {
        let Some((group, next)) = value(words, at, "-g", "--group") else {
            if word == "--sticky" {
                at += 1;
                continue;
            }
            return Err(format!("`cgexec {word}`"));
        };
        run.group = known(group)?.rsplit(':').next().unwrap_or_default().to_owned();
        at = next;
    }
    Ok(at)
}

/// As `ionice` and `fio` number and name them; `None` is no class of its own.
pub(super) fn class_of(text: &str) -> Result<Option<Class>, String> {
    match text.to_ascii_lowercase().as_str() {
        "0" | "none" => Ok(None),
        "1" | "realtime" | "rt" => Ok(Some(Class::RealTime)),
        "2" | "best-effort" | "be" => Ok(Some(Class::BestEffort)),
        "3" | "idle" => Ok(Some(Class::Idle)),
        _ => Err(format!("the class '{text}'; right is 1 (real time), 2 (best effort) or 3 (idle)")),
    }
}

/// A level within a class.
pub(super) fn level_of(text: &str) -> Result<u8, String> {
    let level = text.parse().ok().filter(|l| *l < 8);
    level.ok_or_else(|| format!("the level '{text}'; right is a number from 0 to 7"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fio(command_line: &str) -> Run {
        let words: Vec<String> = command_line.split_whitespace().map(str::to_owned).collect();
        match command(&words, &mut "g".to_owned(), &Run::default()) {
            Ok(Effect::Fio(run)) => run,
            Ok(_) => panic!("{command_line}: no fio"),
            Err(what) => panic!("{command_line}: {what}"),
        }
    }

    #[test]
    fn ionice_in_all_its_spellings() {
        for idle in ["-c3", "-c 3", "-c idle", "--class 3", "--class=idle", "-t -c3"] {
            assert_eq!(fio(&format!("exec ionice {idle} fio x")).class, Some(Class::Idle), "{idle}");
        }
        let run = fio("ionice -c1 -n 2 /usr/bin/fio x");
        assert_eq!((run.class, run.level), (Some(Class::RealTime), Some(2)));
        assert_eq!(fio("ionice --classdata=5 nice -n 3 fio x").level, Some(5));
    }

    /// Options of other programs look like those of `ionice`.
    #[test]
    fn other_programs_have_options_of_their_own() {
        let run = fio("taskset -c 3 nice -n 5 fio x");
        assert_eq!((run.class, run.level, run.group.as_str()), (None, None, "g"));
        assert_eq!(fio("cgexec -g blkio:a/b ionice -c 3 fio x").group, "a/b");
    }
}
