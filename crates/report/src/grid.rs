//! The page of a sweep: pictures of a grid of settings, and its table.
//!
//! ```text
//!   settings (disk, scheduler, values of tunables), each with what its jobs get of what they get alone
//!     ├─ any                  ─► bars, the best setting first, with intervals of 95 %
//!     ├─ one tunable varies   ─► lines: satisfaction over the values, a line for each scheduler
//!     └─ two tunables vary    ─► heat maps: a cell for each pair of values, for each scheduler
//! ```
//!
//! Each figure is a satisfaction ([`fairhead_sim::satisfaction`]), of all jobs together or of one, and the
//! mean over the seeds: so all pictures have one scale, from 0 to 1 or to the largest.
//!
//! What this does not do: draw three tunables or more at once: then there are the bars and the table.

use crate::page::{Shell, figure};
use crate::pictures::bars::{self, Row};
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, EndLabel, Frame, Picture, class, file_stem, short, shortened, spread_labels};
use crate::table::Table;
use crate::text::escape;
use fairhead_sim::advise::EQUAL;
use fairhead_sim::advise::statistics::Ratio;
use serde_json::Value;
use std::fmt::Write as _;

const HEIGHT: u32 = 220;
const MARGIN: u32 = 118;
const LABEL_MAX: usize = 12;
/// The most settings of a disk that have bars; the table has all.
const BARS_MAX: usize = 16;
/// The most columns of a heat map whose cells have text, at 376 pixels.
const TEXT_MAX: usize = 6;

/// A point of the grid: all seeds of a setting together.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name of the disk.
    pub disk: String,
    /// The name of the scheduler.
    pub scheduler: String,
    /// The tunables that are set, with their values.
    pub values: Vec<(String, String)>,
    /// How satisfied all jobs together are, then each job, with intervals.
    pub satisfied: Vec<Ratio>,
}

impl Setting {
    fn value(&self, tunable: &str) -> Option<&str> {
        self.values.iter().find(|v| v.0 == tunable).map(|v| v.1.as_str())
    }

    /// Returns the scheduler with its tunables.
    fn name(&self) -> String {
        let set: Vec<String> = self.values.iter().map(|(t, v)| format!("{t}={v}")).collect();
        [&[self.scheduler.clone()][..], &set].concat().join(", ")
    }

    /// Returns the name with a figure.
    fn told(&self, figure: usize) -> String {
        format!("{} {}", self.name(), shown(self.satisfied[figure]))
    }
}

/// A satisfaction, with its interval if it is known.
fn shown(of: Ratio) -> String {
    match of.high.is_finite() {
        true => format!("{:.2} ({:.2} to {:.2})", of.ratio, of.low, of.high),
        false => format!("{:.2}", of.ratio),
    }
}

