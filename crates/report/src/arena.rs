//! The page of the arena: a heat map of regrets for each scheduler, loads by disks.
//!
//! A cell is the darker, the further the scheduler is from the best one there. Regrets of 1.05 and more are
//! also written, so the map can be read without its shades.
//!
//! What this does not do: draw what was not run; such cells are empty.

use crate::page::{Shell, figure};
use crate::svg::{Canvas, Frame, Picture, file_stem, shortened};
use crate::table::Table;
use crate::text::escape;
use serde_json::Value;
use std::fmt::Write as _;

/// The height of a row, in pixels.
const ROW: u32 = 18;
/// The width of the margin with the loads' names, in pixels, and how many letters fit.
const MARGIN: (u32, usize) = (124, 20);
/// The least regrets of the shades above the palest.
const SHADES: [f64; 4] = [1.05, 1.5, 3.0, 10.0];
/// How many letters all names of disks may have together.
const LETTERS: usize = 84;

/// A scheduler's regrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The name of the scheduler.
    pub scheduler: String,
    /// A row for each load, in it a regret for each disk; `None` where the cell was not run.
    pub regrets: Vec<Vec<Option<f64>>>,
}

/// The content of the page.
#[derive(Debug)]
pub struct Maps {
    /// The subject.
    pub title: String,
    /// The names of the loads.
    pub loads: Vec<String>,
    /// The names of the disks.
    pub disks: Vec<String>,
    /// The maps, of the best scheduler first.
    pub maps: Vec<Map>,
    /// A row for each scheduler.
    pub summary: Table,
    /// A row for each cell.
    pub cells: Table,
    /// Notes, such as that cells are missing.
    pub notes: Vec<String>,
    /// How the page was made: names and values.
    pub made: Vec<(&'static str, String)>,
    /// The figures, as `--output-format json` writes them.
    pub figures: Value,
}

impl Maps {
    /// Returns the page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let shell = Shell {
            title: &self.title,
            links: vec![
                ("summary", "Summary"),
                ("maps", "Maps"),
                ("cells", "Cells"),
                ("made", "How this was made"),
            ],
        };
        let (mut body, mut ids) = (String::new(), 0);
        let _ = write!(
            body,
            "<section id=\"summary\"><h2>How far each scheduler is from the best</h2>\
             <p class=\"lead\">{}</p><p>Regret is the satisfaction of the load under the best scheduler of a cell over \
             that under this one. 1.00 is the best; with 2.00 all jobs get half of what they could get.</p>",
            escape(&self.lead())
        );
        for note in &self.notes {
            let _ = write!(body, "<p class=\"note\">{}</p>", escape(note));
        }
        let _ = write!(
            body,
            "{}</section><section id=\"maps\"><h2>Regret by load and disk</h2><p>The darker, the further from the best: \
             shades begin at 1.05, 1.5, 3 and 10. Regrets below 1.05 are not written.</p><div class=\"column\">",
            self.summary.html()
        );
        self.pictures().iter().for_each(|p| figure(&mut body, p, &mut ids));
        let _ = write!(
            body,
            "</div></section><section id=\"cells\"><h2>Cells</h2>{}</section>",
            self.cells.html()
        );
        shell.html(&body, &self.made, &serde_json::json!({ "figures": self.figures }))
    }

    /// Returns the heat maps, for files.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        self.maps.iter().map(|map| self.picture(map)).collect()
    }

    fn lead(&self) -> String {
        let worst = |map: &Map| {
            let all = map.regrets.iter().flatten().flatten();
            all.copied().fold(1.0, f64::max)
        };
        match self.maps.as_slice() {
            [] => "No cell is done.".to_owned(),
            [first, ..] => format!(
                "{} is nearest to the best in the mean; its worst regret is {:.1}.",
                first.scheduler,
                worst(first)
            ),
        }
    }

    fn picture(&self, map: &Map) -> Picture {
        let rows = u32::try_from(self.loads.len()).unwrap_or(0);
        let mut canvas =
            Canvas::new(Frame { left: MARGIN.0, above: 8, ..Frame::axes(rows * ROW) }, (1.0, 1.0));
        let columns = count(self.disks.len());
        for (y, (load, regrets)) in (0..).map(|r| r * ROW).zip(self.loads.iter().zip(&map.regrets)) {
            canvas.margin_text(f64::from(y) + f64::from(ROW) / 2.0, load, MARGIN.1);
            for (c, regret) in regrets.iter().enumerate() {
                let Some(regret) = *regret else { continue };
                let shade = SHADES.iter().filter(|least| regret >= **least).count();
                let (from, to) = (count(c) / columns, count(c + 1) / columns);
                canvas.bar(&format!("f1 q q{shade}"), (from, to), y, ROW);
                if shade > 0 {
                    canvas.text("c", f64::midpoint(from, to), y + 13, &shown(regret));
                }
            }
        }
        let letters = (LETTERS / self.disks.len().max(1)).max(3);
        for (c, disk) in self.disks.iter().enumerate() {
            canvas.text("x", (count(c) + 0.5) / columns, rows * ROW + 17, &shortened(disk, letters));
        }
        let title = format!("Regret of {}", map.scheduler);
        canvas.finish(file_stem(&["regret", &map.scheduler]), title, self.about(map)).wide()
    }

    /// The cells in which it is worst, in words.
    fn about(&self, map: &Map) -> String {
        let mut all: Vec<(f64, &str, &str)> = Vec::new();
        for (load, regrets) in self.loads.iter().zip(&map.regrets) {
            let here = regrets.iter().zip(&self.disks);
            all.extend(here.filter_map(|(r, disk)| Some(((*r)?, load.as_str(), disk.as_str()))));
        }
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let worst = all.iter().take(3).filter(|c| c.0 >= SHADES[0]);
        let worst: Vec<String> =
            worst.map(|(r, load, disk)| format!("{load} on {disk} {}", shown(*r))).collect();
        if worst.is_empty() {
            "It is the best everywhere.".to_owned()
        } else {
            format!("Worst: {}.", worst.join("; "))
        }
    }
}

