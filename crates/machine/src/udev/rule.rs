//! A line of a file of rules, taken apart.

use std::ops::RangeInclusive;

use super::glob::glob;

/// A line that does something that can change a disk's settings: it assigns an attribute of a queue or a
/// property, jumps, or is jumped to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rule {
    /// The path of the file, from the root.
    pub file: String,
    /// The number of the line, from one.
    pub line: usize,
    /// The number of the last line, where it continues in others.
    pub(crate) last: usize,
    /// What must hold.
    pub(super) conditions: Vec<Condition>,
    /// What is assigned to files of `queue/`: name and value, such as `scheduler` and `bfq`.
    pub sets: Vec<(String, String)>,
    /// What programs that the rule runs write to files of `queue/`, as far as their commands say it.
    pub(super) writes: Vec<(String, String)>,
    /// What is assigned to properties; no value for one that is not known.
    pub(super) properties: Vec<(String, Option<String>)>,
    pub(super) goto: Option<String>,
    pub(super) label: Option<String>,
}

/// `KEY=="pattern"`, or with `!=`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Condition {
    pub(super) key: String,
    pub(super) differs: bool,
    pub(super) pattern: String,
    pub(super) ignores_case: bool,
}

impl Rule {
    /// Reads a file's text. A line that ends in a backslash continues in the next; lines of comment between
    /// the two are left out.
    pub(crate) fn parse(file: &str, text: &str) -> Vec<Self> {
        let (mut rules, mut whole, mut first) = (Vec::new(), String::new(), 1);
        for (number, line) in text.lines().enumerate() {
            if whole.is_empty() {
                first = number + 1;
            } else if line.trim_start().starts_with('#') {
                continue;
            }
            let line = line.trim_end();
            if let Some(part) = line.strip_suffix('\\').filter(|_| !line.trim_start().starts_with('#')) {
                whole.push_str(part);
                continue;
            }
            whole.push_str(line);
            rules.extend(
                Self::parse_line(file, first..=number + 1, whole.trim()).filter(Self::does_something),
            );
            whole.clear();
        }
        rules
    }

    fn does_something(&self) -> bool {
        !self.sets.is_empty()
            || !self.writes.is_empty()
            || !self.properties.is_empty()
            || self.goto.is_some()
            || self.label.is_some()
    }

    fn parse_line(file: &str, lines: RangeInclusive<usize>, text: &str) -> Option<Self> {
        if text.is_empty() || text.starts_with('#') {
            return None;
        }
        let (line, last) = lines.into_inner();
        let mut rule = Self { file: file.to_owned(), line, last, ..Self::default() };
        for token in tokens(text) {
            let Token { key, operator, value, ignores_case } = token;
            let is_assigned = !matches!(operator, "==" | "!=");
            match (key.as_str(), queue_attribute(&key), property(&key)) {
                // A program or an import that fails ends its rule, also with a single `=`.
                ("PROGRAM", ..) => rule.must_hold(key, operator, value, ignores_case),
                _ if key.starts_with("IMPORT{") => rule.must_hold(key, operator, value, ignores_case),
                _ if !is_assigned => rule.must_hold(key, operator, value, ignores_case),
                ("GOTO", ..) => rule.goto = Some(value),
                ("LABEL", ..) => rule.label = Some(value),
                ("RUN" | "RUN{program}", ..) => rule.writes.extend(write_to_scheduler(&value)),
                (_, Some(name), _) => rule.sets.push((name.to_owned(), value)),
                (_, _, Some(name)) => {
                    let is_plain = !value.contains(['$', '%']) && matches!(operator, "=" | ":=");
                    rule.properties.push((name.to_owned(), is_plain.then_some(value)));
                }
                _ => {}
            }
        }
        Some(rule)
    }

    fn must_hold(&mut self, key: String, operator: &str, pattern: String, ignores_case: bool) {
        self.conditions.push(Condition { key, differs: operator == "!=", pattern, ignores_case });
    }

    /// The serial number that the rule asks for, if it is for one disk.
    #[must_use]
    pub fn serial(&self) -> Option<&str> {
        let is = |k: &str| k == "ENV{ID_SERIAL}" || k == "ENV{ID_SERIAL_SHORT}";
        let condition = self.conditions.iter().find(|c| is(&c.key) && !c.differs)?;
        Some(&condition.pattern)
    }

    /// Whether the rule runs when a disk changes, and not only when it appears.
    pub(crate) fn is_for_change(&self) -> bool {
        let allows = |c: &Condition| glob_any(&c.pattern, "change") != c.differs;
        self.conditions.iter().filter(|c| c.key == "ACTION").all(allows)
    }

    /// Whether the rule asks for the scheduler that is in force, or that is offered.
    pub(crate) fn asks_for_scheduler(&self) -> bool {
        self.conditions.iter().any(|c| c.key == "ATTR{queue/scheduler}")
    }
}

/// Whether the text fits one of the patterns, which bars divide.
fn glob_any(patterns: &str, text: &str) -> bool {
    patterns.split('|').any(|p| glob(p, text))
}

