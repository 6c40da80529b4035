//! Links in documents, and citations of documents in code: each leads somewhere.
//!
//! ```text
//! *.md         [text](path#anchor), [text]: path, <https://…>   the file is there, and has the anchor
//! *.rs, *.toml docs/reference/bfq.md#42-injection               same; in comments and in texts
//! *.rs, *.toml //= bfq-2010, …                                  a source is a heading of docs/reference/sources.md
//! ```
//!
//! A row of a table in a document is one line.
//!
//! An anchor is a heading, as GitHub and mdBook name it (`### 4.2 Injection` is `42-injection`), or
//! `<a id="…">`. Addresses outside of the repository are checked for their form only, so that the check needs
//! no network.

use crate::outcome::Outcome;
use crate::shell::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The page whose headings are the names of sources.
const SOURCES: &str = "docs/reference/sources.md";

/// Checks the repository.
pub(crate) fn check() -> Result<Outcome, String> {
    let checked = Checked::of(&root())?;
    if checked.faults.is_empty() {
        return Ok(Outcome::Passed(format!("{} links and citations lead somewhere", checked.count)));
    }
    Err(checked.faults.join("\n"))
}

/// What was found in a folder.
#[derive(Default)]
struct Checked {
    root: PathBuf,
    /// Links and citations.
    count: usize,
    faults: Vec<String>,
    /// The anchors of each document that was asked about.
    anchors: BTreeMap<PathBuf, Vec<String>>,
}

impl Checked {
    fn of(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        walk(root, &mut files)?;
        let mut checked = Self { root: root.to_owned(), ..Self::default() };
        for path in files {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
            match path.extension().and_then(|e| e.to_str()) {
                Some("md") => checked.document(&name, &text),
                _ => checked.code(&name, &text),
            }
        }
        Ok(checked)
    }

    /// The links of a document, and its tables.
    fn document(&mut self, name: &Path, text: &str) {
        let own = anchors(text);
        for (i, anchor) in own.iter().enumerate() {
            if own[..i].contains(anchor) {
                self.fault(name, 0, format!("two places are called #{anchor}"));
            }
        }
        let prose = prose(text);
        for (i, line) in prose.lines().enumerate() {
            if line.starts_with('|') && !line.trim_end().ends_with('|') {
                self.fault(
                    name,
                    i + 1,
                    "a row of a table ends without |: write the whole row in one line".to_owned(),
                );
            }
        }
        for (at, link) in links(&prose) {
            let line = prose[..at].matches('\n').count() + 1;
            self.count += 1;
            let result = match link {
                _ if is_outside(&link) => address(&link),
                _ => self.inside(name.parent().unwrap_or(Path::new("")), name, &link),
            };
            if let Err(why) = result {
                self.fault(name, line, why);
            }
        }
    }

    /// The citations in code.
    fn code(&mut self, name: &Path, text: &str) {
        for (i, line) in text.lines().enumerate() {
            let mut found: Vec<Result<(), String>> =
                cited(line).iter().map(|link| self.inside(Path::new(""), name, link)).collect();
            if let Some(mark) = line.trim_start().strip_prefix("//= ") {
                let sources = mark.split([' ', ',', ';']).filter(|word| is_source(word));
                found.extend(sources.map(|s| self.inside(Path::new(""), name, &format!("{SOURCES}#{s}"))));
                let bare = mark
                    .split([' ', ',', ';', '#'])
                    .find(|w| w.ends_with(".md") && !w.contains('/') && !self.root.join(w).exists());
                found.extend(bare.map(|page| Err(format!("{page} is in no folder; cite docs/reference/…"))));
            }
            self.count += found.len();
            for why in found.into_iter().filter_map(Result::err) {
                self.fault(name, i + 1, why);
            }
        }
    }

    /// Whether a relative link from a file leads somewhere.
    fn inside(&mut self, folder: &Path, from: &Path, link: &str) -> Result<(), String> {
        let (path, anchor) = link.split_once('#').map_or((link, None), |(p, a)| (p, Some(a)));
        let target = if path.is_empty() { from.to_owned() } else { clean(&folder.join(path)) };
        let full = self.root.join(&target);
        if !full.exists() {
            return Err(format!("{link}: there is no {}", target.display()));
        }
        let Some(anchor) = anchor else { return Ok(()) };
        if target.extension().is_none_or(|e| e != "md") {
            return Err(format!("{link}: only documents have anchors"));
        }
        if !self.anchors.contains_key(&target) {
            let text = fs::read_to_string(&full).map_err(|e| format!("{}: {e}", full.display()))?;
            self.anchors.insert(target.clone(), anchors(&text));
        }
        if self.anchors[&target].iter().any(|a| a == anchor) {
            return Ok(());
        }
        Err(format!("{link}: {} has no #{anchor}", target.display()))
    }

