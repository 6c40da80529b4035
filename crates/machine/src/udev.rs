//! udev rules that set attributes of disks' queues.
//!
//! Files are read in the order of their names over all folders; a file in `/etc` replaces one of the same
//! name in `/run`, and that one replaces the package's. Within a file, a rule that matches assigns, and a
//! `GOTO` jumps.
//!
//! What this does not do: run programs, import databases, or match attributes of parent devices. A rule that
//! asks for such things *may* match.

use crate::disks::Disk;
use crate::keys::KEYS;
use crate::tree::Tree;
use std::collections::BTreeMap;

/// The folders of rules, the strongest first.
const FOLDERS: [&str; 4] =
    ["etc/udev/rules.d", "run/udev/rules.d", "usr/lib/udev/rules.d", "lib/udev/rules.d"];

/// Whether a rule is for a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Matches {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It asks for something that is not looked up here.
    Maybe,
}

/// A line of a file of rules that assigns an attribute of a queue, or jumps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The path of the file, from the root.
    pub file: String,
    /// The number of the line, from one.
    pub line: usize,
    /// What must hold: key, whether it must differ, pattern.
    conditions: Vec<(String, bool, String)>,
    /// What is assigned to files of `queue/`: name and value, such as `scheduler` and `bfq`.
    pub sets: Vec<(String, String)>,
    goto: Option<String>,
    label: Option<String>,
}

impl Rule {
    /// Reads the rules of all files, in the order in which udev goes through them.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let mut files: BTreeMap<String, &str> = BTreeMap::new();
        for folder in FOLDERS.iter().rev() {
            let names = tree.names(folder).into_iter().filter(|n| n.ends_with(".rules"));
            files.extend(names.map(|n| (n, *folder)));
        }
        let mut rules = Vec::new();
        for (name, folder) in files {
            let path = format!("{folder}/{name}");
            // A link to /dev/null switches a package's file off.
            rules.extend(Self::parse(&format!("/{path}"), &tree.text(&path).unwrap_or_default()));
        }
        rules
    }

    /// Reads a file's text. A line that ends in a backslash continues in the next.
    pub(crate) fn parse(file: &str, text: &str) -> Vec<Self> {
        let (mut rules, mut whole, mut first) = (Vec::new(), String::new(), 1);
        for (number, line) in text.lines().enumerate() {
            if whole.is_empty() {
                first = number + 1;
            }
            if let Some(part) = line.strip_suffix('\\') {
                whole.push_str(part);
                continue;
            }
            whole.push_str(line);
            let rule = Self::parse_line(file, first, whole.trim());
            rules.extend(rule.filter(|r| !r.sets.is_empty() || r.goto.is_some() || r.label.is_some()));
            whole.clear();
        }
        rules
    }

    fn parse_line(file: &str, line: usize, text: &str) -> Option<Self> {
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        let (conditions, sets) = (Vec::new(), Vec::new());
        let mut rule = Self { file: file.to_owned(), line, conditions, sets, goto: None, label: None };
        for (key, operator, value) in tokens(text) {
            match operator {
                "==" | "!=" => rule.conditions.push((key, operator == "!=", value)),
                _ if key == "GOTO" => rule.goto = Some(value),
                _ if key == "LABEL" => rule.label = Some(value),
                _ => rule.sets.extend(queue_attribute(&key).map(|name| (name.to_owned(), value))),
            }
        }
        Some(rule)
    }

    /// Whether the rule is for the disk when it appears or changes.
    #[must_use]
    pub fn matches(&self, disk: &Disk) -> Matches {
        let mut all = Matches::Yes;
        for (key, differs, pattern) in &self.conditions {
            let Some(value) = value_of(disk, key) else {
                all = Matches::Maybe;
                continue;
            };
            let fits = value.iter().any(|v| pattern.split('|').any(|p| glob(p, v)));
            if fits == *differs {
                return Matches::No;
            }
        }
        all
    }

    /// The last assignment of `queue/NAME` for the disk, with the rule that makes it.
    pub(crate) fn setting<'a>(rules: &'a [Self], disk: &Disk, name: &str) -> Option<(&'a Self, &'a str)> {
        let (mut last, mut skip) = (None, None);
        for rule in rules {
            // A jump goes forward within its file.
            if let Some((file, label)) = skip {
                if rule.file == file && rule.label.as_deref() != Some(label) {
                    continue;
                }
                skip = None;
            }
            if rule.matches(disk) == Matches::No {
                continue;
            }
            if let (Some(label), Matches::Yes) = (&rule.goto, rule.matches(disk)) {
                skip = Some((rule.file.as_str(), label.as_str()));
            }
            let value = rule.sets.iter().rev().find(|(n, _)| n == name);
            last = value.map(|(_, v)| (rule, v.as_str())).or(last);
        }
        last
    }

    /// The serial number that the rule asks for, if it is for one disk.
    #[must_use]
    pub fn serial(&self) -> Option<&str> {
        let is = |k: &str| k == "ENV{ID_SERIAL}" || k == "ENV{ID_SERIAL_SHORT}";
        let condition = self.conditions.iter().find(|(k, differs, _)| is(k) && !differs)?;
        Some(&condition.2)
    }
}

