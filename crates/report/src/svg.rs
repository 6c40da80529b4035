//! Pictures in SVG: text in fixed pixels, data in coordinates that stretch.
//!
//! ```text
//!        ┌ left ┐┌───────────── as wide as there is room ─────────────┐
//!   40 ─ · · · ·  ╭ inner svg: viewBox of the data, preserveAspectRatio="none" ╮    height pixels
//!   20 ─ · · · ·  ╰ lines keep their width (non-scaling-stroke)               ╯
//!                 0s          text at 25 %         10s                              below pixels
//! ```
//!
//! So the same SVG is right at 1280 and at 400 pixels: places are percentages, letters keep their size. In a
//! page the margins are those of the element, and content outside of it is visible (`overflow: visible`); in
//! a file an outer SVG of [`FILE_WIDTH`] pixels has the margins.
//!
//! All names come from files and pass through [`escape`]. Colours are classes: the styles of the page and of
//! the file define them for light and dark.

use crate::scale::Scale;
use crate::table::Table;
pub use crate::text::escape;
use std::fmt::Write as _;

/// Shortens a text to at most `most` characters, the last of which shows that there were more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Makes the stem of a file name: every other character than a letter or digit becomes `-`.
#[must_use]
pub fn file_stem(parts: &[&str]) -> String {
    let mut out = String::new();
    for c in parts.join("-").chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '.' => out.push(c.to_ascii_lowercase()),
            '+' => out.push('+'),
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    shortened_stem(out.trim_matches(['-', '.']))
}

fn shortened_stem(stem: &str) -> String {
    // A file name has at most 255 bytes. `Runs` adds numbers to names that become equal by this.
    stem.chars().take(120).collect()
}

/// The width of a picture in a file, in pixels.
pub const FILE_WIDTH: u32 = 720;

/// The number of looks: combinations of colour and dash. Every look from this one on is the same thin grey.
pub const LOOKS: usize = 8;

/// Returns the number of a look in the names of classes: its own, or that of grey.
pub(crate) fn class(look: usize) -> usize {
    look.min(LOOKS)
}

/// An entry of a key, which connects a look with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The index of the look, from 0; [`LOOKS`] and more are grey.
    pub look: usize,
    /// The letter or number in the badge.
    pub sign: String,
    /// The name of the client or scheduler.
    pub name: String,
}

/// The margins and the height of a picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Room for the labels of the left axis.
    pub(crate) left: u32,
    /// Room for the last label of the bottom axis.
    pub(crate) right: u32,
    /// Room above the drawing.
    pub(crate) above: u32,
    /// Height of the drawing.
    pub(crate) height: u32,
    /// Room for the labels of the bottom axis.
    pub(crate) below: u32,
}

impl Frame {
    /// Returns the frame of a picture with two axes.
    pub(crate) const fn axes(height: u32) -> Self {
        Self { left: 54, right: 16, above: 8, height, below: 26 }
    }

    /// Returns the frame of rows with a line of text each.
    pub(crate) const fn rows(height: u32) -> Self {
        Self { left: 0, right: 0, above: 2, height, below: 2 }
    }
}

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The stem of its file name, which is the same for the same job and schedulers.
    pub name: String,
    /// The title.
    pub title: String,
    /// A description in one or two sentences, for readers who cannot see the picture.
    pub about: String,
    /// The key. It is drawn in files only, because a page has one key for many pictures.
    pub keys: Vec<Key>,
    /// The numbers behind the picture.
    pub table: Option<Table>,
    /// The time that it shows, in nanoseconds from the start of the run, if it shows time.
    pub span: Option<u64>,
    /// Whether it needs the whole width of the page.
    pub is_wide: bool,
    frame: Frame,
    body: String,
}

/// A label in the right margin, for a curve that ends there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndLabel {
    pub(crate) look: usize,
    pub(crate) sign: String,
    /// The text that is shown, short enough for the margin.
    pub(crate) name: String,
    /// The whole text.
    pub(crate) full: String,
    /// Where the curve ends, in pixels from the top.
    pub(crate) at: f64,
}

/// The height of a label in a margin, in pixels.
pub(crate) const LABEL_HEIGHT: f64 = 15.0;