/// The content of the page of a sweep.
#[derive(Debug)]
pub struct Grid {
    /// The subject: the job.
    pub title: String,
    /// The names of the jobs.
    pub jobs: Vec<String>,
    /// The settings, in the order of the table.
    pub settings: Vec<Setting>,
    /// The table, with a column for each tunable.
    pub table: Table,
    /// Notes, such as that the sweep was interrupted.
    pub notes: Vec<String>,
    /// How the page was made: names and values.
    pub made: Vec<(&'static str, String)>,
    /// The figures, as `--output-format json` writes them.
    pub figures: Value,
}

impl Grid {
    /// Returns the page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let shell = Shell {
            title: &self.title,
            links: vec![
                ("best", "Best"),
                ("grid", "Grid"),
                ("figures", "Figures"),
                ("made", "How this was made"),
            ],
        };
        let (mut body, mut ids) = (String::new(), 0);
        let _ = write!(
            body,
            "<section id=\"best\"><h2>Which setting is best</h2><p class=\"lead\">{}</p><p>How much of what it gets \
             alone each job gets, for all jobs together as a weighted geometric mean. Lines at the bars' ends are \
             intervals of 95 %; a single seed has none.</p>",
            escape(&self.lead())
        );
        for n in &self.notes {
            let _ = write!(body, "<p class=\"note\">{}</p>", escape(n));
        }
        body.push_str("<div class=\"column\">");
        self.ranked().iter().for_each(|p| figure(&mut body, p, &mut ids));
        let (about, pictures) = self.of_grid();
        let _ = write!(
            body,
            "</div></section><section id=\"grid\"><h2>The grid</h2><p>{}</p><div class=\"grid\">",
            escape(&about)
        );
        pictures.iter().for_each(|p| figure(&mut body, p, &mut ids));
        let _ = write!(
            body,
            "</div></section><section id=\"figures\"><h2>Figures</h2>{}</section>",
            self.table.html()
        );
        shell.html(&body, &self.made, &serde_json::json!({ "figures": self.figures }))
    }

    /// Returns all pictures of the page, for files.
    #[must_use]
    pub fn pictures(&self) -> Vec<Picture> {
        self.ranked().into_iter().chain(self.of_grid().1).collect()
    }

    fn disks(&self) -> Vec<&str> {
        distinct(self.settings.iter().map(|s| s.disk.as_str()))
    }

    fn of_disk(&self, disk: &str) -> Vec<&Setting> {
        self.settings.iter().filter(|s| s.disk == disk).collect()
    }

    /// The settings of a disk, the best first.
    fn best_first(&self, disk: &str) -> Vec<&Setting> {
        let mut all = self.of_disk(disk);
        all.sort_by(|a, b| b.satisfied[0].ratio.total_cmp(&a.satisfied[0].ratio));
        all
    }

    fn lead(&self) -> String {
        let of = |disk: &&str| {
            let all = self.best_first(disk);
            let best = all[0].satisfied[0].ratio;
            let near = all[1..].iter().filter(|s| s.satisfied[0].ratio * EQUAL >= best).count();
            let near = match near {
                0 => String::new(),
                1 => "; another is within 5 %".to_owned(),
                n => format!("; {n} others are within 5 %"),
            };
            format!("On {disk}, {} is best of {}{near}", all[0].told(0), all.len())
        };
        match self.disks().as_slice() {
            [] => "No point is done.".to_owned(),
            disks => disks.iter().map(of).collect::<Vec<_>>().join(". ") + ".",
        }
    }

    /// The largest satisfaction in any picture, at least 1: the end of all scales.
    fn most(&self) -> f64 {
        self.settings.iter().flat_map(|s| &s.satisfied).map(|of| of.ratio).fold(1.0, f64::max)
    }

    /// Returns the bars of each disk, the best setting first.
    fn ranked(&self) -> Vec<Picture> {
        let all = self.settings.iter().map(|s| s.satisfied[0].ratio).fold(1.0, f64::max);
        let picture = |disk: &str| {
            let best = self.best_first(disk);
            let schedulers = distinct(self.settings.iter().map(|s| s.scheduler.as_str()));
            let row = |s: &&Setting| {
                let of = s.satisfied[0];
                let interval = of.high.is_finite().then(|| (of.low / all, (of.high / all).min(1.0)));
                let look = schedulers.iter().position(|name| *name == s.scheduler).unwrap_or(0);
                let sign = crate::runs::Runs::sign(look);
                Row { look, sign, label: s.name(), value: shown(of), part: of.ratio / all, interval }
            };
            let rows: Vec<Row> = best.iter().take(BARS_MAX).map(row).collect();
            let left = best.len() - rows.len();
            let left =
                if left > 0 { format!(" (the best {BARS_MAX} of {})", best.len()) } else { String::new() };
            let title = format!("All jobs together, of alone, on {disk}{left}");
            let about = best.iter().take(BARS_MAX).map(|s| s.told(0)).collect::<Vec<_>>().join("; ");
            bars::draw(&rows).finish(file_stem(&["best", disk]), title, about).wide()
        };
        self.disks().into_iter().map(picture).collect()
    }

    /// The name of a figure: of all jobs together, or of one.
    fn figure(&self, figure: usize) -> &str {
        if figure == 0 { "all jobs" } else { &self.jobs[figure - 1] }
    }

    /// Returns what the pictures of the grid show, and the pictures.
    fn of_grid(&self) -> (String, Vec<Picture>) {
        let (mut lines, mut maps, mut many) = (Vec::new(), Vec::new(), Vec::new());
        let figures = 0..=self.jobs.len();
        for disk in self.disks() {
            let all = self.of_disk(disk);
            let mut drawn: Vec<&str> = Vec::new();
            for scheduler in distinct(all.iter().map(|s| s.scheduler.as_str())) {
                let mine: Vec<&Setting> = all.iter().filter(|s| s.scheduler == scheduler).copied().collect();
                match varied(&mine).as_slice() {
                    [] => {}
                    [one] => {
                        if !drawn.contains(one) {
                            drawn.push(one);
                            lines.extend(figures.clone().map(|f| self.line_picture(disk, one, &all, f)));
                        }
                    }
                    &[down, across] => maps.extend(
                        figures.clone().filter_map(|f| self.heat_map(disk, (down, across), &mine, f)),
                    ),
                    more => many.push(format!("{scheduler} on {disk} varies {}", more.join(", "))),
                }
            }
        }
        let mut about = match (lines.is_empty(), maps.is_empty()) {
            (true, true) => {
                "No scheduler has one or two tunables that vary, so there are only the bars and the table."
                    .to_owned()
            }
            (false, true) => "Satisfaction over the values of the tunable; all with one scale.".to_owned(),
            (true, false) => "A cell for each pair of values; the darker, the better.".to_owned(),
            _ => "Lines where one tunable varies, and a cell for each pair of values where two do; the darker, the better."
                .to_owned(),
        };
        if !many.is_empty() {
            let _ = write!(about, " Three tunables or more are not drawn: {}.", many.join("; "));
        }
        lines.append(&mut maps);
        (about, lines)
    }

    /// Draws a satisfaction over the values of one tunable, a line for each scheduler that varies no other.
    fn line_picture(&self, disk: &str, tunable: &str, all: &[&Setting], figure: usize) -> Picture {
        let is_mine = |scheduler: &str| {
            let of: Vec<&Setting> = all.iter().filter(|s| s.scheduler == scheduler).copied().collect();
            varied(&of) == [tunable]
        };
        let schedulers: Vec<&str> =
            distinct(all.iter().map(|s| s.scheduler.as_str())).into_iter().filter(|s| is_mine(s)).collect();
        let mine: Vec<&Setting> =
            all.iter().filter(|s| schedulers.contains(&s.scheduler.as_str())).copied().collect();
        let values = distinct(mine.iter().filter_map(|s| s.value(tunable)));
        let left = Scale::up_to_a_tick(self.most(), Unit::Share);
        let height = f64::from(HEIGHT);
        let place = |i: usize| (count(i) + 0.5) / count(values.len());
        let mut canvas =
            Canvas::new(Frame { right: MARGIN, below: 40, ..Frame::axes(HEIGHT) }, (1000.0, height));
        canvas.left_axis(&left);
        canvas.text("x", 0.5, HEIGHT + 33, tunable);
        // A label needs about 44 of at least 204 pixels.
        let every = values.len().div_ceil(4);
        for (i, value) in values.iter().enumerate() {
            canvas.line("g", (place(i), 0.0), (place(i), height));
            if i % every == 0 {
                canvas.text("x", place(i), HEIGHT + 17, &shortened(value, 8));
            }
        }
        let mut labels = Vec::new();
        for (look, scheduler) in schedulers.iter().enumerate() {
            let mut d = String::new();
            let mut end = None;
            for (i, value) in values.iter().enumerate() {
                let at = mine.iter().find(|s| s.scheduler == *scheduler && s.value(tunable) == Some(value));
                let Some(of) = at.map(|s| s.satisfied[figure]) else { continue };
                let y = |value: f64| height * (1.0 - left.at(value));
                let step = if d.is_empty() { 'M' } else { 'L' };
                let _ = write!(d, "{step}{} {}", short(place(i) * 1000.0), short(y(of.ratio)));
                if of.high.is_finite() {
                    canvas.line("w", (place(i), y(of.low)), (place(i), y(of.high)));
                }
                canvas.dot(place(i), y(of.ratio));
                end = Some(y(of.ratio));
            }
            canvas.path(&format!("l l{}", class(look)), &d);
            let label = |at| EndLabel {
                look,
                sign: crate::runs::Runs::sign(look),
                name: shortened(scheduler, LABEL_MAX),
                full: (*scheduler).to_owned(),
                at,
            };
            labels.extend(end.map(label));
        }
        for (label, y) in labels.iter().zip(spread_labels(&labels, height)) {
            if let Some(y) = y {
                canvas.end_label(label, y);
            }
        }
        let about = mine.iter().map(|s| s.told(figure)).collect::<Vec<_>>().join("; ");
        let name = self.figure(figure);
        let title = format!("Satisfaction of {name} (more is better), over {tunable}, on {disk}");
        canvas.finish(file_stem(&["of", name, tunable, disk]), title, about)
    }

    /// Draws a cell for each pair of values of two tunables.
    fn heat_map(
        &self,
        disk: &str,
        (down, across): (&str, &str),
        all: &[&Setting],
        figure: usize,
    ) -> Option<Picture> {
        let [rows, columns] = [down, across].map(|t| distinct(all.iter().filter_map(|s| s.value(t))));
        let of = |s: &Setting| s.satisfied[figure].ratio;
        let low = all.iter().map(|s| of(s)).fold(f64::MAX, f64::min);
        let high = all.iter().map(|s| of(s)).fold(0.0, f64::max);
        let height = u32::try_from(rows.len()).ok()? * 30;
        let mut canvas = Canvas::new(Frame { left: 86, above: 20, ..Frame::axes(height) }, (1.0, 1.0));
        canvas.margin_text(-12.0, down, 13);
        let every = columns.len().div_ceil(TEXT_MAX);
        for (r, row) in rows.iter().enumerate() {
            let y = u32::try_from(r).ok()? * 30;
            canvas.margin_text(f64::from(y) + 15.0, row, 12);
            for (c, column) in columns.iter().enumerate() {
                let at = all.iter().find(|s| s.value(down) == Some(row) && s.value(across) == Some(column));
                let Some(v) = at.map(|s| of(s)) else { continue };
                let (from, to) = (count(c) / count(columns.len()), count(c + 1) / count(columns.len()));
                // By factors: what matters is how many times worse. Within 5 % there is no difference.
                let range = (high / low).ln();
                let good = if high <= low * EQUAL { 1.0 } else { (v / low).ln() / range };
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 4")]
                let shade = (good * 4.0).round().clamp(0.0, 4.0) as u8;
                canvas.bar(&format!("f0 q q{shade}"), (from, to), y, 30);
                if columns.len() <= TEXT_MAX {
                    canvas.text("c", f64::midpoint(from, to), y + 19, &format!("{v:.2}"));
                }
            }
        }
        for (c, column) in columns.iter().enumerate().filter(|(c, _)| c % every == 0) {
            canvas.text("x", (count(c) + 0.5) / count(columns.len()), height + 17, &shortened(column, 7));
        }
        let scheduler = &all.first()?.scheduler;
        let about = all.iter().map(|s| s.told(figure)).collect::<Vec<_>>().join("; ");
        let name = self.figure(figure);
        let title = format!("Satisfaction of {name}: {scheduler}, {down} by {across}, on {disk}");
        Some(canvas.finish(file_stem(&["of", name, scheduler, down, across, disk]), title, about))
    }
}

