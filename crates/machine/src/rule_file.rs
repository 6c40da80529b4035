//! The file with the one udev rule that `fairhead apply` keeps for a disk.
//!
//! ```text
//! # Written by fairhead apply for sda (WDC WD20), which the rule knows by its serial number.
//! # fairhead apply sda --undo removes this file and puts back what was before:
//! # before: scheduler=none nr_requests=256
//! ACTION=="add|change", …, ENV{ID_SERIAL}=="WDC_1", ATTR{queue/scheduler}="bfq"
//! ```
//!
//! The file is a function of [`RuleFile`]: a file that is read and written again is the same, and one that is
//! not was edited by hand, and is left alone. udev assigns attributes in order, so the scheduler is there
//! before its tunables are set. The name begins with 90: after the files that set `ID_SERIAL` and after
//! those of distributions that set schedulers.
//
//= udev(7)

use crate::disks::Disk;
use crate::identity::Identity;
use crate::keys::KEYS;
use crate::queue::Settings;
use crate::tree::Tree;

/// The folder of an administrator's rules.
const FOLDER: &str = "etc/udev/rules.d";
const PREFIX: &str = "90-fairhead-";

/// The content of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleFile {
    /// The name that the disk had when the file was written.
    pub disk: String,
    /// The model of the disk; empty if it has none.
    pub model: String,
    /// How the rule knows the disk.
    pub identity: Identity,
    /// What was in force before the first rule.
    pub before: Settings,
    /// What the rule sets.
    pub sets: Settings,
}

/// A file that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The path below the root, without a slash in front.
    pub path: String,
    /// The text.
    pub text: String,
    /// What it says; `None` if it was edited by hand.
    pub content: Option<RuleFile>,
}

impl RuleFile {
    /// The path for a new file, below the root.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{FOLDER}/{PREFIX}{}.rules", self.identity.slug())
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { disk, model, identity, before, sets } = self;
        let model = if model.is_empty() { String::new() } else { format!(" ({model})") };
        let mut text = format!(
            "# Written by fairhead apply for {disk}{model}, which the rule knows {}.\n\
             # fairhead apply {disk} --undo removes this file and puts back what was before:\n\
             # before: {before}\n\
             ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {}==\"{}\"",
            identity.words(),
            identity.key,
            identity.value
        );
        for (name, value) in sets.pairs() {
            text.push_str(&format!(", ATTR{{queue/{name}}}=\"{value}\""));
        }
        text.push('\n');
        text
    }

    /// Reads a text; `None` if it is not exactly what [`RuleFile::text`] gives.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let about = lines.next()?.strip_prefix("# Written by fairhead apply for ")?;
        let about = about.split_once(", which the rule knows ")?.0;
        let (disk, model) = match about.split_once(' ') {
            Some((disk, model)) => (disk, model.strip_prefix('(')?.strip_suffix(')')?),
            None => (about, ""),
        };
        let before = Settings::parse(lines.nth(1)?.strip_prefix("# before: ")?)?;
        let mut words = lines.next()?.split(", ").skip(3);
        let (key, value) = words.next()?.split_once("==\"")?;
        let key = KEYS.into_iter().find(|k| *k == key)?;
        let identity = Identity { key, value: value.strip_suffix('"')?.to_owned() };
        let mut sets = String::new();
        for word in words {
            let (name, value) = word.strip_prefix("ATTR{queue/")?.split_once("}=\"")?;
            sets.push_str(&format!("{name}={} ", value.strip_suffix('"')?));
        }
        let sets = Settings::parse(&sets)?;
        let file = Self { disk: disk.to_owned(), model: model.to_owned(), identity, before, sets };
        (file.text() == text).then_some(file)
    }

    /// The file for the disk, if there is one. A file that was edited by hand is found by its name, or by the
    /// value that it asks for.
    #[must_use]
    pub fn find(tree: &Tree, disk: &Disk) -> Option<Found> {
        let is_for = |found: &Found| match &found.content {
            Some(content) => content.identity.is(disk),
            None => disk.identity.iter().any(|(key, value)| {
                let named = Identity { key, value: value.clone() }.slug();
                found.path == format!("{FOLDER}/{PREFIX}{named}.rules")
                    || found.text.contains(&format!("{key}==\"{value}\""))
            }),
        };
        Self::all(tree).into_iter().find(is_for)
    }

    /// All files, in the order of their names.
    #[must_use]
    pub fn all(tree: &Tree) -> Vec<Found> {
        let names = tree.names(FOLDER).into_iter();
        let ours = names.filter(|n| n.starts_with(PREFIX) && n.ends_with(".rules"));
        let read = |name: String| {
            let path = format!("{FOLDER}/{name}");
            let text = std::fs::read_to_string(tree.place(&path)).ok()?;
            Some(Found { content: Self::parse(&text), path, text })
        };
        ours.filter_map(read).collect()
    }
}

/// The lines that go and come between two texts, as `diff` shows them.
#[must_use]
pub fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |lines: &[&str], line: &str| lines.contains(&line);
    let mut text = String::new();
    for line in &old {
        let sign = if same(&new, line) { ' ' } else { '-' };
        text.push_str(&format!("{sign}{line}\n"));
    }
    for line in new.iter().filter(|l| !same(&old, l)) {
        text.push_str(&format!("+{line}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> RuleFile {
        RuleFile {
            disk: "sda".to_owned(),
            model: "WDC WD20 (blue)".to_owned(),
            identity: Identity { key: "ENV{ID_SERIAL}", value: "WDC_1".to_owned() },
            before: Settings::parse("scheduler=none nr_requests=256").unwrap(),
            sets: Settings::parse("scheduler=bfq iosched/low_latency=0").unwrap(),
        }
    }

    #[test]
    fn a_file_that_is_read_and_written_is_the_same() {
        for file in [example(), RuleFile { model: String::new(), ..example() }] {
            assert_eq!(RuleFile::parse(&file.text()), Some(file));
        }
        assert!(example().text().ends_with(
            "ENV{ID_SERIAL}==\"WDC_1\", ATTR{queue/scheduler}=\"bfq\", ATTR{queue/iosched/low_latency}=\"0\"\n"
        ));
    }

    #[test]
    fn an_edited_file_is_recognised() {
        let text = example().text();
        for edited in [
            text.replace("low_latency}=\"0\"", "low_latency}=\"0\", ATTR{queue/nr_requests}=\"8\" "),
            text.replace("# before", "#before"),
            text.replace("add|change", "add"),
            format!("{text}# mine\n"),
            text.trim_end().to_owned(),
            String::new(),
            "# Written by fairhead apply for ".to_owned(),
        ] {
            assert_eq!(RuleFile::parse(&edited), None, "{edited}");
        }
    }

    #[test]
    fn a_difference_has_signs() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), " a\n-b\n+c\n");
        assert_eq!(difference("", "a\n"), "+a\n");
        assert_eq!(difference("a\n", ""), "-a\n");
    }
}
