//! `cargo xtask figures`: figures in README and docs, against what the commands give now.
//!
//! Two kinds, from runs of the `fairhead` binary whose output is the same every time:
//!
//! - a `text` block that shows a command's output. The command is its first line behind `$ `, or else in a
//!   comment above it: `<!-- shows: fairhead run app-start -->`. The block may leave things out, which a `…`
//!   tells, and break lines elsewhere; all else must be in the output, word for word and in order;
//! - figures in sentences and tables. A comment, at the end of the page as a rule, has a command that writes
//!   CSV, and for each place the words around it with the figures in brackets, the row by one or more fields,
//!   and the columns. Units follow from the column's name and the figure's words, or the column has a factor
//!   behind it, as in `without:0.001`:
//!
//! ```text
//! <!-- figures: fairhead ladder --output-format csv
//! starts xterm in [4.3 s]; idling => rung=bfq-v0 => startup_ns
//! -->
//! ```
//!
//! Without `--check` what differs is written anew: blocks word by word, where only numbers differ, or else
//! line by line for lines that begin alike; figures with as many digits as they had. What cannot be written
//! anew is named, so that you can look at it.
//!
//! What this does not do: tell whether a sentence is still right whose figure has changed. Read them.

use crate::docs;
use crate::outcome::Outcome;
use crate::shell::{for_all, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Compares all figures; writes them anew unless `check`.
pub(crate) fn run(check: bool) -> Result<Outcome, String> {
    let mut lab = Lab { program: docs::build()?, known: BTreeMap::new() };
    let (mut count, mut stale, mut stuck) = (0, Vec::new(), Vec::new());
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok::<_, String>((path, text))
    };
    let pages = pages()?.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    lab.run_all(pages.iter().flat_map(|(_, text)| commands(text)).collect())?;
    for (path, text) in pages {
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let mut page = Page { name, text: text.clone(), count: 0, stale: Vec::new(), stuck: Vec::new() };
        page.blocks(&lab)?;
        page.sentences(&lab)?;
        count += page.count;
        stale.extend(page.stale);
        stuck.extend(page.stuck);
        if !check && page.text != text {
            fs::write(&path, page.text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    for line in stale.iter().chain(&stuck) {
        eprintln!("{line}");
    }
    match (stale.len(), stuck.len()) {
        (0, 0) => Ok(Outcome::Passed(format!("{count} blocks and figures are what the commands give"))),
        (n, 0) if !check => Ok(Outcome::Passed(format!("{n} of {count} blocks and figures written anew"))),
        (n, m) if !check => Err(format!("{n} of {count} written anew; {m} have to be looked at, see above")),
        (n, m) => Err(format!("{} of {count} are stale; cargo xtask figures writes them anew", n + m)),
    }
}

fn pages() -> Result<Vec<PathBuf>, String> {
    let mut all = vec![root().join("README.md")];
    for folder in ["docs", "docs/questions", "docs/schedulers"] {
        let entries = fs::read_dir(root().join(folder)).map_err(|e| format!("{folder}: {e}"))?;
        let paths = entries.filter_map(|e| e.ok().map(|e| e.path()));
        all.extend(paths.filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    all.sort();
    Ok(all)
}

/// Runs the program, each command once.
struct Lab {
    program: PathBuf,
    known: BTreeMap<String, Result<String, String>>,
}

impl Lab {
    /// Runs these commands, several at a time.
    fn run_all(&mut self, commands: BTreeSet<String>) -> Result<(), String> {
        let commands = Vec::from_iter(commands);
        let outputs = for_all(&commands, |command| Ok(self.run(command)))?;
        self.known.extend(commands.into_iter().zip(outputs));
        Ok(())
    }

    /// What a command has written.
    fn output(&self, command: &str) -> Result<String, String> {
        self.known.get(command).cloned().unwrap_or_else(|| Err(format!("'{command}' was not run")))
    }

    /// What a command writes to stdout.
    fn run(&self, command: &str) -> Result<String, String> {
        let Some(arguments) = command.strip_prefix("fairhead ") else {
            return Err(format!("'{command}' is no command of fairhead"));
        };
        let script = format!("exec '{}' {arguments}", self.program.display());
        let output = Command::new("sh").args(["-c", &script]).current_dir(root()).output();
        let output = output.map_err(|e| format!("sh: {e}"))?;
        // Some commands end with 1 because of what they found.
        if output.stdout.is_empty() {
            return Err(format!("'{command}': {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// A page, and what was found in it.
struct Page {
    name: String,
    text: String,
    /// Blocks and figures.
    count: usize,
    /// Those that differ, and could be written anew; and those that could not.
    stale: Vec<String>,
    stuck: Vec<String>,
}

impl Page {
    /// The blocks that show a command's output.
    fn blocks(&mut self, lab: &Lab) -> Result<(), String> {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        let mut at = 0;
        while let Some(start) = (at..lines.len()).find(|&i| lines[i].trim() == "```text") {
            let end = (start + 1..lines.len()).find(|&i| lines[i].trim() == "```").unwrap_or(lines.len());
            at = end + 1;
            let Some((command, first)) = command_of(&lines, start) else { continue };
            self.count += 1;
            let output = lab.output(&command).map_err(|e| format!("{}:{}: {e}", self.name, start + 1))?;
            let shown = lines[first..end].to_vec();
            match compare(&shown, &output) {
                Compared::Same => {}
                Compared::Anew(new) => {
                    self.stale.push(format!("{}:{}: {command}: figures differ", self.name, start + 1));
                    at = first + new.len() + 1;
                    lines.splice(first..end, new);
                }
                Compared::Else(words) => {
                    let what = format!("{}:{}: {command}: not in the output: {words}", self.name, start + 1);
                    self.stuck.push(what);
                }
            }
        }
        self.text = lines.join("\n") + "\n";
        Ok(())
    }

    /// The figures that comments name.
    fn sentences(&mut self, lab: &Lab) -> Result<(), String> {
        let mut at = 0;
        while let Some(start) = self.text[at..].find("<!-- figures: ").map(|i| i + at) {
            let Some(end) = self.text[start..].find("-->").map(|i| i + start) else { break };
            let comment = self.text[start..end].to_owned();
            let mut lines = comment.lines();
            let output = lab
                .output(lines.next().map_or("", command_of_figures))
                .map_err(|e| format!("{}: {e}", self.name))?;
            for line in lines.filter(|l| !l.trim().is_empty()) {
                self.count += 1;
                if let Err(why) = self.sentence(line, &output) {
                    self.stuck.push(format!("{}: {line}: {why}", self.name));
                }
            }
            // A figure above the comment may have changed its length; what follows the comment has not.
            at = self.text.len() - (self.text.len() - end).min(self.text.len());
            at = self.text[at.min(self.text.len())..].find("-->").map_or(self.text.len(), |i| i + at + 3);
        }
        Ok(())
    }

    fn sentence(&mut self, line: &str, output: &str) -> Result<(), String> {
        let [words, row, columns] = line.split(" => ").map(str::trim).collect::<Vec<_>>()[..] else {
            return Err("not of the form WORDS [FIGURE] WORDS => FIELD=VALUE => COLUMN".to_owned());
        };
        let (mut plain, mut new, mut told) = (String::new(), String::new(), String::new());
        let mut rest = words;
        for column in columns.split(',').map(str::trim) {
            let (before, behind) = rest.split_once('[').ok_or("fewer [figures] than columns")?;
            let (figure, after) = behind.split_once(']').ok_or("no ] behind the figure")?;
            let now = figure_of(figure, output, row, column)?;
            plain.push_str(&format!("{before}{figure}"));
            new.push_str(&format!("{before}{now}"));
            told.push_str(&format!("{before}[{now}]"));
            rest = after;
        }
        [&mut plain, &mut new, &mut told].into_iter().for_each(|text| text.push_str(rest));
        let Some((from, to)) = find_words(&self.text, &plain) else {
            return Err("these words are not in the page".to_owned());
        };
        if new == plain {
            return Ok(());
        }
        self.stale.push(format!("{}: {words} is {told}", self.name));
        let replaced = with_words(&self.text[from..to], &new.split_whitespace().collect::<Vec<_>>());
        self.text.replace_range(from..to, &replaced);
        self.text = self.text.replacen(words, &told, 1);
        Ok(())
    }
}

/// A figure as it is now: `column` is its name, with a factor behind it if the unit does not tell.
fn figure_of(figure: &str, output: &str, row: &str, column: &str) -> Result<String, String> {
    let (column, factor) = match column.split_once(':') {
        Some((column, factor)) => {
            (column, Some(factor.parse::<f64>().map_err(|_| "the factor is no number")?))
        }
        None => (column, None),
    };
    let value = cell(output, row, column)?;
    like(figure, value, column, factor).ok_or_else(|| format!("the unit of [{figure}] does not fit {column}"))
}

/// The command whose output a block shows, and the block's first line of output.
fn command_of(lines: &[String], start: usize) -> Option<(String, usize)> {
    const REPEATABLE: [&str; 9] =
        ["run", "advise", "sweep", "ladder", "reproduce", "trace", "conform", "validate", "show"];
    if let Some(command) = lines[..start].last().and_then(|l| l.trim().strip_prefix("<!-- shows: ")) {
        let typed = lines.get(start + 1).is_some_and(|l| l.starts_with("$ "));
        return Some((command.trim_end_matches("-->").trim().to_owned(), start + 1 + usize::from(typed)));
    }
    let command = lines.get(start + 1)?.strip_prefix("$ ")?;
    let verb = command.strip_prefix("fairhead ")?.split(' ').next()?;
    REPEATABLE.contains(&verb).then(|| (command.to_owned(), start + 2))
}

/// The command of a comment that names figures, from its first line.
fn command_of_figures(line: &str) -> &str {
    line.trim_start_matches("<!-- figures: ").trim()
}

/// The commands whose output a page shows or names figures of.
fn commands(text: &str) -> BTreeSet<String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let blocks = (0..lines.len()).filter(|&i| lines[i].trim() == "```text");
    let shown = blocks.filter_map(|i| Some(command_of(&lines, i)?.0));
    let named = lines
        .iter()
        .filter(|line| line.starts_with("<!-- figures: "))
        .map(|l| command_of_figures(l).to_owned());
    shown.chain(named).collect()
}

/// What came of a comparison.
enum Compared {
    Same,
    /// The block as it would be now.
    Anew(Vec<String>),
    /// These words have no counterpart.
    Else(String),
}

fn compare(shown: &[String], output: &str) -> Compared {
    let block = shown.join("\n");
    let there: Vec<&str> = output.split_whitespace().collect();
    let parts: Vec<&str> = block.split('…').collect();
    let (mut at, mut same) = (0, true);
    let mut new = Vec::new();
    for part in parts {
        let words: Vec<&str> = part.split_whitespace().collect();
        if let Some(i) = position(&there[at..], &words, |a, b| a == b) {
            at += i + words.len();
            new.push(part.to_owned());
            continue;
        }
        same = false;
        let Some(i) = position(&there[at..], &words, |a, b| masked(a) == masked(b)) else {
            return by_lines(shown, output);
        };
        new.push(with_words(part, &there[at + i..at + i + words.len()]));
        at += i + words.len();
    }
    if same { Compared::Same } else { Compared::Anew(new.join("…").lines().map(str::to_owned).collect()) }
}

/// Where the words are, one after the other.
fn position(there: &[&str], words: &[&str], equal: impl Fn(&str, &str) -> bool) -> Option<usize> {
    let fits = |w: &[&str]| w.iter().zip(words).all(|(a, b)| equal(a, b));
    if words.is_empty() { Some(0) } else { there.windows(words.len()).position(fits) }
}

/// The word without its number: digits and points are one `#`, and a unit behind it is left out.
fn masked(word: &str) -> String {
    let mut out = String::new();
    let mut in_number = false;
    for c in word.chars() {
        let digit = c.is_ascii_digit() || (in_number && (c == '.' || c == ','));
        match (digit, in_number) {
            (true, false) => out.push('#'),
            (false, true) if c.is_alphabetic() || c == '%' => continue,
            (false, _) => out.push(c),
            (true, true) => {}
        }
        in_number = digit;
    }
    out.trim_end_matches(['.', ',']).to_owned()
}

/// The text with other words at the same places; a column stays where it is if there is blank before it.
fn with_words(text: &str, words: &[&str]) -> String {
    let mut out = String::new();
    let mut rest = text;
    for word in words {
        let start = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let end = rest[start..].find(char::is_whitespace).map_or(rest.len(), |i| i + start);
        let (blank, old) = (&rest[..start], &rest[start..end]);
        let longer = word.chars().count() as isize - old.chars().count() as isize;
        let spaces = blank.len() - blank.trim_end_matches(' ').len();
        if spaces >= 2 {
            // At least one of them stays.
            let keep = (spaces as isize - longer).max(1) as usize;
            out.push_str(blank.trim_end_matches(' '));
            out.push_str(&" ".repeat(keep));
        } else {
            out.push_str(blank);
        }
        out.push_str(word);
        rest = &rest[end..];
    }
    out + rest
}

/// Line by line: a line that begins with the same words, up to the first number, takes the place of the old
/// one.
fn by_lines(shown: &[String], output: &str) -> Compared {
    let begins = |line: &str| -> Vec<String> {
        let no_number = |w: &&str| !w.starts_with(|c: char| c.is_ascii_digit() || c == '>');
        line.split_whitespace().take_while(no_number).map(masked).collect()
    };
    let all: Vec<&str> = output.lines().collect();
    let mut at = 0;
    let mut new = Vec::new();
    for line in shown {
        if line.trim().is_empty() || line.trim() == "…" {
            new.push(line.clone());
            continue;
        }
        let wanted = begins(line.split('…').next().unwrap_or(line));
        let found = (at..all.len()).find(|&i| begins(all[i]) == wanted && !wanted.is_empty());
        let Some(i) = found.filter(|_| !line.contains('…')) else {
            return Compared::Else(line.trim().to_owned());
        };
        new.push(all[i].to_owned());
        at = i + 1;
    }
    Compared::Anew(new)
}

/// A field of a line of CSV, as a number.
fn cell(csv: &str, row: &str, column: &str) -> Result<f64, String> {
    let mut lines = csv.lines().map(fields);
    let heading = lines.next().unwrap_or_default();
    let index = |name: &str| {
        heading
            .iter()
            .position(|h| h == name)
            .ok_or(format!("there is no column '{name}': {}", heading.join(",")))
    };
    let mut wanted = Vec::new();
    for pair in row.split(',') {
        let (name, value) = pair.split_once('=').ok_or(format!("'{pair}' is not FIELD=VALUE"))?;
        wanted.push((index(name.trim())?, value.trim().to_owned()));
    }
    let column = index(column)?;
    let found = lines.find(|line| wanted.iter().all(|(i, value)| line.get(*i) == Some(value)));
    let text = found.and_then(|line| line.get(column).cloned()).ok_or(format!("there is no row {row}"))?;
    text.parse().map_err(|_| format!("'{text}' is no number"))
}

/// The fields of a line.
//= RFC 4180 section 2
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().expect("one at least").push(c),
        }
    }
    all
}

/// The value in the unit of a figure, or times a factor, and with as many digits behind the point.
fn like(figure: &str, value: f64, column: &str, factor: Option<f64>) -> Option<String> {
    let digits = figure.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ',')).unwrap_or(figure.len());
    let (number, unit) = figure.split_at(digits);
    let scale = match (column_unit(column), unit.trim()) {
        _ if factor.is_some() => factor?,
        ("ns", "ns") | ("", _) => 1.0,
        ("ns", "us") => 1e-3,
        ("ns", "ms") => 1e-6,
        ("ns", "s" | "seconds") => 1e-9,
        ("ms", "ms") => 1.0,
        ("ms", "s" | "seconds") => 1e-3,
        ("bytes_per_s", "MiB/s" | "") => 1.0 / 1_048_576.0,
        ("bytes_per_s", "MB/s") => 1e-6,
        ("permille", "%") => 0.1,
        ("permille", "") => 1e-3,
        _ => return None,
    };
    let places = number.split_once('.').map_or(0, |(_, behind)| behind.len());
    Some(format!("{:.places$}{unit}", value * scale))
}

fn column_unit(column: &str) -> &'static str {
    let known = ["bytes_per_s", "permille", "ns", "ms"];
    known.into_iter().find(|u| column.ends_with(&format!("_{u}"))).unwrap_or("")
}

/// Where the words are in the page, outside of comments, however they are broken over lines.
fn find_words(text: &str, words: &str) -> Option<(usize, usize)> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let (first, mut at) = (words.first()?, 0);
    while let Some(start) = text[at..].find(first).map(|i| i + at) {
        at = start + first.len();
        let mut end = start;
        let mut fits = true;
        for word in &words {
            let blank = text[end..].len() - text[end..].trim_start().len();
            if end > start && blank == 0 || !text[end + blank..].starts_with(word) {
                fits = false;
                break;
            }
            end += blank + word.len();
        }
        if fits {
            return Some((start, end));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anew(shown: &str, output: &str) -> Option<String> {
        let lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        match compare(&lines, output) {
            Compared::Same => Some(shown.to_owned()),
            Compared::Anew(new) => Some(new.join("\n")),
            Compared::Else(_) => None,
        }
    }

    #[test]
    fn what_is_left_out_and_broken_otherwise_is_the_same() {
        let output = "a  1.5s  7%\nb  2.5s  8%\nit took long, and\nmore\n";
        for shown in ["a  1.5s  7%\n…\nmore", "it took\nlong, …", "…\nb  2.5s 8%\nit"] {
            assert_eq!(anew(shown, output).as_deref(), Some(shown));
        }
        assert!(anew("b 2.5s\na", output).is_none(), "the order counts");
        assert!(anew("never said this", output).is_none());
    }

    #[test]
    fn numbers_are_written_anew_and_columns_stay() {
        assert_eq!(
            anew("a    1.5s   7%\n…\nb   2.55s   8%", "a 712ms 12%\nx\nb 3.1s 9%\n").as_deref(),
            Some("a   712ms  12%\n…\nb    3.1s   9%")
        );
        // Another column: the whole line.
        assert_eq!(anew("job x\na   1.5s", "job x\na   1.5s   7\n").as_deref(), Some("job x\na   1.5s"));
        assert_eq!(anew("a  1.5s  3.2", "a  1.6s\n").as_deref(), Some("a  1.6s"));
    }

    #[test]
    fn figures_keep_their_unit_and_digits() {
        assert_eq!(like("4.3 s", 18_100_000_000.0, "start_ns", None).as_deref(), Some("18.1 s"));
        assert_eq!(like("12 %", 134.0, "share_permille", None).as_deref(), Some("13 %"));
        assert_eq!(like("100 MiB/s", 2e8, "read_bytes_per_s", None).as_deref(), Some("191 MiB/s"));
        assert_eq!(like("7 %", 1.0, "start_ns", None), None);
        assert_eq!(like("5.7 s", 5741.0, "without", Some(0.001)).as_deref(), Some("5.7 s"));
        let csv = "name,job,start_ns\n\"a,b\",x,7\nc,x,9\nc,y,11\n";
        assert_eq!(cell(csv, "name=c,job=y", "start_ns"), Ok(11.0));
        assert_eq!(cell(csv, "job=x", "start_ns"), Ok(7.0));
        assert!(cell(csv, "job=z", "start_ns").is_err() && cell(csv, "job=x", "end_ns").is_err());
    }

    #[test]
    fn a_sentence_is_found_across_lines_and_its_figures_replaced() {
        let text = "The engine starts it in\n4.3 s; | 4.3 s | 7 |\n\n<!-- figures: fairhead x\nit in [4.3 s]; => a=b => t_ns\n-->\n";
        let mut page = Page { name: "p".into(), text: text.into(), count: 0, stale: vec![], stuck: vec![] };
        page.sentence("it in [4.3 s]; => a=b => t_ns", "a,t_ns\nb,18100000000\n").unwrap();
        page.sentence("| [4.3 s] | [7] | => a=c => t_ns, n:10", "a,t_ns,n\nc,500000000,1.2\n").unwrap();
        assert!(page.text.starts_with("The engine starts it in\n18.1 s; | 0.5 s | 12 |\n"), "{}", page.text);
        assert!(page.text.contains("it in [18.1 s]; => a=b"), "{}", page.text);
        assert_eq!(page.stale.len(), 2);
        page.sentence("it in [18.1 s]; => a=b => t_ns", "a,t_ns\nb,18100000000\n").unwrap();
        assert_eq!(page.stale.len(), 2, "it holds now");
        assert!(
            page.sentence("in [1 s] => a=b => t_ns", "a,t_ns\nb,1\n")
                .unwrap_err()
                .contains("not in the page")
        );
    }
}
