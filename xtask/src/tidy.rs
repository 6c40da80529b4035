//! Plain English, as far as a program can check it: the words and the width of comments and Markdown.
//!
//! Four rules, each with a count for each part of the repository:
//!
//! | rule | what counts |
//! |---|---|
//! | openings | sentences that begin with "Who", "Whose", "Whom" (questions may), "Nor", "So many" or "So much"; doc comments that begin with "The same" |
//! | phrases | words of [`PHRASES`], in comments, string literals and Markdown |
//! | width | comments and lines of Markdown of more than 110 columns, other than tables, code blocks and lines with an address |
//! | sources | "seed 000" and "the issue", outside files about `reproduce` |
//!
//! `xtask/tidy.txt` has the counts of the day when the rules were introduced, or later and lower ones. A
//! count may only fall: [`check`] fails where there is more than the file says, and names the lines with
//! `cargo xtask tidy PART`. Where there is less, `cargo xtask tidy --lower` writes the new counts. A part
//! with zeros is clean and stays so.
//!
//! It does not judge whether a sentence is true, clear or needed.

use crate::outcome::Outcome;
use crate::shell::{command, root};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Phrases that have a plainer word: "no task" or "no client" for nobody, "continues" for goes on, "in
/// flight" for under way, a number or "this many" for so many.
const PHRASES: [&str; 13] = [
    "nobody",
    "somebody",
    "is told",
    "are told",
    "was told",
    "be told",
    "goes on",
    "went on",
    "gone on",
    "under way",
    "so many",
    "whoever",
    "whomever",
];

/// First words that no sentence begins with.
const OPENINGS: [&str; 6] = ["Who", "Whose", "Whom", "Nor", "So many", "So much"];

/// The largest width of a comment or a line of Markdown, in columns.
const WIDTH: usize = 110;

/// Files that contain the forbidden words because they are about them.
const EXEMPT: [&str; 2] = ["xtask/src/tidy.rs", "CONTRIBUTING.md"];

/// The rules, in the order of the columns of `xtask/tidy.txt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Opening,
    Phrase,
    Width,
    Source,
}

const RULES: [Rule; 4] = [Rule::Opening, Rule::Phrase, Rule::Width, Rule::Source];

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Opening => "openings",
            Self::Phrase => "phrases",
            Self::Width => "width",
            Self::Source => "sources",
        })
    }
}

/// One line that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    rule: Rule,
    /// The number of the line in its file, from 1.
    line: usize,
    /// The words, or the width.
    what: String,
}

/// The counts of a part, by rule, in the order of [`RULES`].
type Counts = [usize; 4];

/// The step of `cargo xtask test`: fails if a count is above that of `xtask/tidy.txt`.
///
/// # Errors
/// The counts that are too high, and the commands that list their lines.
pub(crate) fn check() -> Result<Outcome, String> {
    let found = count(&findings()?);
    let allowed = read_baseline()?;
    let over = over(&found, &allowed);
    if !over.is_empty() {
        return Err(over.join("\n"));
    }
    let left: usize = found.values().flatten().sum();
    let lower = found.iter().any(|(part, counts)| allowed.get(part).is_some_and(|a| a != counts));
    let note = if lower { "; fewer than before, `cargo xtask tidy --lower` notes that" } else { "" };
    Ok(Outcome::Passed(format!("{left} lines to be mended{note}")))
}