/// Returns for each label its place in pixels from the top: as near to the end of its curve as the others
/// allow, at least [`LABEL_HEIGHT`] apart, in the order of the curves' ends. `None` for what does not fit
/// into `height`: grey labels are left out first.
pub(crate) fn spread_labels(labels: &[EndLabel], height: f64) -> Vec<Option<f64>> {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by_key(|&i| class(labels[i].look) == LOOKS);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a height, positive")]
    order.truncate((height / LABEL_HEIGHT) as usize);
    order.sort_by(|&a, &b| labels[a].at.total_cmp(&labels[b].at));
    let half = LABEL_HEIGHT / 2.0;
    let mut places = vec![None; labels.len()];
    let mut lowest = half;
    for &i in &order {
        let y = labels[i].at.clamp(half, height - half).max(lowest);
        places[i] = Some(y);
        lowest = y + LABEL_HEIGHT;
    }
    let mut highest = height - half;
    for &i in order.iter().rev() {
        let y = places[i].unwrap_or(highest).min(highest);
        places[i] = Some(y);
        highest = y - LABEL_HEIGHT;
    }
    places
}

/// A picture while it is drawn.
#[derive(Debug)]
pub(crate) struct Canvas {
    frame: Frame,
    body: String,
    data: String,
    over: String,
    view: (f64, f64),
    span: Option<u64>,
}

/// Formats a number with at most one digit after the point.
pub(crate) fn short(v: f64) -> String {
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn percent(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

impl Canvas {
    /// Makes an empty canvas whose data have coordinates from 0 to `view`, with y downwards.
    pub(crate) fn new(frame: Frame, view: (f64, f64)) -> Self {
        Self { frame, body: String::new(), data: String::new(), over: String::new(), view, span: None }
    }

    /// Makes time the bottom axis, from the start of the run to this many nanoseconds.
    pub(crate) fn set_span(&mut self, ns: u64) {
        self.span = Some(ns);
    }

    /// Draws the left axis, with a horizontal line at each tick.
    pub(crate) fn left_axis(&mut self, scale: &Scale) {
        let height = f64::from(self.frame.height);
        for (value, label) in scale.ticks() {
            let y = short(height * (1.0 - scale.at(value)));
            let _ = write!(
                self.body,
                "<line class=\"g\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/><text class=\"y\" x=\"-6\" y=\"{y}\" dy=\".32em\">{}</text>",
                escape(&label)
            );
        }
    }

    /// Draws the bottom axis, with a vertical line at each tick.
    pub(crate) fn bottom_axis(&mut self, scale: &Scale) {
        self.bottom_axis_in(scale, &[(0, self.frame.height)]);
    }

    /// Draws the bottom axis, with a vertical line at each tick that is drawn within these strips only: from
    /// and to, in pixels from the top.
    pub(crate) fn bottom_axis_in(&mut self, scale: &Scale, strips: &[(u32, u32)]) {
        // A label in the middle below the last tick needs a margin.
        let has_room = self.frame.right >= 24;
        self.body.push_str("<g class=\"bx\">");
        for (value, label) in scale.ticks() {
            let at = scale.at(value);
            let anchor = if at > 0.97 && !has_room { " e" } else { "" };
            let x = percent(at);
            for (from, to) in strips {
                let from = if *from == 0 { String::new() } else { format!(" y1=\"{from}\"") };
                let _ = write!(self.body, "<line class=\"g\" x1=\"{x}\" x2=\"{x}\"{from} y2=\"{to}\"/>");
            }
            let y = self.frame.height + 17;
            let label = escape(&label);
            let _ = write!(self.body, "<text class=\"x{anchor}\" x=\"{x}\" y=\"{y}\">{label}</text>");
        }
        self.body.push_str("</g>");
    }

    /// Draws a label in the right margin at this many pixels from the top, and a thin line to it from where
    /// the curve ends. A pointer on the label shows the whole text.
    pub(crate) fn end_label(&mut self, label: &EndLabel, y: f64) {
        let EndLabel { look, sign, name, full, at } = label;
        let (from, to) = (short(*at), short(y));
        let _ = write!(
            self.over,
            "<svg x=\"100%\" class=\"b\"><path class=\"ld\" d=\"M0 {from}h2L7 {to}\"/></svg>\
             <svg class=\"b\" x=\"100%\" y=\"{to}\"><circle cx=\"14\" r=\"7\" class=\"f{}\"/><text x=\"14\" dy=\".35em\">{}</text></svg>\
             <text x=\"100%\" dx=\"25\" y=\"{to}\" dy=\".35em\">{}<title>{}</title></text>",
            class(*look),
            escape(sign),
            escape(name),
            escape(full)
        );
    }

    /// Draws a path in the coordinates of the data.
    pub(crate) fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            let _ = write!(self.data, "<path class=\"{class}\" d=\"{d}\"/>");
        }
    }

    /// Draws a letter or number in a disc, at these fractions of the width, and of the height from the top.
    pub(crate) fn badge(&mut self, look: usize, sign: &str, x: f64, y: f64) {
        let _ = write!(
            self.over,
            "<svg class=\"b\" data-x=\"{x:.4}\" x=\"{}\" y=\"{}\"><circle r=\"8\" class=\"f{}\"/><text dy=\".35em\">{}</text></svg>",
            percent(x),
            short(y * f64::from(self.frame.height)),
            class(look),
            escape(sign)
        );
    }

    /// Draws text at this many pixels from the top and this fraction of the width.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: u32, text: &str) {
        let _ = write!(
            self.over,
            "<text class=\"{class}\" x=\"{}\" y=\"{y}\">{}</text>",
            percent(x),
            escape(text)
        );
    }

    /// Draws a badge at the left, at this many pixels from the top, and a name behind it.
    pub(crate) fn row_label(&mut self, y: u32, look: usize, sign: &str, name: &str) {
        let _ = write!(
            self.over,
            "<svg class=\"b\" x=\"9\" y=\"{y}\"><circle r=\"8\" class=\"f{}\"/><text dy=\".35em\">{}</text></svg>\
             <text x=\"23\" y=\"{y}\" dy=\".35em\">{}</text>",
            class(look),
            escape(sign),
            escape(name)
        );
    }

    /// Draws text in the left margin; a pointer on it shows the whole text.
    pub(crate) fn margin_text(&mut self, y: f64, text: &str, most: usize) {
        let _ = write!(
            self.body,
            "<text class=\"y\" x=\"-6\" y=\"{}\" dy=\".32em\">{}<title>{}</title></text>",
            short(y),
            escape(&shortened(text, most)),
            escape(text)
        );
    }

    /// Draws a bar between two fractions of the width, at this many pixels from the top.
    pub(crate) fn bar(&mut self, class: &str, (from, to): (f64, f64), y: u32, height: u32) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" width=\"{}\" y=\"{y}\" height=\"{height}\"/>",
            percent(from),
            percent((to - from).max(0.0))
        );
    }

    /// Draws a line; x in fractions of the width, y in pixels from the top.
    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = write!(
            self.over,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            percent(x1),
            short(y1),
            percent(x2),
            short(y2)
        );
    }

    /// Draws a dot at this fraction of the width and this many pixels from the top.
    pub(crate) fn dot(&mut self, x: f64, y: f64) {
        let _ = write!(self.over, "<circle class=\"o\" r=\"4\" cx=\"{}\" cy=\"{}\"/>", percent(x), short(y));
    }

    /// Finishes the picture.
    pub(crate) fn finish(mut self, name: String, title: String, about: String) -> Picture {
        if !self.data.is_empty() {
            let _ = write!(
                self.body,
                "<svg class=\"d\" width=\"100%\" height=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">{}</svg>",
                self.frame.height,
                short(self.view.0),
                short(self.view.1),
                self.data
            );
        }
        self.body.push_str(&self.over);
        let (frame, body, span) = (self.frame, self.body, self.span);
        Picture { name, title, about, keys: Vec::new(), table: None, span, is_wide: false, frame, body }
    }
}