    fn fault(&mut self, name: &Path, line: usize, why: String) {
        self.faults.push(format!("{}:{line}: {why}", name.display()));
    }
}

/// Documents, code and settings below a folder, without what git ignores and what is not text.
pub(crate) fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | ".git" | "corpus" | "artifacts") {
                walk(&path, found)?;
            }
        } else if path.extension().is_some_and(|e| e == "md" || e == "rs" || e == "toml") {
            found.push(path);
        }
    }
    Ok(())
}

/// A path without `.` and `..`.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if clean.file_name().is_some() => drop(clean.pop()),
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

/// A document with its code blanked out, so that places stay where they are.
fn prose(text: &str) -> String {
    let mut is_fenced = false;
    let mut prose = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fenced || is_fence {
            prose.extend(line.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            prose.push_str(line);
        }
        is_fenced ^= is_fence;
    }
    without_spans(&prose)
}

/// A text whose spans between backticks are blank.
fn without_spans(text: &str) -> String {
    let mut parts = text.split('`');
    let mut kept = parts.next().unwrap_or("").to_owned();
    let mut is_inside = true;
    for part in parts {
        kept.push(' ');
        if is_inside {
            kept.extend(part.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            kept.push_str(part);
        }
        is_inside = !is_inside;
    }
    kept
}

/// The targets of a document's links.
pub(crate) fn targets(document: &str) -> Vec<String> {
    links(&prose(document)).into_iter().map(|(_, link)| link).collect()
}

/// The targets of links in prose, with where they begin.
fn links(prose: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in prose.match_indices("](") {
        if let Some(end) = prose[at..].find(')') {
            found.push((at, prose[at + 2..at + end].trim().to_owned()));
        }
    }
    for (at, _) in prose.match_indices("]: ") {
        // A definition begins its line, and does not continue a paragraph.
        let begin = prose[..at].rfind('\n').map_or(0, |n| n + 1);
        let before = prose[..begin].lines().next_back().unwrap_or("").trim();
        let is_own = before.is_empty() || (before.starts_with('[') && before.contains("]: "));
        if is_own && prose[begin..].starts_with('[') && !prose[begin + 1..at].contains(['[', ']']) {
            let rest = prose[at + 3..].split_whitespace().next().unwrap_or("");
            found.push((at, rest.to_owned()));
        }
    }
    for (at, _) in prose.match_indices("<http") {
        if let Some(end) = prose[at..].find('>') {
            found.push((at, prose[at + 1..at + end].to_owned()));
        }
    }
    found
}

/// Whether a link leaves the repository.
pub(crate) fn is_outside(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

/// Whether an address outside of the repository has the form of one.
fn address(link: &str) -> Result<(), String> {
    if let Some(mail) = link.strip_prefix("mailto:") {
        return if mail.contains('@') { Ok(()) } else { Err(format!("{link}: no address")) };
    }
    let (scheme, rest) = link.split_once("://").unwrap_or(("", link));
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    let is_host = host.contains('.') && !host.starts_with('.') && !host.ends_with('.');
    if !matches!(scheme, "http" | "https") || !is_host || link.contains(char::is_whitespace) {
        return Err(format!("{link}: no address of the web"));
    }
    Ok(())
}

/// The documents that a line of code names: `docs/` and what follows, up to the end of the anchor.
fn cited(line: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    let mut found = Vec::new();
    for (at, _) in line.match_indices("docs/") {
        if line[..at].ends_with(|c: char| is_part(c)) {
            continue;
        }
        let rest = &line[at..];
        let Some(end) = rest.find(".md").map(|n| n + 3) else { continue };
        if !rest[..end].chars().all(is_part) {
            continue;
        }
        let anchor = rest[end..].strip_prefix('#').map_or("", |a| {
            let is_anchor = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
            &a[..a.find(|c| !is_anchor(c)).unwrap_or(a.len())]
        });
        found.push(if rest[end..].starts_with('#') {
            format!("{}#{anchor}", &rest[..end])
        } else {
            rest[..end].to_owned()
        });
    }
    found
}

/// Whether a word has the form of a source's name: words and a year.
fn is_source(word: &str) -> bool {
    word.rsplit_once('-').is_some_and(|(name, year)| {
        year.len() == 4
            && (year.starts_with("19") || year.starts_with("20"))
            && year.bytes().all(|b| b.is_ascii_digit())
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    })
}

/// The places of a document that a link can name.
fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        let level = line.bytes().take_while(|&b| b == b'#').count();
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            let name = slug(line[level..].trim());
            // A second heading of the same name has a number.
            let used =
                found.iter().filter(|f| **f == name || f.strip_prefix(&name).is_some_and(is_number)).count();
            found.push(if used == 0 { name } else { format!("{name}-{used}") });
        }
        for part in line.split("<a id=\"").skip(1) {
            found.extend(part.split('"').next().map(str::to_owned));
        }
    }
    found
}