/// Lists the findings of a part of the repository such as `crates/core`, or of all.
pub(crate) fn list(part: Option<&str>) -> Result<(), String> {
    let mut out = io::stdout().lock();
    for (file, found) in findings()? {
        if part.is_none_or(|p| part_of(&file) == p || file.starts_with(p)) {
            for f in &found {
                if writeln!(out, "{file}:{}: {}: {}", f.line, f.rule, f.what).is_err() {
                    // The reader has seen enough.
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Writes counts that have fallen into `xtask/tidy.txt`.
///
/// # Errors
/// If a count has risen: such counts are not written.
pub(crate) fn lower() -> Result<(), String> {
    let found = count(&findings()?);
    let allowed = read_baseline().unwrap_or_default();
    let over = over(&found, &allowed);
    if !allowed.is_empty() && !over.is_empty() {
        return Err(over.join("\n"));
    }
    fs::write(root().join("xtask/tidy.txt"), write_baseline(&found)).map_err(|e| e.to_string())
}

/// What has risen, a line for each count.
fn over(found: &BTreeMap<String, Counts>, allowed: &BTreeMap<String, Counts>) -> Vec<String> {
    let mut over = Vec::new();
    for (part, counts) in found {
        let limits = allowed.get(part).copied().unwrap_or_default();
        for ((rule, &n), limit) in RULES.iter().zip(counts).zip(limits) {
            if n > limit {
                over.push(format!(
                    "{part}: {rule}: {n}, and at most {limit} are allowed; `cargo xtask tidy {part}` lists them"
                ));
            }
        }
    }
    over
}

/// The part of the repository that a file counts for: its crate, or its folder at the top, or `.`.
fn part_of(file: &str) -> String {
    let mut folders = file.split('/');
    match (folders.next(), folders.next(), folders.next()) {
        (Some("crates"), Some(name), Some(_)) => format!("crates/{name}"),
        (Some(top), Some(_), _) => top.to_owned(),
        _ => ".".to_owned(),
    }
}

fn count(findings: &BTreeMap<String, Vec<Finding>>) -> BTreeMap<String, Counts> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for (file, found) in findings {
        let of_part = counts.entry(part_of(file)).or_default();
        for f in found {
            let column = RULES.iter().position(|r| *r == f.rule).expect("each rule has a column");
            of_part[column] += 1;
        }
    }
    counts
}

/// The findings of all files that git knows, by path.
fn findings() -> Result<BTreeMap<String, Vec<Finding>>, String> {
    let output = command("git", "ls-files -z *.rs *.md").current_dir(root()).output();
    let names =
        String::from_utf8(output.map_err(|e| format!("git: {e}"))?.stdout).map_err(|e| e.to_string())?;
    let mut all = BTreeMap::new();
    for name in names.split('\0').filter(|n| !n.is_empty() && !EXEMPT.contains(n)) {
        // A file may have been deleted since.
        let Ok(text) = fs::read_to_string(root().join(name)) else { continue };
        all.insert(name.to_owned(), findings_in(name, &text));
    }
    Ok(all)
}

fn read_baseline() -> Result<BTreeMap<String, Counts>, String> {
    let text =
        fs::read_to_string(root().join("xtask/tidy.txt")).map_err(|e| format!("xtask/tidy.txt: {e}"))?;
    parse_baseline(&text)
}

fn parse_baseline(text: &str) -> Result<BTreeMap<String, Counts>, String> {
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let part = words.next().unwrap_or_default().to_owned();
        let numbers: Vec<usize> = words.map_while(|w| w.parse().ok()).collect();
        let of_part = Counts::try_from(numbers)
            .map_err(|_| format!("xtask/tidy.txt: '{line}': expected a part and {} numbers", RULES.len()))?;
        counts.insert(part, of_part);
    }
    Ok(counts)
}

fn write_baseline(counts: &BTreeMap<String, Counts>) -> String {
    let mut text = String::from(
        "# How many lines of each part still break the rules of xtask/src/tidy.rs. A number may only fall:\n\
         # `cargo xtask tidy --lower` writes it. A part that is not listed has none.\n",
    );
    text += &format!("#{:<15}", " part");
    RULES.iter().for_each(|rule| text += &format!("{rule:>9}"));
    for (part, of_part) in counts.iter().filter(|(_, c)| c.iter().any(|n| *n > 0)) {
        text += &format!("\n{part:<16}");
        of_part.iter().for_each(|n| text += &format!("{n:>9}"));
    }
    text + "\n"
}

/// A line of prose, without what marks it as a comment.
struct Line<'a> {
    number: usize,
    text: &'a str,
    /// Whether a doc comment begins here.
    begins_doc: bool,
    /// Whether it belongs to the same comment as the line before.
    continues: bool,
}

/// What breaks a rule in a file of this name. It is Rust, or Markdown if its name ends in `.md`.
fn findings_in(name: &str, text: &str) -> Vec<Finding> {
    let is_markdown = Path::new(name).extension().is_some_and(|e| e == "md");
    let prose = if is_markdown { markdown(text) } else { comments(text) };
    let mut found = Vec::new();
    for (line, width) in overlong(text, &prose) {
        found.push(Finding { rule: Rule::Width, line, what: format!("{width} columns") });
    }
    openings(&prose, &mut found);
    let code = text.lines().enumerate().filter(|(_, l)| !is_markdown && !l.trim_start().starts_with("//"));
    // What is between quotation marks; a string over several lines has some of its lines only.
    let strings = code.flat_map(|(i, l)| l.split('"').skip(1).step_by(2).map(move |s| (i + 1, s)));
    // A string that is one of the words and nothing else is a name, such as a user's.
    let strings = strings.filter(|(_, s)| !PHRASES.contains(&s.trim_end_matches('\\')));
    for (line, text) in prose.iter().map(|l| (l.number, l.text)).chain(strings) {
        let lower = text.to_lowercase();
        for phrase in PHRASES.iter().filter(|p| has_words(&lower, p)) {
            found.push(Finding { rule: Rule::Phrase, line, what: (*phrase).to_owned() });
        }
        let sources = ["seed 000", "seed 001", "seed 002", "seed 003", "seed 004", "the issue"];
        for source in sources.iter().filter(|s| !name.contains("reproduc") && has_words(&lower, s)) {
            found.push(Finding { rule: Rule::Source, line, what: (*source).to_owned() });
        }
    }
    found.sort_by_key(|f| f.line);
    found
}

/// The lines of comments that are prose: not the examples in them.
fn comments(text: &str) -> Vec<Line<'_>> {
    let (mut prose, mut in_code, mut before) = (Vec::new(), false, "");
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let mark = ["///", "//!", "//"].into_iter().find(|m| line.starts_with(m)).unwrap_or("");
        let continues = !mark.is_empty() && mark == before;
        let begins_doc = !continues && mark.len() == 3;
        before = mark;
        if !continues {
            in_code = false;
        }
        let content = line[mark.len()..].trim();
        // Marks of sources are addresses of a kind.
        if mark.is_empty() || content.starts_with('=') {
            continue;
        }
        if content.starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            prose.push(Line { number: i + 1, text: content, begins_doc, continues });
        }
    }
    prose
}

