//! The museum: public complaints of people whose disk did what they did not want, each as a machine made of
//! files with what doctor has to find on it, and nothing else (`tests/museum/*.tree`, read as trees.rs says).
//!
//! ```text
//! source ADDRESS       where the complaint is
//! title TEXT           its title there
//! complaint TEXT       what was wrong, in our words
//! files TEXT           what the machine's files say of it
//! answer TEXT          why the findings are the right answer
//! pays TEXT            what the cure costs, and whom
//! unanswered TEXT      in place of `answer`: why doctor does not answer it
//! ```
//!
//! `docs/museum.md` has an entry for each, made from these texts: `FAIRHEAD_BLESS=1` writes it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::trees::{Expected, differences, machines};

/// The rooms of the museum: the heading on the page, and the machines.
const ROOMS: [(&str, &str); 6] = [
    ("Names and rules that do nothing", include_str!("../museum/rules.tree")),
    ("Schedulers and disks", include_str!("../museum/schedulers.tree")),
    ("Priorities", include_str!("../museum/priorities.tree")),
    ("Groups, weights and limits", include_str!("../museum/groups.tree")),
    ("Queues, caches and memory", include_str!("../museum/queues.tree")),
    ("ZFS and btrfs", include_str!("../museum/filesystems.tree")),
];

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/museum.md");
const LOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/museum/loads");

/// Where the entries begin and end on the page.
const BEGIN: &str =
    "<!-- entries: cargo test -p fairhead-machine --test it museum, with FAIRHEAD_BLESS=1 -->";
const END: &str = "<!-- end of entries -->";

fn field<'a>(expected: &'a Expected, name: &str) -> Option<&'a str> {
    expected.story.iter().find(|(field, _)| field == name).map(|(_, text)| text.as_str())
}

/// All machines of the museum, room by room.
fn all() -> Vec<(&'static str, String, Expected, Vec<String>)> {
    let mut found = Vec::new();
    for (room, text) in ROOMS {
        for (name, root, expected) in machines(text) {
            let wrong = differences(root.folder.path(), &expected);
            found.push((room, name.to_owned(), expected, wrong));
        }
    }
    found
}

