//! Just enough of a shell: loops, arithmetic, parentheses, `echo … >`.

use fairhead_core::Class;

/// A command that matters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// A group gets a weight.
    Weight { group: String, weight: u16 },
    /// `fio` runs in a group.
    Run { group: String, words: Vec<String>, class: Option<Class>, level: Option<u8> },
}

/// More than any recording unrolls to, in bytes.
const SCRIPT_MAX: usize = 1 << 20;

/// The commands of a script, loops unrolled.
pub(super) fn commands(script: &str) -> Vec<Command> {
    let mut flat = String::new();
    unroll(&spaced(script), &mut flat, 0);
    let mut found = Vec::new();
    // One group for each open parenthesis.
    let mut groups = vec![String::new()];
    let mut words: Vec<String> = Vec::new();
    for word in flat.split_whitespace().chain([";"]) {
        if !matches!(word, ";" | "(" | ")") {
            words.push(arithmetic(word));
            continue;
        }
        let group = groups.last_mut().expect("the outermost stays");
        found.extend(command(&words, group));
        words.clear();
        match word {
            "(" => groups.push(groups.last().cloned().unwrap_or_default()),
            ")" if groups.len() > 1 => drop(groups.pop()),
            _ => {}
        }
    }
    found
}

/// The script with its signs as words of their own, and all that ends a command as `;`. Arithmetic stays one word.
fn spaced(script: &str) -> String {
    let mut out = String::with_capacity(script.len() * 2);
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        if let Some((inside, after)) = rest.strip_prefix("$((").and_then(|r| r.split_once("))")) {
            out.push_str("$((");
            out.extend(inside.chars().filter(|c| !c.is_whitespace()));
            out.push_str("))");
            rest = after;
            continue;
        }
        match c {
            ';' | '&' | '|' | '\n' => out.push_str(" ; "),
            '(' | ')' | '>' => out.extend([' ', c, ' ']),
            '"' | '\'' => {}
            _ => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Copies `text` with every `for NAME in WORDS ; do BODY ; done` written out.
fn unroll(text: &str, out: &mut String, depth: u32) {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if out.len() > SCRIPT_MAX {
            return;
        }
        if word != "for" || depth > 8 {
            out.push_str(word);
            out.push(' ');
            continue;
        }
        let name = words.next().unwrap_or_default();
        let values: Vec<&str> =
            words.by_ref().skip(1).take_while(|w| *w != "do").filter(|w| *w != ";").collect();
        let body = body(&mut words);
        for value in values {
            let once = body.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value);
            let once = with_bare_name(&once, name, value);
            unroll(&once, out, depth + 1);
            if out.len() > SCRIPT_MAX {
                return;
            }
        }
    }
}

/// The words up to the matching `done`.
fn body<'a>(words: &mut impl Iterator<Item = &'a str>) -> String {
    let (mut open, mut body) = (1, String::new());
    for word in words {
        match word {
            "for" | "while" => open += 1,
            "done" => open -= 1,
            _ => {}
        }
        if open == 0 {
            break;
        }
        body.push_str(word);
        body.push(' ');
    }
    body
}

/// Inside `$((…))` names need no `$`.
fn with_bare_name(text: &str, name: &str, value: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside, after)) = split_arithmetic(rest) {
        out.push_str(before);
        out.push_str("$((");
        let mut tokens = tokens(inside);
        tokens.iter_mut().filter(|t| *t == name).for_each(|t| value.clone_into(t));
        out.push_str(&tokens.concat());
        out.push_str("))");
        rest = after;
    }
    out + rest
}

fn split_arithmetic(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("$((")?;
    let (inside, after) = rest.split_once("))")?;
    Some((before, inside, after))
}

/// Numbers, names and signs.
fn tokens(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut joins = false;
    for c in text.chars() {
        let is_word = c.is_ascii_alphanumeric() || c == '_';
        match found.last_mut() {
            Some(last) if joins && is_word => last.push(c),
            _ => found.push(c.to_string()),
        }
        joins = is_word;
    }
    found
}

/// The word with every `$((…))` worked out; as it is where that cannot be done.
fn arithmetic(word: &str) -> String {
    match split_arithmetic(word) {
        Some((before, inside, after)) => match sum(inside) {
            Some(value) => format!("{before}{value}{}", arithmetic(after)),
            None => word.to_owned(),
        },
        None => word.to_owned(),
    }
}

/// Sums and products of numbers.
fn sum(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let (mut product, mut sign, mut operator) = (0_i64, 1_i64, "+".to_owned());
    for token in tokens(text) {
        if let Ok(number) = token.parse::<i64>() {
            product = match operator.as_str() {
                "*" => product.checked_mul(number)?,
                "/" => product.checked_div(number)?,
                _ => number,
            };
            continue;
        }
        if token == "+" || token == "-" {
            total = total.checked_add(sign.checked_mul(product)?)?;
            sign = if token == "-" { -1 } else { 1 };
        } else if token != "*" && token != "/" {
            return None;
        }
        operator = token;
    }
    total.checked_add(sign.checked_mul(product)?)
}