/// What a command like `/bin/sh -c 'echo bfq > /sys/block/%k/queue/scheduler'` writes.
fn write_to_scheduler(command: &str) -> Option<(String, String)> {
    let (before, _) = command.split_once("queue/scheduler")?;
    let (_, written) = before.rsplit_once("echo ")?;
    let name = written.split(['>', ' ', ';']).find(|w| !w.is_empty())?.trim_matches(['"', '\'', '\\']);
    Some(("scheduler".to_owned(), name.to_owned()))
}

/// The name in `ATTR{queue/NAME}` or `ATTR{queue/iosched/NAME}`, without `queue/`. The read-ahead is also a
/// file of `bdi/`.
fn queue_attribute(key: &str) -> Option<&str> {
    let name = key.strip_prefix("ATTR{")?.strip_suffix('}')?;
    name.strip_prefix("queue/").or_else(|| name.strip_prefix("bdi/").filter(|n| *n == "read_ahead_kb"))
}

/// The name in `ENV{NAME}`.
pub(super) fn property(key: &str) -> Option<&str> {
    key.strip_prefix("ENV{")?.strip_suffix('}')
}

struct Token<'a> {
    key: String,
    operator: &'a str,
    value: String,
    ignores_case: bool,
}

/// Takes `KEY=="value", KEY="value"` apart. A value may have an `e` before it (escapes of C) or an `i` (large
/// and small letters are one).
fn tokens(text: &str) -> Vec<Token<'_>> {
    let (mut rest, mut found) = (text, Vec::new());
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let Some(at) = key_end(rest) else { return found };
        let key = rest[..at].trim().to_owned();
        let operator = ["==", "!=", "+=", "-=", ":=", "="].into_iter().find(|o| rest[at..].starts_with(o));
        let Some(operator) = operator else { return found };
        rest = rest[at + operator.len()..].trim_start();
        let prefix = rest.len() - rest.trim_start_matches(['e', 'i']).len();
        let ignores_case = rest[..prefix].contains('i');
        let Some(quoted) = rest[prefix..].strip_prefix('"') else { return found };
        let Some(end) = quote_end(quoted) else { return found };
        let value = quoted[..end].replace("\\\"", "\"");
        found.push(Token { key, operator, value, ignores_case });
        rest = &quoted[end + 1..];
    }
}

/// Where the key ends. The name in braces may have any character: `ATTR{power/autosuspend-delay}`.
fn key_end(text: &str) -> Option<usize> {
    let from = match (text.find('{'), text.find('=')) {
        (Some(open), Some(equals)) if open < equals => open + text[open..].find('}')?,
        _ => 0,
    };
    text[from..].find(['=', '!', '+', '-', ':']).map(|at| from + at)
}

/// Where the quote ends that has not a backslash before it.
fn quote_end(text: &str) -> Option<usize> {
    let is_end = |&(at, _): &(usize, &str)| !text[..at].ends_with('\\');
    text.match_indices('"').find(is_end).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_taken_apart() {
        let text =
            "ACTION!=\"remove\", SUBSYSTEM==\"block\",\\\n# between\n ATTR{queue/scheduler}=\"bfq\"\n# no\n";
        let rules = Rule::parse("/etc/a.rules", text);
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].line, 1);
        assert_eq!(rules[0].sets, [("scheduler".to_owned(), "bfq".to_owned())]);
        let first = &rules[0].conditions[0];
        assert_eq!((first.key.as_str(), first.differs, first.pattern.as_str()), ("ACTION", true, "remove"));
    }

    #[test]
    fn what_a_command_writes() {
        let written = |command| write_to_scheduler(command).map(|(_, name)| name);
        let usual = "/bin/sh -c 'echo bfq > /sys/block/%k/queue/scheduler'";
        assert_eq!(written(usual).as_deref(), Some("bfq"));
        assert_eq!(written("/bin/sh -c 'echo none>/sys$devpath/queue/scheduler'").as_deref(), Some("none"));
        assert_eq!(written("/bin/set queue/scheduler"), None);
        assert_eq!(written("echo  > queue/scheduler"), None);
    }

    #[test]
    fn half_a_line_is_no_rule() {
        for text in ["KERNEL==\"sda", "KERNEL", "=\"\"", "ATTR{queue/scheduler}=", "\\", "ATTR{a", "A{=\"x\""]
        {
            assert!(Rule::parse("f", text).iter().all(|r| r.sets.is_empty()), "{text}");
        }
    }

    #[test]
    fn letters_before_a_value_and_quotes_in_it() {
        let text = r#"KERNEL==i"SDA", ENV{A}="b", ATTR{x/y-z}=="\"q\"", ATTR{queue/scheduler}="bfq""#;
        let rule = Rule::parse("f", text).remove(0);
        assert!(rule.conditions[0].ignores_case && rule.conditions[0].pattern == "SDA");
        assert_eq!(rule.conditions[1].pattern, "\"q\"");
        assert_eq!(rule.properties, [("A".to_owned(), Some("b".to_owned()))]);
        assert_eq!(rule.sets.len(), 1);
    }
}
