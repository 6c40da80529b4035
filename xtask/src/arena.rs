//! The measured part of `docs/arena.md`: how far each scheduler is from the best, over all loads and disks.
//!
//! ```text
//!   fairhead arena --output-format json --pictures ─► regrets by class of disk, good and bad loads, the map
//! ```
//!
//! `--check` runs one load on all disks, and compares its row of the map.
//!
//! What this does not do: weigh loads or disks by how many people have them; they count alike.

use crate::docs::{MARK, filled, root_file};
use crate::json::Json;
use crate::shell::{capture, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The classes of disks, each with its presets.
const CLASSES: [(&str, &[&str]); 4] = [
    ("drives that turn", &["sata2009", "nas2020", "greedy_ncq", "dual_actuator", "raid1_2009"]),
    ("cards", &["microsd_a1", "emmc51"]),
    ("SATA flash", &["plextor_m5s", "sata_ssd"]),
    ("NVMe", &["dramless", "nvme", "980pro"]),
];

/// The schedulers, in the order of the tables.
const SCHEDULERS: [&str; 5] = ["none", "mq-deadline", "kyber", "bfq", "cfq"];

/// The load that `--check` runs.
const CHECKED: &str = "query-streams";

/// The schedulers whose heat maps the page has.
const PICTURES: [&str; 2] = ["mq-deadline", "bfq"];

/// Within this factor of the best is as good as the best: what `advise` calls no difference.
const EQUAL: f64 = 1.05;

/// A load on a disk, and the regret of each of [`SCHEDULERS`] there.
struct Cell {
    load: String,
    disk: String,
    regrets: [f64; SCHEDULERS.len()],
}

/// The page's measured part, and its pictures; of one load only, to be compared, if `check`.
pub(crate) fn make(program: &Path, check: bool, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let page = root_file("docs/arena.md");
    if check {
        let cells = run(program, &[CHECKED])?;
        files.insert(page, row(CHECKED, &cells));
        return Ok(());
    }
    let folder = root().join("target/arena-pictures");
    let cells = run(program, &["--pictures", &folder.display().to_string()])?;
    for scheduler in PICTURES {
        let path = folder.join(format!("regret-{scheduler}.svg"));
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        files.insert(root_file(&format!("docs/pictures/arena-{scheduler}.svg")), text);
    }
    let text = format!("{MARK}\n\n{}{}{}", by_class(&cells), good_and_bad(&cells), map(&cells));
    let old = fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let own = old.split(MARK).next().unwrap_or("").trim_end();
    files.insert(page, format!("{own}\n\n{}", filled(&text)));
    Ok(())
}

/// The cells of an arena of all disks.
fn run(program: &Path, more: &[&str]) -> Result<Vec<Cell>, String> {
    let mut arena = Command::new(program);
    arena.args(["arena", "--output-format", "json"]).args(more);
    let output = capture(arena.current_dir(root()))?;
    let answer = Json::read(&String::from_utf8_lossy(&output.stdout)).map_err(|e| format!("arena: {e}"))?;
    let cell = |cell: &Json| -> Option<Cell> {
        let of = cell.get("schedulers")?.list();
        let regret = |name: &&str| {
            let mine = of.iter().find(|s| s.get("scheduler").and_then(Json::text) == Some(name));
            mine?.get("regret")?.number()
        };
        let regrets: Vec<f64> = SCHEDULERS.iter().map(regret).collect::<Option<_>>()?;
        let name = |what: &str| cell.get(what).and_then(Json::text).map(str::to_owned);
        Some(Cell { load: name("load")?, disk: name("disk")?, regrets: regrets.try_into().ok()? })
    };
    let cells = answer.get("cells").map(Json::list).unwrap_or_default();
    cells.iter().map(cell).collect::<Option<_>>().ok_or_else(|| "arena: a cell lacks a figure".to_owned())
}

/// The geometric mean, the regret that nine of ten do not exceed, and the largest; none of no cells.
fn summed_up(mut regrets: Vec<f64>) -> Option<[f64; 3]> {
    regrets.sort_by(|a, b| b.total_cmp(a));
    let sum: f64 = regrets.iter().map(|r| r.ln()).sum();
    let worst = *regrets.first()?;
    Some([(sum / regrets.len() as f64).exp(), regrets[regrets.len() / 10], worst])
}

/// A regret with three digits.
fn shown(regret: f64) -> String {
    match regret {
        r if r < 9.995 => format!("{r:.2}"),
        r if r < 99.95 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

/// A row for each scheduler, a column for each class of disks.
fn by_class(cells: &[Cell]) -> String {
    let mut text = "## How far from the best\n\n\
        The mean regret, the regret that nine of ten cells do not exceed, and the largest.\n\n\
        | scheduler | all disks |"
        .to_owned();
    CLASSES.iter().for_each(|c| _ = write!(text, " {} |", c.0));
    text.push_str(" best in |\n|---|---|---|---|---|---|---|\n");
    for (s, name) in SCHEDULERS.iter().enumerate() {
        let _ = write!(text, "| {name} |");
        let of = |is: &dyn Fn(&Cell) -> bool| {
            let all = cells.iter().filter(|c| is(c)).map(|c| c.regrets[s]).collect();
            summed_up(all).map_or_else(|| "–".to_owned(), |all| all.map(shown).join(", "))
        };
        let _ = write!(text, " {} |", of(&|_| true));
        CLASSES
            .iter()
            .for_each(|class| _ = write!(text, " {} |", of(&|c| class.1.contains(&c.disk.as_str()))));
        let best = cells.iter().filter(|c| c.regrets[s] < EQUAL).count();
        let _ = writeln!(text, " {best} of {} |", cells.len());
    }
    text.push('\n');
    text
}

/// The names of the loads, in the order of the cells.
fn loads(cells: &[Cell]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.load.as_str()) {
            names.push(&cell.load);
        }
    }
    names
}

/// For each scheduler the loads where it is nearest to the best and farthest from it, and its worst cells.
fn good_and_bad(cells: &[Cell]) -> String {
    let mut text = "## What each is good and bad at\n\n\
        Loads by their mean regret over all disks, and the worst cells.\n\n\
        | scheduler | good at | bad at | worst cells |\n|---|---|---|---|\n"
        .to_owned();
    for (s, name) in SCHEDULERS.iter().enumerate() {
        let mean = |load: &str| {
            let here = cells.iter().filter(|c| c.load == load).map(|c| c.regrets[s]);
            summed_up(here.collect()).map_or(1.0, |all| all[0])
        };
        let mut of: Vec<(f64, &str)> = loads(cells).into_iter().map(|l| (mean(l), l)).collect();
        of.sort_by(|a, b| a.0.total_cmp(&b.0));
        let list = |of: &mut dyn Iterator<Item = &(f64, &str)>| {
            of.take(5).map(|(r, l)| format!("{l} {}", shown(*r))).collect::<Vec<_>>().join(", ")
        };
        let mut worst: Vec<&Cell> = cells.iter().collect();
        worst.sort_by(|a, b| b.regrets[s].total_cmp(&a.regrets[s]));
        let worst: Vec<String> = worst
            .iter()
            .take(3)
            .map(|c| format!("{} on {} {}", c.load, c.disk, shown(c.regrets[s])))
            .collect();
        let (good, bad) = (list(&mut of.iter()), list(&mut of.iter().rev()));
        let _ = writeln!(text, "| {name} | {good} | {bad} | {} |", worst.join(", "));
    }
    for scheduler in PICTURES {
        let _ = write!(text, "\n![Regret of {scheduler}, loads by disks](pictures/arena-{scheduler}.svg)\n");
    }
    text.push('\n');
    text
}

/// A row for each load.
fn map(cells: &[Cell]) -> String {
    let classes: Vec<&str> = CLASSES.iter().map(|c| c.0).collect();
    let mut text = format!(
        "## The map\n\nThe mean regret on {}, in this order; bold where it is below 1.05 on all of them.\n\n| load |",
        classes.join(" / ")
    );
    SCHEDULERS.iter().for_each(|s| _ = write!(text, " {s} |"));
    text.push_str("\n|---|---|---|---|---|---|\n");
    loads(cells).iter().for_each(|load| text.push_str(&row(load, cells)));
    text
}

/// A load's row of the map.
fn row(load: &str, cells: &[Cell]) -> String {
    let mut text = format!("| [{load}](../examples/arena/{load}.fio) |");
    for s in 0..SCHEDULERS.len() {
        let of = |class: &(&str, &[&str])| {
            let here = cells.iter().filter(|c| c.load == load && class.1.contains(&c.disk.as_str()));
            summed_up(here.map(|c| c.regrets[s]).collect()).map(|all| all[0])
        };
        let means = CLASSES.each_ref().map(of);
        let bold = if means.iter().flatten().all(|m| *m < EQUAL) { "**" } else { "" };
        let words = means.map(|m| m.map_or_else(|| "–".to_owned(), shown));
        let _ = write!(text, " {bold}{}{bold} |", words.join(" / "));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(load: &str, disk: &str, regrets: [f64; 5]) -> Cell {
        Cell { load: load.to_owned(), disk: disk.to_owned(), regrets }
    }

    #[test]
    fn rows_have_the_mean_of_each_class() {
        let cells = [
            cell("a", "sata2009", [1.0, 2.0, 1.0, 1.0, 1.0]),
            cell("a", "nas2020", [4.0, 2.0, 1.0, 1.0, 1.0]),
            cell("a", "nvme", [1.0, 1.0, 30.0, 1.0, 1.0]),
            cell("b", "nas2020", [9.0; 5]),
        ];
        let expected = "| [a](../examples/arena/a.fio) | 2.00 / – / – / 1.00 | 2.00 / – / – / 1.00 \
                        | 1.00 / – / – / 30.0 | **1.00 / – / – / 1.00** | **1.00 / – / – / 1.00** |\n";
        assert_eq!(row("a", &cells), expected);
        assert!(map(&cells).contains(expected), "what is checked is a line of the page");
        assert!(
            by_class(&cells).contains("| none | 2.45, 9.00, 9.00 | 3.30, 9.00, 9.00 |"),
            "{}",
            by_class(&cells)
        );
        let bad = good_and_bad(&cells);
        assert!(
            bad.contains("| kyber | a 3.11, b 9.00 | b 9.00, a 3.11 | a on nvme 30.0, b on nas2020 9.00,"),
            "{bad}"
        );
    }

    #[test]
    fn the_default_disks_and_schedulers_are_those_of_the_program() {
        let text = fs::read_to_string(root_file("crates/lab/src/arena.rs")).unwrap();
        for name in CLASSES.iter().flat_map(|c| c.1).chain(&SCHEDULERS) {
            assert!(text.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
