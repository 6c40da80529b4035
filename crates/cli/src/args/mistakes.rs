//! A command line that is wrong, in one line: what is wrong, and what was probably meant.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use fairhead_sim::job::nearest;

use super::Cli;
use crate::error::one_line;

/// Words that people write for a command.
const MEANT: [(&str, &str); 25] = [
    ("bench", "run"),
    ("benchmark", "run"),
    ("compare", "run"),
    ("replay", "run"),
    ("simulate", "run"),
    ("choose", "advise"),
    ("recommend", "advise"),
    ("suggest", "advise"),
    ("tune", "advise"),
    ("check", "doctor"),
    ("diagnose", "doctor"),
    ("status", "top"),
    ("stats", "ctl"),
    ("set", "apply"),
    ("measure", "calibrate"),
    ("convert", "trace"),
    ("describe", "trace"),
    ("export", "serve"),
    ("nbd", "serve"),
    ("fuse", "mount"),
    ("new", "new-scheduler"),
    ("info", "show"),
    ("ls", "list"),
    ("manual", "man"),
    ("version", "--version"),
];

/// Options that other programs have, and how they are written here.
const MEANT_OPTIONS: [(&str, &str, &str); 9] = [
    ("--json", "--output-format", "--output-format json"),
    ("--csv", "--output-format", "--output-format csv"),
    ("--format", "--output-format", "--output-format"),
    ("--time", "--runtime", "--runtime"),
    ("--duration", "--runtime", "--runtime"),
    ("--duration", "--time", "--time"),
    ("--tcp", "--listen", "--listen"),
    ("--port", "--listen", "--listen"),
    ("--device", "--disk", "--disk"),
];

/// Options of which several values are one word with commas.
const LISTS: [&str; 2] = ["--sched", "--disk"];

/// Returns clap's message in one line, with the nearest valid word if there is one.
pub(super) fn explain(e: &clap::Error, argv: &[OsString]) -> String {
    if e.kind() == ErrorKind::UnknownArgument
        && let Some((option, value)) = negative(argv)
    {
        return format!("{option} {value}: a value below zero has no meaning here");
    }
    // clap puts its own brackets around a name that has two words in brackets.
    let text = e.to_string().replace("<SCHEDULER] [NAME=VALUE>", "[SCHEDULER] [NAME=VALUE]");
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let mut line = match e.kind() {
        // The missing arguments are on the lines below.
        ErrorKind::MissingRequiredArgument | ErrorKind::InvalidValue => {
            let body: Vec<&str> = text
                .lines()
                .take_while(|l| !l.starts_with("Usage:") && !l.trim_start().starts_with("tip:"))
                .filter(|l| !l.starts_with("For more information"))
                .collect();
            one_line(body.join("\n").trim_start_matches("error: ")).replace(":;", ":")
        }
        _ => first.replace("invalid digit found in string", "a whole number is needed"),
    };
    if let Some(hint) = hint(e, argv) {
        line.push_str(&format!("; {hint}"));
    } else if let Some(word) = suggestion(e) {
        line.push_str(&format!("; did you mean '{word}'?"));
    }
    line
}

/// What people write for an option that is not known, or behind one that is.
fn hint(e: &clap::Error, argv: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(unknown)) = e.get(ContextKind::InvalidArg) else { return None };
    if e.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let words: Vec<&str> = argv.iter().filter_map(|w| w.to_str()).collect();
    let all = Cli::command();
    let command = all.find_subcommand(words.get(1)?)?;
    let is = |a: &clap::Arg, option: &str| option.strip_prefix("--").is_some_and(|n| a.get_long() == Some(n));
    let has = |option: &str| command.get_arguments().any(|a| is(a, option));
    let meant = |option: &str| format!("did you mean '{option}'?");
    if let Some((.., here)) = MEANT_OPTIONS.iter().find(|(there, here, _)| there == unknown && has(here)) {
        return Some(meant(here));
    }
    // clap reads -disk as -d and what follows.
    let short = words.iter().find(|w| w.len() > 2 && w.starts_with('-') && w.starts_with(unknown.as_str()));
    if let Some(option) = short.map(|w| format!("-{w}")).filter(|o| has(o)) {
        return Some(meant(&option));
    }
    let at = words.iter().position(|w| w == unknown)?;
    let before = |n: usize| at.checked_sub(n).and_then(|i| words.get(i)).copied().unwrap_or_default();
    let list = LISTS.iter().find_map(|l| {
        let value = before(1).strip_prefix(l).and_then(|rest| rest.strip_prefix('='));
        value.or_else(|| (before(2) == *l).then(|| before(1))).map(|value| (l, value))
    });
    let (option, value) = list.filter(|(l, _)| has(l) && !unknown.starts_with('-'))?;
    let value = value.trim_end_matches(',');
    Some(format!("several values are one word with commas: {option} {value},{unknown}"))
}

/// An option that takes a value, and behind it a number below zero, which looks like an option.
fn negative(argv: &[OsString]) -> Option<(&str, &str)> {
    let words: Vec<&str> = argv.iter().map(|w| w.to_str().unwrap_or_default()).collect();
    let is_negative =
        |w: &str| w.strip_prefix('-').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    let commands = Cli::command();
    let takes_value = |word: &str| {
        let mut options = commands.get_subcommands().flat_map(clap::Command::get_arguments);
        options.any(|o| {
            let is_long = || word.strip_prefix("--").is_some_and(|name| o.get_long() == Some(name));
            let is_short = |c: char| word.strip_prefix('-').is_some_and(|w| w.chars().eq([c]));
            o.get_action().takes_values() && (is_long() || o.get_short().is_some_and(is_short))
        })
    };
    words.windows(2).find(|w| takes_value(w[0]) && is_negative(w[1])).map(|w| (w[0], w[1]))
}

/// Returns the word that was probably meant. For a command: what people call it, else the one with the fewest
/// typing errors, then clap's guess, which takes words that begin alike for each other. For anything else
/// clap's guess comes first.
fn suggestion(e: &clap::Error) -> Option<String> {
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(s)) => Some(s.clone()),
        Some(ContextValue::Strings(s)) => s.first().cloned(),
        _ => None,
    };
    if let Some(word) = text(ContextKind::InvalidSubcommand) {
        let command = Cli::command();
        let seen = command.get_subcommands().filter(|c| !c.is_hide_set());
        let known: Vec<&str> = seen.map(clap::Command::get_name).collect();
        let meant = MEANT.iter().find(|(w, _)| *w == word).map(|(_, meant)| (*meant).to_owned());
        let near = || nearest(&word, known.iter().copied()).map(str::to_owned);
        return meant.or_else(near).or_else(|| text(ContextKind::SuggestedSubcommand));
    }
    let clap_knows = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    if let Some(word) = clap_knows.into_iter().find_map(text) {
        return Some(word);
    }
    match (text(ContextKind::InvalidValue), e.get(ContextKind::ValidValue)) {
        (Some(word), Some(ContextValue::Strings(known))) => {
            nearest(&word, known.iter().map(String::as_str)).map(str::to_owned)
        }
        _ => None,
    }
}