impl Picture {
    /// Adds a key.
    pub(crate) fn with_keys(self, keys: Vec<Key>) -> Self {
        Self { keys, ..self }
    }

    /// Adds the numbers behind the picture.
    pub(crate) fn with_table(self, table: Table) -> Self {
        Self { table: Some(table), ..self }
    }

    /// Makes the picture use the whole width.
    pub(crate) fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// Returns the picture as an element of a page, which has the style. `id` must be unique in the page.
    #[must_use]
    pub fn in_page(&self, id: &str) -> String {
        let Frame { left, right, above, height, below } = self.frame;
        let span = self.span.map_or_else(String::new, |ns| format!(" data-span=\"{ns}\""));
        format!(
            "<svg class=\"p\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\" data-name=\"{}\" data-box=\"{left} {right} {above} {below}\"\
             {span} height=\"{height}\" style=\"margin:{above}px {right}px {below}px {left}px;width:calc(100% - {}px)\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{}</svg>",
            escape(&self.name),
            left + right,
            escape(&self.title),
            escape(&self.about),
            self.body
        )
    }

    /// Returns the picture as an SVG file, with its key.
    #[must_use]
    pub fn to_file(&self) -> String {
        let Frame { left, right, above, height, below } = self.frame;
        let (key, key_height) = self.key_rows();
        let head = 30 + key_height;
        let (pad, width) = (12, FILE_WIDTH);
        let all = head + above + height + below + pad;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{all}\" viewBox=\"0 0 {width} {all}\" role=\"img\">\
             <title>{title}</title><desc>{about}</desc><style>{style}</style>{HATCH}\
             <rect class=\"bg\" width=\"100%\" height=\"100%\"/><text class=\"h\" x=\"{pad}\" y=\"20\">{shown}</text>{key}\
             <svg class=\"p\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{height}\" overflow=\"visible\">{body}</svg></svg>\n",
            title = escape(&self.title),
            about = escape(&self.about),
            style = file_style(),
            shown = escape(&shortened(&self.title, 90)),
            x = left + pad,
            y = head + above,
            w = width - left - right - 2 * pad,
            body = self.body
        )
    }

    /// Returns the key of a file, row by row, and its height.
    fn key_rows(&self) -> (String, u32) {
        const ROW: u32 = 22;
        let (mut out, mut x, mut y) = (String::new(), 20, 44);
        if self.keys.is_empty() {
            return (out, 0);
        }
        for k in &self.keys {
            let name = shortened(&k.name, 80);
            // A letter is about 7 pixels wide on average, at 13 pixels.
            let wide = 48 + 7 * u32::try_from(name.chars().count()).unwrap_or(u32::MAX / 8);
            if x > 20 && x + wide > FILE_WIDTH {
                (x, y) = (20, y + ROW);
            }
            let _ = write!(
                out,
                "<svg class=\"b\" x=\"{x}\" y=\"{y}\" overflow=\"visible\"><circle r=\"8\" class=\"f{l}\"/><text dy=\".35em\">{}</text></svg>\
                 <line class=\"l l{l}\" x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/><text x=\"{}\" y=\"{y}\" dy=\".35em\">{}</text>",
                escape(&k.sign),
                x + 11,
                x + 29,
                x + 33,
                escape(&name),
                l = class(k.look)
            );
            x += wide;
        }
        (out, y + ROW / 2 - 30)
    }
}

