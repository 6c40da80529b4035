//! The page of a sweep: pictures of a grid of settings, and its table.
//!
//! ```text
//!   settings (disk, scheduler, values of tunables) with their figures
//!     ├─ one tunable varies   ─► lines: a figure over the values, a line for each scheduler
//!     ├─ two tunables vary    ─► heat maps: a cell for each pair of values, for each scheduler
//!     └─ any                  ─► front: throughput over the wait, a dot for each setting
//! ```
//!
//! The figures are means over the seeds. The wait is that of [`fairhead_sim::advise`], or the 99th percentile
//! of all calls where no job waits.
//!
//! **The front** has the settings that no other one beats in both figures: with less wait *and* no less
//! throughput, or more throughput and no more wait. They have a letter and a name; of those with the same
//! figures within 2 % the first stands for all.
//!
//! What this does not do: say what differs by more than chance, and draw three tunables or more at once: then
//! there are the front and the table.

use crate::page::{Shell, figure, keys_html};
use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, EndLabel, Frame, Key, Picture, class, file_stem, short, shortened, spread_labels};
use crate::table::Table;
use crate::text::escape;
use crate::words::{mib, time};
use fairhead_core::Duration;
use serde_json::Value;
use std::fmt::Write as _;

const HEIGHT: u32 = 220;
const MARGIN: u32 = 118;
const LABEL_MAX: usize = 12;
/// Settings whose figures are this near have one letter.
const NEAR: f64 = 1.02;
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
    /// The mean of the wait, in nanoseconds; `None` if the job has none.
    pub wait_ns: Option<f64>,
    /// The mean of what the disk moved, in bytes per second.
    pub bytes_per_s: Option<f64>,
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
}

/// A figure of a setting.
#[derive(Clone, Copy)]
struct Kind {
    stem: &'static str,
    title: &'static str,
    is_time: bool,
    of: fn(&Setting) -> Option<f64>,
}

const KINDS: [Kind; 2] = [
    Kind { stem: "wait", title: "Wait (less is better)", is_time: true, of: |s| s.wait_ns },
    Kind {
        stem: "throughput",
        title: "Throughput of the disk, MiB/s (more is better)",
        is_time: false,
        of: |s| s.bytes_per_s,
    },
];

impl Kind {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shown with three digits")]
    fn show(self, value: f64) -> String {
        let whole = value.round() as u64;
        if self.is_time { time(Duration::from_ns(whole)) } else { mib(whole) }
    }

    /// Returns an axis for these values: of times by factors, of rates from 0.
    fn scale(self, values: impl Iterator<Item = f64> + Clone) -> Scale {
        let high = values.clone().fold(0.0, f64::max);
        if !self.is_time {
            return Scale::up_to_a_tick(high.max(1.0), Unit::Rate);
        }
        let low = values.fold(f64::MAX, f64::min).clamp(1.0, high.max(1.0));
        let middle = (low * high.max(1.0)).sqrt();
        Scale::log((low / 1.2).min(middle / 2.0), (high * 1.2).max(middle * 2.0), Unit::Time)
    }
}