/// What the words do; `group` is the group that they run in, and may change.
fn command(words: &[String], group: &mut String) -> Option<Command> {
    let at = words.iter().position(|w| w == ">");
    if let (Some(at), Some("echo")) = (at, words.first().map(String::as_str)) {
        let (directory, file) = words.get(at + 1)?.rsplit_once('/')?;
        let path = below_root(directory);
        if file.ends_with("bfq.weight") {
            // `default 300` and `8:0 300` end with the weight as well.
            let weight = words[1..at].last()?.parse().ok().filter(|w| (1..=1000).contains(w))?;
            return Some(Command::Weight { group: path, weight });
        }
        if matches!(file, "cgroup.procs" | "tasks") {
            *group = path;
        }
        return None;
    }
    run(words, group)
}

/// The path of a group's directory below its hierarchy's root.
fn below_root(directory: &str) -> String {
    let path = directory.trim_start_matches("/sys/fs/cgroup").trim_matches('/');
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let is_hierarchy = first == "unified" || first.split(',').any(|c| c == "blkio");
    (if is_hierarchy { rest } else { path }).to_owned()
}

/// `fio` with what may stand before it: `exec`, `time`, `VAR=x`, `ionice -c 1 -n 0`, `cgexec -g blkio:a`.
fn run(words: &[String], group: &str) -> Option<Command> {
    let fio = words.iter().position(|w| w == "fio" || w.ends_with("/fio"))?;
    let (mut class, mut level, mut group) = (None, None, group.to_owned());
    let mut before = words[..fio].iter();
    while let Some(word) = before.next() {
        let (flag, attached) = word.split_at_checked(2).unwrap_or((word, ""));
        let mut value =
            || if attached.is_empty() { before.next().cloned() } else { Some(attached.to_owned()) };
        match flag {
            "-c" => class = value().and_then(|v| class_of(&v)),
            "-n" => level = value().and_then(|v| v.parse().ok()).filter(|l| *l < 8),
            "-g" => group = value()?.rsplit(':').next().unwrap_or_default().to_owned(),
            _ => {}
        }
    }
    Some(Command::Run { group, words: words[fio + 1..].to_vec(), class, level })
}

/// As `ionice` and `fio` number them.
pub(super) fn class_of(number: &str) -> Option<Class> {
    match number {
        "1" => Some(Class::RealTime),
        "2" => Some(Class::BestEffort),
        "3" => Some(Class::Idle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_nest_and_sums_are_worked_out() {
        let mut out = String::new();
        unroll("for a in 1 2 ; do for b in x y ; do w $a$b ${a} $((a*3+1)) ; done ; done ; end", &mut out, 0);
        let words: Vec<_> = out.split_whitespace().map(arithmetic).filter(|w| w != ";").collect();
        assert_eq!(words.join(" "), "w 1x 1 4 w 1y 1 4 w 2x 2 7 w 2y 2 7 end");
    }

    #[test]
    fn sums() {
        assert_eq!(sum("2*16"), Some(32));
        assert_eq!(sum("1+2*3-4"), Some(3));
        assert_eq!(sum("7"), Some(7));
        assert_eq!(sum("x"), None);
        assert_eq!(sum("9223372036854775807*2"), None);
        assert_eq!(sum("1/0"), None);
    }

    #[test]
    fn no_script_takes_for_ever() {
        let loops = "for a in 1 2 3 4 5 6 7 8 9; do ".repeat(30) + "echo $a" + &"; done".repeat(30);
        assert!(commands(&loops).is_empty());
        assert!(commands("for").is_empty());
        assert!(commands("for x in").is_empty());
        assert!(commands(")))(((").is_empty());
    }

    #[test]
    fn weights_as_both_hierarchies_write_them() {
        for line in [
            "echo 300 > /sys/fs/cgroup/blkio/a/b/blkio.bfq.weight",
            "echo 'default 300' > /sys/fs/cgroup/a/b/io.bfq.weight",
            "echo \"8:0 300\" >/sys/fs/cgroup/unified/a/b/io.bfq.weight",
        ] {
            assert_eq!(commands(line), [Command::Weight { group: "a/b".to_owned(), weight: 300 }], "{line}");
        }
        assert!(commands("echo 0 > /sys/fs/cgroup/a/io.bfq.weight").is_empty());
    }

    #[test]
    fn a_group_holds_inside_its_parentheses() {
        let found = commands(
            "(echo 0 > /sys/fs/cgroup/a/cgroup.procs; exec fio x) & cgexec -g blkio:/b fio y; fio z",
        );
        let groups: Vec<_> = found
            .iter()
            .map(|c| match c {
                Command::Run { group, words, .. } => format!("{group}:{}", words.concat()),
                other @ Command::Weight { .. } => format!("{other:?}"),
            })
            .collect();
        assert_eq!(groups, ["a:x", "/b:y", ":z"]);
    }
}