/// Whether this is what tells a second heading from the first: `-1`.
fn is_number(rest: &str) -> bool {
    rest.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// A heading's anchor.
fn slug(heading: &str) -> String {
    // Of a link only the text counts.
    let mut text = heading.to_owned();
    while let Some(at) = text.find("](") {
        let end = text[at..].find(')').map_or(text.len(), |n| at + n + 1);
        text.replace_range(at..end, "");
    }
    let kept = text.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_citations_of_the_repository_lead_somewhere() {
        let checked = Checked::of(&root()).expect("the repository can be read");
        assert!(checked.faults.is_empty(), "{}", checked.faults.join("\n"));
        assert!(checked.count > 100, "only {} links found: has their form changed?", checked.count);
    }

    /// Lays files out in a folder and answers the faults that are found there.
    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("fairhead-links-{}-{n}", std::process::id()));
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let checked = Checked::of(&folder);
        fs::remove_dir_all(&folder).expect("the folder goes");
        checked.expect("files that can be read").faults
    }

    #[test]
    fn a_link_to_a_missing_file_or_anchor_is_a_fault() {
        let page = "# A page\n\n## 4.2 Injection, `x` and [more](b.md)\n\n<a id=\"place\"></a>\n";
        let good = "[1](a.md) [2](a.md#42-injection-x-and-more) [3](sub/../a.md#place) [4](#own)\n\n# Own\n";
        assert_eq!(faults(&[("a.md", page), ("b.md", good)]), [""; 0]);
        let bad = "\n[1](c.md)\n[2](a.md#nowhere) `[3](no-link.md)`\n```\n[4](no-link.md)\n```\n[5](#lost)\n[x]: no-link.md\n\n[x]: gone.md\n";
        assert_eq!(
            faults(&[("a.md", page), ("b.md", "# B"), ("d.md", bad)]),
            [
                "d.md:2: c.md: there is no c.md",
                "d.md:3: a.md#nowhere: a.md has no #nowhere",
                "d.md:7: #lost: d.md has no #lost",
                "d.md:10: gone.md: there is no gone.md",
            ]
        );
    }

    #[test]
    fn a_row_that_is_broken_into_two_lines_is_a_fault() {
        let page = "| a | b |\n|---|---|\n| 1 | `x|y` |\n| 2 | two\nlines |\n\n```\n| code\n```\n";
        let fault = "a.md:4: a row of a table ends without |: write the whole row in one line";
        assert_eq!(faults(&[("a.md", page)]), [fault]);
    }

    #[test]
    fn addresses_outside_are_checked_for_their_form() {
        let good = "[a](https://example.org/x?y#z) <http://example.org> [b](mailto:a@b.org)";
        assert_eq!(faults(&[("a.md", good)]), [""; 0]);
        for bad in ["[a](ftp://example.org)", "[a](https://example)", "<https://ex ample.org>"] {
            assert_eq!(faults(&[("a.md", bad)]).len(), 1, "{bad}");
        }
    }

    #[test]
    fn a_citation_in_code_has_to_exist() {
        // Not written out here, where the check of the repository would find them.
        let cited = |text: &str| text.replace("DOCS", "docs");
        let folder = "docs/reference";
        let page = (format!("{folder}/x.md"), "## 1.2 Two\n");
        let sources = (format!("{folder}/sources.md"), "## cfq-2004\n");
        let of = |name: &str, text: &str| {
            faults(&[(page.0.as_str(), page.1), (sources.0.as_str(), sources.1), (name, &cited(text))])
        };
        let good = "//= linux-6.12 block/x.c, DOCS/reference/x.md#12-two\n//= cfq-2004, case 1\n//= nbd doc/proto.md\n// See `DOCS/reference/x.md`.\n";
        assert_eq!(of("src/a.rs", good), [""; 0]);
        for bad in [
            "// see DOCS/reference/x.md#13-three",
            "//= DOCS/reference/y.md",
            "//= cfq-2005, case 1",
            "//= x.md 1.2",
            "/// In `DOCS/reference/x.md#`.",
        ] {
            assert_eq!(of("src/a.rs", bad).len(), 1, "{bad}");
            let setting = bad.replace("///", "#").replace("//", "#");
            let is_mark = bad.starts_with("//=");
            assert!(is_mark || of("a.toml", &setting).len() == 1, "{setting}");
        }
    }

    #[test]
    fn headings_of_one_name_are_numbered() {
        assert_eq!(
            anchors("# A b\n## A b\n```\n# no heading\n```\n### A_b: c+d\n"),
            ["a-b", "a-b-1", "a_b-cd"]
        );
        assert_eq!(faults(&[("a.md", "# A\n<a id=\"a\"></a>\n")]).len(), 1);
    }
}