/// The content of the page of a sweep.
#[derive(Debug)]
pub struct Grid {
    /// The subject: the job.
    pub title: String,
    /// The meaning of the wait, in words.
    pub wait: String,
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
                ("front", "Front"),
                ("grid", "Grid"),
                ("figures", "Figures"),
                ("made", "How this was made"),
            ],
        };
        let (mut body, mut ids) = (String::new(), 0);
        let _ = write!(
            body,
            "<section id=\"front\"><h2>What is worth choosing from</h2><p class=\"lead\">{}</p><p>Throughput over the wait, a dot for each setting. \
             Further left and further up is better. Lettered settings are on the front: no other setting is better in one figure and at least as good in the other. \
             The wait: {}.</p>",
            escape(&self.lead()),
            escape(&self.wait)
        );
        for n in &self.notes {
            let _ = write!(body, "<p class=\"note\">{}</p>", escape(n));
        }
        for disk in self.disks() {
            let (picture, keys) = front(disk, &self.of_disk(disk));
            body.push_str(&keys_html(&keys));
            body.push_str("<div class=\"column\">");
            picture.iter().for_each(|p| figure(&mut body, p, &mut ids));
            body.push_str("</div>");
        }
        let (about, pictures) = self.of_grid();
        let _ = write!(
            body,
            "</section><section id=\"grid\"><h2>The grid</h2><p>{}</p><div class=\"grid\">",
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
        let fronts = self.disks().into_iter().filter_map(|disk| {
            let (picture, keys) = front(disk, &self.of_disk(disk));
            picture.map(|p| p.with_keys(keys))
        });
        fronts.chain(self.of_grid().1).collect()
    }

    fn disks(&self) -> Vec<&str> {
        distinct(self.settings.iter().map(|s| s.disk.as_str()))
    }

    fn of_disk(&self, disk: &str) -> Vec<&Setting> {
        self.settings.iter().filter(|s| s.disk == disk).collect()
    }

    fn lead(&self) -> String {
        let of = |disk: &&str| {
            let all = self.of_disk(disk);
            format!("{} of {} settings are on the front on {disk}", front_of(&all).len(), all.len())
        };
        match self.disks().as_slice() {
            [] => "No point is done.".to_owned(),
            disks => disks.iter().map(of).collect::<Vec<_>>().join("; ") + ".",
        }
    }

    /// Returns what the pictures of the grid show, and the pictures.
    fn of_grid(&self) -> (String, Vec<Picture>) {
        let (mut lines, mut maps, mut many) = (Vec::new(), Vec::new(), Vec::new());
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
                            lines.extend(KINDS.iter().filter_map(|k| line_picture(disk, one, &all, *k)));
                        }
                    }
                    [down, across] => {
                        maps.extend(KINDS.iter().filter_map(|k| heat_map(disk, (down, across), &mine, *k)))
                    }
                    more => many.push(format!("{scheduler} on {disk} varies {}", more.join(", "))),
                }
            }
        }
        let mut about = match (lines.is_empty(), maps.is_empty()) {
            (true, true) => "No scheduler has one or two tunables that vary, so there are only the front and the table.".to_owned(),
            (false, true) => "A figure over the values of the tunable.".to_owned(),
            (true, false) => "A cell for each pair of values; the darker, the better.".to_owned(),
            _ => "Lines where one tunable varies, and a cell for each pair of values where two do; the darker, the better.".to_owned(),
        };
        if !many.is_empty() {
            let _ = write!(about, " Three tunables or more are not drawn: {}.", many.join("; "));
        }
        lines.append(&mut maps);
        (about, lines)
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

/// Returns the indices of the settings that no other one beats, from the shortest wait on.
fn front_of(all: &[&Setting]) -> Vec<usize> {
    let of = |s: &Setting| Some((s.wait_ns?, s.bytes_per_s?));
    let known: Vec<(usize, f64, f64)> =
        all.iter().enumerate().filter_map(|(i, s)| of(s).map(|(w, b)| (i, w, b))).collect();
    let is_beaten = |&(_, w, b): &(usize, f64, f64)| {
        known.iter().any(|&(_, w2, b2)| w2 <= w && b2 >= b && (w2 < w || b2 > b))
    };
    let mut front: Vec<(usize, f64, f64)> = known.iter().filter(|p| !is_beaten(p)).copied().collect();
    front.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    front.into_iter().map(|p| p.0).collect()
}

/// Draws throughput over the wait, with letters for the front; the keys name them.
fn front(disk: &str, all: &[&Setting]) -> (Option<Picture>, Vec<Key>) {
    let [wait, rate] = KINDS;
    let known: Vec<(f64, f64)> = all.iter().filter_map(|s| Some((s.wait_ns?, s.bytes_per_s?))).collect();
    if known.is_empty() {
        return (None, Vec::new());
    }
    let bottom = wait.scale(known.iter().map(|k| k.0));
    let left = rate.scale(known.iter().map(|k| k.1));
    let height = f64::from(HEIGHT);
    let mut canvas = Canvas::new(Frame { above: 14, ..Frame::axes(HEIGHT) }, (1.0, 1.0));
    canvas.left_axis(&left);
    canvas.bottom_axis(&bottom);
    let front = front_of(all);
    for (_, s) in all.iter().enumerate().filter(|(i, _)| !front.contains(i)) {
        if let (Some(w), Some(b)) = (s.wait_ns, s.bytes_per_s) {
            canvas.small_dot(bottom.at(w), height * (1.0 - left.at(b)));
        }
    }
    let (mut keys, mut lettered): (Vec<Key>, Vec<(f64, f64)>) = (Vec::new(), Vec::new());
    for &i in &front {
        let s = all[i];
        let (Some(w), Some(b)) = (s.wait_ns, s.bytes_per_s) else { continue };
        let is_near =
            |&(w2, b2): &(f64, f64)| w <= w2 * NEAR && w2 <= w * NEAR && b <= b2 * NEAR && b2 <= b * NEAR;
        if let Some(known) = lettered.iter().position(is_near) {
            let _ = write!(keys[known].name, "; {}", s.name());
            continue;
        }
        let sign = crate::runs::Runs::sign(keys.len());
        canvas.badge(keys.len(), &sign, bottom.at(w), 1.0 - left.at(b));
        keys.push(Key { look: keys.len(), sign, name: s.name() });
        lettered.push((w, b));
    }
    let about = format!(
        "On the front, from the shortest wait on: {}.",
        front.iter().map(|&i| told(all[i])).collect::<Vec<_>>().join("; ")
    );
    let title = format!("Throughput (MiB/s) over the wait, on {disk}");
    (Some(canvas.finish(format!("front-{}", file_stem(&[disk])), title, about).wide()), keys)
}