/// The pattern of idle time: horizontal lines, which look the same however wide they are drawn.
pub(crate) const HATCH: &str = "<defs><pattern id=\"hatch\" width=\"8\" height=\"4\" patternUnits=\"userSpaceOnUse\"><path class=\"ha\" d=\"M0 1h8\"/></pattern></defs>";

/// Returns the style of a file. Viewers other than browsers do not support variables, so their values are
/// written in their places, with those of the dark style apart.
pub(crate) fn file_style() -> String {
    let (light, rest) = STYLE.split_once('\n').expect("a line of light colours");
    let (dark, rest) = rest.split_once('\n').expect("a line of dark colours");
    let (_, rules) = rest.split_once('\n').expect("a line of colours on paper");
    let filled = |colours: &str, text: &str| {
        let inner = colours.rsplit('{').next().unwrap_or("").trim_end_matches('}');
        inner
            .split(';')
            .filter_map(|c| c.split_once(':'))
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("var({name})"), value))
    };
    let coloured: String =
        rules.lines().filter(|l| l.contains("var(")).map(|l| l.to_owned() + "\n").collect();
    let dark = filled(dark, &coloured);
    format!("{}@media (prefers-color-scheme:dark){{{dark}}}", filled(light, rules))
}

/// The style of colours and lines, for pages and files.
pub(crate) const STYLE: &str = include_str!("picture.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_all_their_colours() {
        let style = file_style();
        assert!(!style.contains("var(") && style.contains(".k0") == STYLE.contains(".k0"), "{style}");
        assert!(style.contains(".f1{fill:#c8441a}") && style.contains(".f1{fill:#f58a63}"), "light and dark");
    }

    #[test]
    fn stems_are_plain_and_texts_harmless() {
        assert_eq!(file_stem(&["position", "cfq+groups"]), "position-cfq+groups");
        assert_eq!(file_stem(&["latency", "../../etc/</x> y"]), "latency-..-..-etc-x-y");
        assert_eq!(file_stem(&["../..", "作业"]), "");
        assert_eq!(escape("<a b='\"'>&\u{1}"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;\u{fffd}");
        assert_eq!(shortened("abcdef", 4), "abc…");
    }

    #[test]
    fn places_are_fractions_and_letters_pixels() {
        let mut canvas = Canvas::new(Frame::axes(100), (10.0, 100.0));
        canvas.path("l l0", "M0 0h10");
        canvas.badge(9, "<", 0.25, 0.5);
        let picture = canvas.finish("n".to_owned(), "t < u".to_owned(), "a".to_owned());
        let page = picture.in_page("p1");
        assert!(
            page.contains("x=\"25%\" y=\"50\"") && page.contains("class=\"f8\"") && page.contains(">&lt;<"),
            "{page}"
        );
        assert!(page.contains("viewBox=\"0 0 10 100\" preserveAspectRatio=\"none\""), "{page}");
        assert!(picture.to_file().contains("<title>t &lt; u</title>"));
    }
}