/// The lines of Markdown that are prose: not code blocks and comments.
fn markdown(text: &str) -> Vec<Line<'_>> {
    let (mut prose, mut in_code, mut in_comment) = (Vec::new(), false, false);
    for (i, line) in text.lines().enumerate() {
        in_comment |= line.starts_with("<!--");
        if in_comment {
            in_comment = !line.contains("-->");
        } else if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            prose.push(Line { number: i + 1, text: line.trim(), begins_doc: false, continues: true });
        }
    }
    prose
}

/// Lines of prose that are too wide, and their widths.
fn overlong(text: &str, prose: &[Line<'_>]) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let widths = prose.iter().map(|l| (l, lines[l.number - 1].chars().count()));
    let is_exempt = |l: &Line<'_>| l.text.starts_with('|') || l.text.contains("://");
    widths.filter(|(l, width)| *width > WIDTH && !is_exempt(l)).map(|(l, width)| (l.number, width)).collect()
}

/// Finds sentences that begin with one of [`OPENINGS`], and doc comments that begin with "The same".
fn openings(prose: &[Line<'_>], found: &mut Vec<Finding>) {
    for (i, line) in prose.iter().enumerate() {
        let after_end = i == 0 || !line.continues || ends_sentence(prose[i - 1].text);
        for (at, sentence) in sentences(line.text) {
            if at == 0 && !after_end && !begins_block(line.text) {
                continue;
            }
            let bare = sentence.trim_start_matches(['*', '_', '"', '(', '`', '-', '#', '|', ' ']);
            let is_question = || {
                let rest = bare.find(['.', '?']).map(|end| bare.as_bytes()[end]);
                let next =
                    prose.get(i + 1).and_then(|l| l.text.find(['.', '?']).map(|e| l.text.as_bytes()[e]));
                rest.or(next) == Some(b'?')
            };
            let opening = OPENINGS.iter().find(|o| begins_with_words(bare, o));
            if let Some(opening) = opening.filter(|o| !(o.starts_with("Who") && is_question())) {
                found.push(Finding { rule: Rule::Opening, line: line.number, what: (*opening).to_owned() });
            }
            if at == 0 && line.begins_doc && begins_with_words(bare, "The same") {
                let what = "The same".to_owned();
                found.push(Finding { rule: Rule::Opening, line: line.number, what });
            }
        }
    }
}

/// Whether the next line begins a sentence: this one ends one, or is empty or a heading.
fn ends_sentence(line: &str) -> bool {
    let line = line.trim_end_matches(['*', '_', '"', ')', '`']);
    line.is_empty() || line.ends_with(['.', '!', '?', '|']) || line.starts_with('#')
}

/// Whether a line begins a heading, an entry of a list or a row of a table.
fn begins_block(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "#", "|"].iter().any(|m| line.starts_with(m)) || (number != line && number.starts_with(". "))
}

/// The sentences and cells of a line, each with where it begins; the first may continue one of the line
/// before.
fn sentences(line: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![0];
    for end in [". ", "! ", "? ", "| "] {
        starts.extend(line.match_indices(end).map(|(at, end)| at + end.len()));
    }
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().map(|at| (at, &line[at..])).collect()
}

fn begins_with_words(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|rest| !rest.starts_with(is_word))
}