fn told(s: &Setting) -> String {
    let [wait, rate] = KINDS;
    let shown = |k: Kind| (k.of)(s).map_or_else(String::new, |v| k.show(v));
    format!("{} with {} and {} MiB/s", s.name(), shown(wait), shown(rate))
}

/// Draws a figure over the values of one tunable, a line for each scheduler that varies no other.
fn line_picture(disk: &str, tunable: &str, all: &[&Setting], kind: Kind) -> Option<Picture> {
    let is_mine = |scheduler: &str| {
        let of: Vec<&Setting> = all.iter().filter(|s| s.scheduler == scheduler).copied().collect();
        varied(&of) == [tunable]
    };
    let schedulers: Vec<&str> =
        distinct(all.iter().map(|s| s.scheduler.as_str())).into_iter().filter(|s| is_mine(s)).collect();
    let mine: Vec<&Setting> =
        all.iter().filter(|s| schedulers.contains(&s.scheduler.as_str())).copied().collect();
    let values = distinct(mine.iter().filter_map(|s| s.value(tunable)));
    let known: Vec<f64> = mine.iter().filter_map(|s| (kind.of)(s)).collect();
    if known.is_empty() {
        return None;
    }
    let left = kind.scale(known.into_iter());
    let height = f64::from(HEIGHT);
    let place = |i: usize| (count(i) + 0.5) / count(values.len());
    let mut canvas = Canvas::new(Frame { right: MARGIN, ..Frame::axes(HEIGHT) }, (1000.0, height));
    canvas.left_axis(&left);
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
            let Some(v) = at.and_then(|s| (kind.of)(s)) else { continue };
            let y = height * (1.0 - left.at(v));
            let _ = write!(
                d,
                "{}{} {}",
                if d.is_empty() { 'M' } else { 'L' },
                short(place(i) * 1000.0),
                short(y)
            );
            canvas.dot(place(i), y);
            end = Some(y);
        }
        canvas.path(&format!("l l{}", class(look)), &d);
        if let Some(at) = end {
            let name = shortened(scheduler, LABEL_MAX);
            labels.push(EndLabel {
                look,
                sign: crate::runs::Runs::sign(look),
                name,
                full: (*scheduler).to_owned(),
                at,
            });
        }
    }
    for (label, y) in labels.iter().zip(spread_labels(&labels, height)) {
        if let Some(y) = y {
            canvas.end_label(label, y);
        }
    }
    let about = mine.iter().map(|s| told(s)).collect::<Vec<_>>().join("; ");
    let title = format!("{}, over {tunable}, on {disk}", kind.title);
    Some(canvas.finish(file_stem(&[kind.stem, tunable, disk]), title, about))
}

/// Draws a cell for each pair of values of two tunables.
fn heat_map(disk: &str, (down, across): (&str, &str), all: &[&Setting], kind: Kind) -> Option<Picture> {
    let [rows, columns] = [down, across].map(|t| distinct(all.iter().filter_map(|s| s.value(t))));
    let known: Vec<f64> = all.iter().filter_map(|s| (kind.of)(s)).collect();
    let (low, high) =
        (known.iter().copied().fold(f64::MAX, f64::min), known.iter().copied().fold(0.0, f64::max));
    if known.is_empty() {
        return None;
    }
    let height = u32::try_from(rows.len()).ok()? * 30;
    let mut canvas = Canvas::new(Frame { left: 86, above: 20, ..Frame::axes(height) }, (1.0, 1.0));
    canvas.margin_text(-12.0, down, 13);
    let every = columns.len().div_ceil(TEXT_MAX);
    for (r, row) in rows.iter().enumerate() {
        let y = u32::try_from(r).ok()? * 30;
        canvas.margin_text(f64::from(y) + 15.0, row, 12);
        for (c, column) in columns.iter().enumerate() {
            let at = all.iter().find(|s| s.value(down) == Some(row) && s.value(across) == Some(column));
            let Some(v) = at.and_then(|s| (kind.of)(s)) else { continue };
            let (from, to) = (count(c) / count(columns.len()), count(c + 1) / count(columns.len()));
            // By factors for both figures: what matters is how many times worse.
            let range = (high.max(1.0) / low.max(1.0)).ln();
            let part = if range > 0.0 { (v.max(1.0) / low.max(1.0)).ln() / range } else { 1.0 };
            let good = if kind.is_time && range > 0.0 { 1.0 - part } else { part };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 4")]
            let shade = (good * 4.0).round().clamp(0.0, 4.0) as u8;
            canvas.bar(&format!("f0 q q{shade}"), (from, to), y, 30);
            if columns.len() <= TEXT_MAX {
                canvas.text("c", f64::midpoint(from, to), y + 19, &kind.show(v));
            }
        }
    }
    for (c, column) in columns.iter().enumerate().filter(|(c, _)| c % every == 0) {
        canvas.text("x", (count(c) + 0.5) / count(columns.len()), height + 17, &shortened(column, 7));
    }
    let scheduler = &all.first()?.scheduler;
    let about = all.iter().map(|s| told(s)).collect::<Vec<_>>().join("; ");
    let title = format!("{}: {scheduler}, {down} by {across}, on {disk}", kind.title);
    Some(canvas.finish(file_stem(&[kind.stem, scheduler, down, across, disk]), title, about))
}