/// Returns the different texts, in the order of their first occurrence.
fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut out = Vec::new();
    all.for_each(|t| {
        if !out.contains(&t) {
            out.push(t)
        }
    });
    out
}

/// Returns the tunables that have several values in these settings.
fn varied<'a>(all: &[&'a Setting]) -> Vec<&'a str> {
    let names = distinct(all.iter().flat_map(|s| s.values.iter().map(|v| v.0.as_str())));
    names.into_iter().filter(|t| distinct(all.iter().filter_map(|s| s.value(t))).len() > 1).collect()
}

#[allow(clippy::cast_precision_loss, reason = "numbers of values and settings")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes;

    fn setting(scheduler: &str, values: &[(&str, &str)], all: f64, job: f64) -> Setting {
        let of = |ratio: f64| Ratio { count: 3, ratio, low: ratio / 1.2, high: ratio * 1.2 };
        Setting {
            disk: "nas2020".to_owned(),
            scheduler: scheduler.to_owned(),
            values: values.iter().map(|(t, v)| ((*t).to_owned(), (*v).to_owned())).collect(),
            satisfied: vec![of(all), of(job)],
        }
    }

    fn grid(settings: Vec<Setting>) -> Grid {
        let table = Table::new("Settings", 2, &["disk", "scheduler"], Vec::new());
        Grid {
            title: "job".to_owned(),
            jobs: vec!["copy".to_owned()],
            settings,
            table,
            notes: Vec::new(),
            made: Vec::new(),
            figures: Value::Null,
        }
    }

    #[test]
    fn bars_have_the_best_first_and_intervals_as_the_table_has() {
        let mut all = vec![setting("a", &[], 0.4, 0.5), setting("b", &[], 0.8, 0.4)];
        all.push(setting("c", &[], 0.79, 0.2));
        let page = grid(all.clone());
        let svg = page.pictures()[0].in_page("p");
        let places =
            ["b 0.80 (0.67 to 0.96)", "c 0.79", "a 0.40"].map(|text| page.pictures()[0].about.find(text));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
        assert_eq!(svg.matches("<line class=\"w\"").count(), 3, "{svg}");
        assert!(
            page.html().contains("On nas2020, b 0.80 (0.67 to 0.96) is best of 3; another is within 5 %.")
        );
        // A single seed has no interval.
        for of in all.iter_mut().flat_map(|s| &mut s.satisfied) {
            (of.low, of.high) = (0.0, f64::INFINITY);
        }
        let svg = grid(all).pictures()[0].in_page("p");
        assert!(!svg.contains("<line class=\"w\"") && svg.contains(">0.80<"), "{svg}");
    }

    #[test]
    fn one_tunable_makes_lines_and_two_make_a_map_whose_texts_do_not_overlap() {
        let values = ["0", "2ms", "4ms", "8ms", "16ms", "32ms"];
        let of =
            |s: &'static str, i: usize| setting(s, &[("slice_idle", values[i])], 0.1 + 0.1 * count(i), 0.5);
        let mut all: Vec<Setting> = (0..6).flat_map(|i| [of("cfq", i), of("bfq", i)]).collect();
        all.push(setting("none", &[], 0.3, 1.4));
        let pairs = values.iter().flat_map(|v| ["0", "1"].map(|w| (*v, w)));
        all.extend(pairs.enumerate().map(|(i, (v, w))| {
            setting("as", &[("antic_expire", v), ("low_latency", w)], 0.2 + 0.01 * count(i), 0.9)
        }));
        let pictures = grid(all).pictures();
        let names: Vec<&str> = pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names[1..],
            [
                "of-all-jobs-slice-idle-nas2020",
                "of-copy-slice-idle-nas2020",
                "of-all-jobs-as-antic-expire-low-latency-nas2020",
                "of-copy-as-antic-expire-low-latency-nas2020"
            ]
        );
        for (p, width) in pictures.iter().zip([330.0, 204.0, 204.0, 274.0, 274.0]) {
            let svg = p.in_page("p");
            assert_eq!(boxes::overlaps(&boxes::texts(&svg, width)), Vec::<String>::new(), "{}", p.name);
        }
        assert_eq!(pictures[3].in_page("p").matches("class=\"f0 q ").count(), 12);
        let [of_all, of_copy] = [1, 2].map(|i: usize| pictures[i].in_page("p"));
        assert!(of_all.contains("class=\"l l1\"") && of_all.contains(">slice_idle<"), "{of_all}");
        // 1.4 is the largest of all: both axes end at 1.5.
        assert!(of_all.contains(">1.5<") && of_copy.contains(">1.5<"), "one scale");
        assert_eq!(of_all.matches("<line class=\"w\"").count(), 12);
    }

    #[test]
    fn a_sweep_without_points_is_a_page_all_the_same() {
        assert!(grid(Vec::new()).html().contains("No point is done."));
        let html = grid(vec![setting("cfq", &[("x", "<b>")], 1.0, 1.0)]).html();
        assert!(html.contains("is best of 1.") && !html.contains("<b>"), "{html}");
    }
}