/// The name in `ATTR{queue/NAME}` or `ATTR{queue/iosched/NAME}`, without `queue/`.
fn queue_attribute(key: &str) -> Option<&str> {
    key.strip_prefix("ATTR{queue/")?.strip_suffix('}')
}

/// Takes `KEY=="value", KEY="value"` apart.
fn tokens(text: &str) -> Vec<(String, &str, String)> {
    let (mut rest, mut found) = (text, Vec::new());
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let Some(at) = rest.find(['=', '!', '+', '-', ':']) else { return found };
        let key = rest[..at].trim().to_owned();
        let operator = ["==", "!=", "+=", "-=", ":=", "="].into_iter().find(|o| rest[at..].starts_with(o));
        let Some(operator) = operator else { return found };
        rest = rest[at + operator.len()..].trim_start_matches([' ', '\t', 'e', 'i']);
        let Some(quoted) = rest.strip_prefix('"') else { return found };
        let Some(end) = quoted.find('"') else { return found };
        found.push((key, operator, quoted[..end].to_owned()));
        rest = &quoted[end + 1..];
    }
}

/// What the disk has for a key; several where any of them will do. `None` if that is not looked up here.
fn value_of(disk: &Disk, key: &str) -> Option<Vec<String>> {
    let one = |text: &str| Some(vec![text.to_owned()]);
    match key {
        "KERNEL" => one(&disk.name),
        "SUBSYSTEM" => one("block"),
        "ACTION" => Some(vec!["add".to_owned(), "change".to_owned()]),
        "ENV{DEVTYPE}" => one("disk"),
        _ if KEYS.contains(&key) => match disk.identity.get(key) {
            // Without the database it is not known whether the disk has the property.
            None if key.starts_with("ENV") && !disk.is_in_database => None,
            value => Some(value.cloned().into_iter().collect()),
        },
        _ => disk.queue.get(queue_attribute(key)?).map(|v| vec![v.clone()]),
    }
}

/// Whether the text fits a pattern of `*`, `?` and `[…]`, as udev's patterns are.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    fits(&pattern, &text)
}

fn fits(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['*', rest @ ..], _) => (0..=text.len()).any(|n| fits(rest, &text[n..])),
        (['?', rest @ ..], [_, more @ ..]) => fits(rest, more),
        (['[', set @ ..], [c, more @ ..]) => {
            let Some(end) = set.iter().position(|&c| c == ']') else { return false };
            is_in(&set[..end], *c) && fits(&set[end + 1..], more)
        }
        ([p, rest @ ..], [c, more @ ..]) if p == c => fits(rest, more),
        _ => false,
    }
}

/// Whether the character is in the set `a-z0`, or not in `!a-z0`.
fn is_in(set: &[char], c: char) -> bool {
    let (set, negated) = match set {
        ['!' | '^', rest @ ..] => (rest, true),
        _ => (set, false),
    };
    let mut rest = set;
    let mut found = false;
    while let Some((&first, more)) = rest.split_first() {
        (found, rest) = match more {
            ['-', last, after @ ..] => (found || (first..=*last).contains(&c), after),
            _ => (found || first == c, more),
        };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(glob("sd[a-z]*", "sda") && glob("sd*[!0-9]", "sda") && !glob("sd*[!0-9]", "sda1"));
        assert!(glob("nvme?n*", "nvme0n1") && !glob("nvme?n*", "sda"));
    }

    #[test]
    fn a_line_taken_apart() {
        let text = "ACTION!=\"remove\", SUBSYSTEM==\"block\",\\\n ATTR{queue/scheduler}=\"bfq\"\n# no\n";
        let rules = Rule::parse("/etc/a.rules", text);
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].line, 1);
        assert_eq!(rules[0].sets, [("scheduler".to_owned(), "bfq".to_owned())]);
        assert_eq!(rules[0].conditions[0], ("ACTION".to_owned(), true, "remove".to_owned()));
    }

    #[test]
    fn half_a_line_is_no_rule() {
        for text in ["KERNEL==\"sda", "KERNEL", "=\"\"", "ATTR{queue/scheduler}=", "\\"] {
            assert!(Rule::parse("f", text).iter().all(|r| r.sets.is_empty()), "{text}");
        }
    }
}