#[allow(clippy::cast_precision_loss, reason = "numbers of values and settings")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes;

    fn setting(scheduler: &str, values: &[(&str, &str)], wait_ms: f64, mib: f64) -> Setting {
        Setting {
            disk: "nas2020".to_owned(),
            scheduler: scheduler.to_owned(),
            values: values.iter().map(|(t, v)| ((*t).to_owned(), (*v).to_owned())).collect(),
            wait_ns: Some(wait_ms * 1e6),
            bytes_per_s: Some(mib * 1_048_576.0),
        }
    }

    fn grid(settings: Vec<Setting>) -> Grid {
        let table = Table::new("Settings", 2, &["disk", "scheduler"], Vec::new());
        Grid {
            title: "job".to_owned(),
            wait: "w".to_owned(),
            settings,
            table,
            notes: Vec::new(),
            made: Vec::new(),
            figures: Value::Null,
        }
    }

    #[test]
    fn the_front_is_what_nothing_beats() {
        let all = [
            setting("a", &[], 10.0, 50.0),
            setting("b", &[], 10.0, 40.0),
            setting("c", &[], 5.0, 20.0),
            setting("d", &[], 30.0, 90.0),
            setting("e", &[], 31.0, 90.0),
        ];
        let all: Vec<&Setting> = all.iter().collect();
        assert_eq!(front_of(&all), [2, 0, 3]);
        let (picture, keys) = front("nas2020", &all);
        assert_eq!(keys.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["c", "a", "d"]);
        let svg = picture.unwrap().in_page("p");
        assert_eq!(
            (svg.matches("class=\"b\"").count(), svg.matches("class=\"od\"").count()),
            (3, 2),
            "{svg}"
        );
    }

    #[test]
    fn one_tunable_makes_lines_and_two_make_a_map_whose_texts_do_not_overlap() {
        let values = ["0", "2ms", "4ms", "8ms", "16ms", "32ms"];
        let of = |s: &'static str, i: usize| setting(s, &[("slice_idle", values[i])], 10.0 + count(i), 50.0);
        let mut all: Vec<Setting> = (0..6).flat_map(|i| [of("cfq", i), of("bfq", i)]).collect();
        all.push(setting("none", &[], 90.0, 60.0));
        let pairs = values.iter().flat_map(|v| ["0", "1"].map(|w| (*v, w)));
        all.extend(pairs.enumerate().map(|(i, (v, w))| {
            setting("as", &[("antic_expire", v), ("low_latency", w)], 100.0 + count(i), 90.0)
        }));
        let pictures = grid(all).pictures();
        let names: Vec<&str> = pictures.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(
            names[1..],
            [
                "wait-slice-idle-nas2020",
                "throughput-slice-idle-nas2020",
                "wait-as-antic-expire-low-latency-nas2020",
                "throughput-as-antic-expire-low-latency-nas2020"
            ]
        );
        for (p, width) in pictures.iter().zip([306.0, 204.0, 204.0, 274.0, 274.0]) {
            let svg = p.in_page("p");
            assert_eq!(boxes::overlaps(&boxes::texts(&svg, width)), Vec::<String>::new(), "{}", p.name);
        }
        assert_eq!(pictures[3].in_page("p").matches("class=\"f0 q ").count(), 12);
        assert!(pictures[1].in_page("p").contains("class=\"l l1\""));
    }

    #[test]
    fn a_sweep_without_points_or_waits_is_a_page_all_the_same() {
        assert!(grid(Vec::new()).html().contains("No point is done."));
        let none = Setting { wait_ns: None, ..setting("cfq", &[("x", "<b>")], 1.0, 1.0) };
        let html = grid(vec![none]).html();
        assert!(html.contains("0 of 1 settings") && !html.contains("<b>"), "{html}");
    }
}