/// Doctor finds on each machine what is written, with the command that is written, and nothing else; and at
/// least 45 of 50 complaints are answered.
#[test]
fn each_complaint_has_its_findings_and_no_others() {
    let (machines, mut wrong) = (all(), Vec::new());
    for (_, name, expected, differences) in &machines {
        wrong.extend(differences.iter().map(|w| format!("{name}: {w}")));
        for needed in ["source", "title", "complaint", "files"] {
            if field(expected, needed).is_none_or(str::is_empty) {
                wrong.push(format!("{name} has no {needed}"));
            }
        }
        if field(expected, "answer").is_some() == field(expected, "unanswered").is_some() {
            wrong.push(format!("{name} has to have an answer, or to say that it has none"));
        }
        // A command that is not said on the page is not held.
        let is_held = |f: &(String, Option<String>, Vec<String>)| f.1.is_some();
        if !expected.findings.iter().all(is_held) {
            wrong.push(format!("{name} has a finding without its command"));
        }
    }
    let sources: BTreeSet<&str> = machines.iter().filter_map(|m| field(&m.2, "source")).collect();
    let answered = machines.iter().filter(|m| field(&m.2, "answer").is_some()).count();
    println!("{answered} of {} complaints are answered", machines.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(sources.len(), machines.len(), "a source is there twice");
    assert!(machines.len() >= 50 && answered * 50 >= machines.len() * 45, "{answered} of {}", machines.len());
}

/// No command of a finding writes a scheduler that another finding of the machine speaks against, and none
/// chooses a scheduler that the disk cannot have.
#[test]
fn no_cure_makes_it_worse() {
    for (_, name, expected, _) in all() {
        let commands: Vec<&str> = expected.findings.iter().filter_map(|f| f.1.as_deref()).collect();
        for (what, command, _) in &expected.findings {
            let disk = what.split(' ').nth(1).unwrap();
            let place = format!("/sys/block/{disk}/queue/scheduler");
            let chosen = |c: &str| {
                let (before, _) = c.split_once(&format!(" > {place}"))?;
                Some(before.rsplit(' ').next().unwrap_or_default().to_owned())
            };
            let Some(one) = command.as_deref().filter(|c| !c.starts_with('#')).and_then(chosen) else {
                continue;
            };
            let others = commands.iter().filter(|c| !c.starts_with('#')).filter_map(|c| chosen(c));
            let other: Vec<String> = others.filter(|s| *s != one).collect();
            assert!(other.is_empty(), "{name}: the commands give {disk} {one} and {other:?}");
        }
    }
}

/// The page has an entry for each machine and each load, made from their texts.
#[test]
fn the_page_has_each_entry() {
    let page = std::fs::read_to_string(PAGE).expect("docs/museum.md is there");
    let from = page.find(BEGIN).expect("the page says where the entries begin") + BEGIN.len();
    let to = page.find(END).expect("the page says where the entries end");
    let entries = format!("\n\n{}{}", entries(), loads());
    if std::env::var_os("FAIRHEAD_BLESS").is_some() {
        let blessed = format!("{}{entries}{}", &page[..from], &page[to..]);
        return std::fs::write(PAGE, blessed).unwrap();
    }
    assert!(page[from..to] == entries, "docs/museum.md has other entries; FAIRHEAD_BLESS=1 writes them");
    let machines = all();
    let answered = machines.iter().filter(|m| field(&m.2, "answer").is_some()).count();
    let count = format!("{answered} of {} complaints", machines.len());
    assert!(page.contains(&count), "docs/museum.md does not say '{count}'");
}

fn entries() -> String {
    let (mut page, mut number, mut room) = (String::new(), 0, "");
    for (its_room, name, expected, _) in all() {
        if its_room != room {
            room = its_room;
            let _ = write!(page, "## {room}\n\n");
        }
        number += 1;
        let _ = write!(page, "### {number}. {name}\n\n");
        let source = field(&expected, "source").unwrap();
        let title = field(&expected, "title").unwrap();
        let of = |name: &str| field(&expected, name).unwrap_or_default();
        let complaint = format!("**Complaint**: {}", of("complaint"));
        page.push_str(&item(&complaint));
        page.push_str(&format!(
            "  [{}]({source}): \"{}\".\n",
            short(source),
            title.trim_end_matches('.').replace('"', "'")
        ));
        page.push_str(&item(&format!("**Files**: {}", of("files"))));
        page.push_str(&answer(&expected));
        if !of("pays").is_empty() {
            page.push_str(&item(&format!("**Pays**: {}", of("pays"))));
        }
        page.push('\n');
    }
    page
}

/// What doctor says, and why that is right.
fn answer(expected: &Expected) -> String {
    if let Some(why) = field(expected, "unanswered") {
        return item(&format!("**Doctor** does not answer this: {why}"));
    }
    let found: Vec<String> = expected.findings.iter().map(|(what, ..)| format!("`{what}`")).collect();
    let found = if found.is_empty() { "nothing is wrong".to_owned() } else { found.join(", ") };
    let mut text = item(&format!("**Doctor**: {found}. {}", field(expected, "answer").unwrap_or_default()));
    let commands: Vec<&str> = expected.findings.iter().filter_map(|f| f.1.as_deref()).collect();
    if !commands.is_empty() {
        let _ = write!(text, "\n  ```text\n  {}\n  ```\n", commands.join("\n  "));
    }
    text
}

/// The loads, of which `advise` decides.
fn loads() -> String {
    let mut names: Vec<String> = std::fs::read_dir(LOADS)
        .expect("the folder of loads")
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut page = "## Loads\n\n".to_owned();
    for name in names {
        let text = std::fs::read_to_string(Path::new(LOADS).join(&name)).unwrap();
        let of = |key: &str| header(&text, key).unwrap_or_else(|| panic!("{name} has no '# {key}: …'"));
        let _ = write!(page, "### {}\n\n", of("name"));
        page.push_str(&item(&format!("**Complaint**: {}", of("complaint"))));
        let source = of("source");
        let title = of("title");
        page.push_str(&format!("  [{}]({source}): \"{}\".\n", short(&source), title.trim_end_matches('.')));
        page.push_str(&item(&format!("**Load**: `{name}` on the disk {}, under {}.", of("disk"), of("had"))));
        page.push_str(&item(&format!("**Expected of advise**: {}", of("expected"))));
        page.push('\n');
    }
    page
}

/// The text of `# KEY: TEXT` in a job file, with the lines after it that begin with `#   `.
fn header(text: &str, key: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(&format!("# {key}: ")));
    let first = lines.next()?.split_once(": ")?.1.to_owned();
    let more = lines.map_while(|l| l.strip_prefix("#   "));
    Some(more.fold(first, |all, line| format!("{all} {}", line.trim())))
}

/// `systemd/systemd#7057` for the address of an issue.
fn short(source: &str) -> String {
    let path = source.trim_start_matches("https://github.com/");
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [owner, repository, _, number] => format!("{owner}/{repository}#{number}"),
        _ => path.to_owned(),
    }
}

/// An item of a list, wrapped as the documents are.
fn item(text: &str) -> String {
    let (mut out, mut line) = (String::new(), "-".to_owned());
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 110 {
            out.push_str(&line);
            out.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    out + &line + "\n"
}

/// The loads are job files that the lab can read, on disks that it has.
#[test]
fn the_loads_can_be_run() {
    for entry in std::fs::read_dir(LOADS).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let jobs = fairhead_sim::job::parse(&text, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!jobs.jobs.is_empty(), "{name}");
        let disk = header(&text, "disk").unwrap();
        assert!(fairhead_device::DeviceParams::preset(&disk).is_ok(), "{name}: no disk {disk}");
    }
}