/// A regret with two digits; of thousands the thousands.
fn shown(regret: f64) -> String {
    match regret {
        r if r < 1.095 => format!("{r:.2}"),
        r if r < 9.95 => format!("{r:.1}"),
        r if r < 999.5 => format!("{r:.0}"),
        r => format!("{:.0}k", r / 1000.0),
    }
}

#[allow(clippy::cast_precision_loss, reason = "numbers of loads and disks")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes;

    fn maps(loads: usize, disks: usize, regret: impl Fn(usize, usize) -> Option<f64>) -> Maps {
        let row = |l: usize| (0..disks).map(|d| regret(l, d)).collect();
        Maps {
            title: "Arena".to_owned(),
            loads: (0..loads).map(|l| format!("start-10-together-{l}")).collect(),
            disks: (0..disks).map(|d| format!("dual_actuator{d}")).collect(),
            maps: vec![Map { scheduler: "bfq".to_owned(), regrets: (0..loads).map(row).collect() }],
            summary: Table::new("Regret", 1, &["scheduler"], Vec::new()),
            cells: Table::new("Cells", 2, &["load", "disk"], Vec::new()),
            notes: Vec::new(),
            made: Vec::new(),
            figures: Value::Null,
        }
    }

    #[test]
    fn shades_and_texts_say_the_regret_and_do_not_overlap() {
        let regrets = [1.0, 1.049, 1.05, 1.5, 3.0, 10.0, 27.4, 999.0, 1000.0, 4999.0, 9.96, 2.0];
        let page = maps(3, 12, |l, d| (l != 1).then_some(regrets[d]));
        let pictures = page.pictures();
        let svg = pictures[0].in_page("p");
        for (shade, expected) in [("q0", 2), ("q1", 1), ("q2", 2), ("q3", 2), ("q4", 5)] {
            // Two of three rows are done.
            assert_eq!(svg.matches(&format!("f1 q {shade}\"")).count(), expected * 2, "{shade}");
        }
        for text in [">1.05<", ">1.5<", ">27<", ">999<", ">1k<", ">5k<", ">10<"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(boxes::overlaps(&boxes::texts(&svg, 500.0)), Vec::<String>::new());
        assert_eq!(pictures[0].name, "regret-bfq");
        assert!(pictures[0].about.starts_with("Worst: start-10-together-0 on dual_actuator9 5k; "));
        assert!(page.html().contains("bfq is nearest to the best in the mean; its worst regret is 4999.0."));
    }

    #[test]
    fn an_arena_without_cells_is_a_page_all_the_same() {
        let none = Maps { maps: Vec::new(), ..maps(1, 1, |_, _| None) };
        assert!(none.html().contains("No cell is done."));
        let perfect = maps(1, 1, |_, _| Some(1.0));
        assert_eq!(perfect.pictures()[0].about, "It is the best everywhere.");
    }
}