/// Whether the text contains these words, not as parts of others. `_` is part of a word, so that names do not
/// count.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + words.len()..].starts_with(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<(Rule, usize, String)> {
        findings_in(name, text).into_iter().map(|f| (f.rule, f.line, f.what)).collect()
    }

    fn of(rule: Rule, name: &str, text: &str) -> Vec<usize> {
        found(name, text).into_iter().filter(|f| f.0 == rule).map(|f| f.1).collect()
    }

    #[test]
    fn openings_count_at_the_start_of_a_sentence_only() {
        let text = "/// Who asks waits.\nfn a() {}\n/// One that asks\n/// Whose is it\n/// waits. Nor this.\n\
                    // So many of them.\n";
        assert_eq!(of(Rule::Opening, "a.rs", text), [1, 5, 6]);
        assert_eq!(of(Rule::Opening, "a.md", "Done.\nWho waits is late.\n\n- Whom it serves\n"), [2, 4]);
        assert_eq!(of(Rule::Opening, "a.md", "| a | Who waits |\n"), [1]);
        assert!(of(Rule::Opening, "a.md", "It is known\nWho they are, and Nor is a name.\n").is_empty());
        assert!(of(Rule::Opening, "a.rs", "/// Norms hold. Whole sectors.\n").is_empty());
    }

    #[test]
    fn questions_may_begin_with_who() {
        assert!(of(Rule::Opening, "a.md", "Who waits? It is known.\n").is_empty());
        assert!(of(Rule::Opening, "a.md", "Who waits,\nand for what? It is known.\n").is_empty());
        assert_eq!(of(Rule::Opening, "a.md", "Who waits. Is it known?\n"), [1]);
    }

    #[test]
    fn doc_comments_stand_alone_and_other_comments_need_not() {
        assert_eq!(of(Rule::Opening, "a.rs", "/// The same for writes.\n"), [1]);
        assert!(of(Rule::Opening, "a.rs", "// The same for writes.\n").is_empty());
        assert!(of(Rule::Opening, "a.rs", "/// Reads.\n///\n/// The same holds for writes.\n").is_empty());
    }

    #[test]
    fn phrases_count_in_comments_and_strings_and_not_in_names() {
        let text = "/// Nobody waits.\nfn nobody() { say(\"work is under way\"); nobody_waits(); }\n// It goes on.\n";
        assert_eq!(of(Rule::Phrase, "a.rs", text), [1, 2, 3]);
        assert!(of(Rule::Phrase, "a.rs", "/// `nobody_waits`\nfn nobody() {}\n").is_empty());
        assert!(of(Rule::Phrase, "a.rs", "let user = \"nobody\";\n").is_empty(), "a name");
        assert_eq!(of(Rule::Phrase, "a.md", "A driver is told.\n```\nis told\n```\n"), [1]);
    }

    #[test]
    fn width_leaves_tables_code_and_addresses_alone() {
        let long = "word ".repeat(25);
        assert_eq!(of(Rule::Width, "a.rs", &format!("    // {long}\n")), [1]);
        assert_eq!(of(Rule::Width, "a.md", &format!("{long}\n")), [1]);
        for exempt in
            [format!("| {long}\n"), format!("```text\n{long}\n```\n"), format!("{long} https://x\n")]
        {
            assert!(of(Rule::Width, "a.md", &exempt).is_empty(), "{exempt}");
        }
        let comment = format!("<!-- figures\n{long}\n-->\n{long}\n");
        assert_eq!(of(Rule::Width, "a.md", &comment), [4]);
        assert!(of(Rule::Width, "a.rs", &format!("let x = \"{long}\";\n")).is_empty(), "only comments");
        assert!(of(Rule::Width, "a.rs", &format!("/// ```\n/// {long}\n/// ```\n")).is_empty());
        let exactly = format!("// {}", "x".repeat(107));
        assert!(of(Rule::Width, "a.rs", &exactly).is_empty());
        assert_eq!(of(Rule::Width, "a.rs", &(exactly + "x")), [1]);
    }

    #[test]
    fn sources_that_a_reader_cannot_open_count_outside_reproduce() {
        let text = "// As in seed 000, for the issue.\n";
        assert_eq!(of(Rule::Source, "crates/core/src/a.rs", text), [1, 1]);
        assert!(of(Rule::Source, "crates/papers/src/reproduce/a.rs", text).is_empty());
    }

    #[test]
    fn a_count_may_only_fall() {
        let counts = |n| BTreeMap::from([("docs".to_owned(), [0, n, 0, 0])]);
        assert!(over(&counts(2), &counts(2)).is_empty() && over(&counts(1), &counts(2)).is_empty());
        assert_eq!(over(&counts(3), &counts(2)).len(), 1);
        assert_eq!(over(&counts(1), &BTreeMap::new()).len(), 1, "a part that is not listed has none");
    }

    #[test]
    fn counts_are_read_as_they_are_written() {
        let counts = BTreeMap::from([("crates/core".to_owned(), [1, 20, 300, 4000])]);
        assert_eq!(parse_baseline(&write_baseline(&counts)), Ok(counts));
        assert!(parse_baseline("docs 1 2 3\n").is_err() && parse_baseline("docs 1 2 3 x\n").is_err());
    }

    #[test]
    fn parts_are_crates_and_folders() {
        let part = |file| part_of(file);
        assert_eq!(
            (part("crates/core/src/a.rs"), part("docs/schedulers/cfq.md")),
            ("crates/core".into(), "docs".into())
        );
        assert_eq!(part("README.md"), ".");
    }
}
