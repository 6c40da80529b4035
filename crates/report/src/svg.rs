//! A picture: fixed pixels for what is written, stretched coordinates for what is drawn.
//!
//! ```text
//!        ┌ left ┐┌───────────── as wide as there is room ─────────────┐
//!   40 ─ · · · ·  ╭ inner svg: viewBox of the data, preserveAspectRatio="none" ╮    height pixels
//!   20 ─ · · · ·  ╰ lines keep their width (non-scaling-stroke)               ╯
//!                 0s          text at 25 %         10s                              below pixels
//! ```
//!
//! So one and the same SVG is right at 1280 and at 400 pixels: places are percentages, letters have their size. In a page the margins are those of
//! the element, and what is outside is shown (`overflow: visible`); in a file an outer SVG of [`FILE_WIDTH`] pixels gives them.
//!
//! All names come from files and get through [`escape`]. Colours are classes: the page's and the file's style say what they are in light and
//! in dark.

use crate::scale::Scale;
use crate::table::Table;
use std::fmt::Write as _;

/// Text that is safe as content and in attributes. What no XML document may hold is replaced.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// At most so many characters, the last of which says that there were more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// The stem of a file: what is no letter or digit becomes `-`.
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
    // Names of files have 255 bytes; who has more such names gets numbers from `Runs`.
    stem.chars().take(120).collect()
}

/// How wide a file's picture is.
pub const FILE_WIDTH: u32 = 720;

/// How many looks there are: colours and dashes.
pub const LOOKS: usize = 8;

/// An entry of the key: who is who.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Which look, from 0.
    pub look: usize,
    /// The letter or number in its badge.
    pub sign: String,
    /// Its name.
    pub name: String,
}

/// Margins and height, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// For the labels of the left axis.
    pub(crate) left: u32,
    /// So that the last label of the bottom axis has room.
    pub(crate) right: u32,
    /// Above.
    pub(crate) above: u32,
    /// Of what is drawn.
    pub(crate) height: u32,
    /// For the labels of the bottom axis.
    pub(crate) below: u32,
}

impl Frame {
    /// Of a picture with two axes.
    pub(crate) const fn axes(height: u32) -> Self {
        Self { left: 54, right: 16, above: 8, height, below: 26 }
    }

    /// Of rows with a line of text each.
    pub(crate) const fn rows(height: u32) -> Self {
        Self { left: 0, right: 0, above: 2, height, below: 2 }
    }
}

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The stem of its file, the same for the same job and schedulers.
    pub name: String,
    /// What it is of.
    pub title: String,
    /// What is to be seen, in a sentence or two, for who does not see it.
    pub about: String,
    /// Who is who; for files, since a page has one for many pictures.
    pub keys: Vec<Key>,
    /// The numbers behind it.
    pub table: Option<Table>,
    /// The time that it shows, in nanoseconds from the start of the run, if it shows time.
    pub span: Option<u64>,
    /// Whether it needs all the width that there is.
    pub is_wide: bool,
    frame: Frame,
    body: String,
}

/// A picture that is being drawn.
#[derive(Debug)]
pub(crate) struct Canvas {
    frame: Frame,
    body: String,
    data: String,
    over: String,
    view: (f64, f64),
    span: Option<u64>,
}

/// A number with one digit behind the point, if it has any.
pub(crate) fn short(v: f64) -> String {
    let text = format!("{v:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn percent(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

impl Canvas {
    /// An empty one, whose data have coordinates from 0 to these, y downwards.
    pub(crate) fn new(frame: Frame, view: (f64, f64)) -> Self {
        Self { frame, body: String::new(), data: String::new(), over: String::new(), view, span: None }
    }

    /// The bottom axis is time, from the start of the run to this, in nanoseconds.
    pub(crate) fn set_span(&mut self, ns: u64) {
        self.span = Some(ns);
    }

    /// The left axis, with a line across at each tick.
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

    /// The bottom axis, with a line up at each tick.
    pub(crate) fn bottom_axis(&mut self, scale: &Scale) {
        let height = self.frame.height;
        self.body.push_str("<g class=\"bx\">");
        for (value, label) in scale.ticks() {
            let at = scale.at(value);
            let anchor = if at > 0.97 { " e" } else { "" };
            let x = percent(at);
            let _ = write!(
                self.body,
                "<line class=\"g\" x1=\"{x}\" x2=\"{x}\" y2=\"{height}\"/><text class=\"x{anchor}\" x=\"{x}\" y=\"{}\">{}</text>",
                height + 17,
                escape(&label)
            );
        }
        self.body.push_str("</g>");
    }

    /// A path in the coordinates of the data.
    pub(crate) fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            let _ = write!(self.data, "<path class=\"{class}\" d=\"{d}\"/>");
        }
    }

    /// A letter or number in a disc, at these fractions of the width and of the height from the top.
    pub(crate) fn badge(&mut self, look: usize, sign: &str, x: f64, y: f64) {
        let _ = write!(
            self.over,
            "<svg class=\"b\" data-x=\"{x:.4}\" x=\"{}\" y=\"{}\"><circle r=\"8\" class=\"f{}\"/><text dy=\".35em\">{}</text></svg>",
            percent(x),
            short(y * f64::from(self.frame.height)),
            look % LOOKS,
            escape(sign)
        );
    }

    /// Text in pixels from the top, at this fraction of the width.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: u32, text: &str) {
        let _ = write!(
            self.over,
            "<text class=\"{class}\" x=\"{}\" y=\"{y}\">{}</text>",
            percent(x),
            escape(text)
        );
    }

    /// A badge at the left, in pixels from the top, and a name behind it.
    pub(crate) fn row_label(&mut self, y: u32, look: usize, sign: &str, name: &str) {
        let _ = write!(
            self.over,
            "<svg class=\"b\" x=\"9\" y=\"{y}\"><circle r=\"8\" class=\"f{}\"/><text dy=\".35em\">{}</text></svg>\
             <text x=\"23\" y=\"{y}\" dy=\".35em\">{}</text>",
            look % LOOKS,
            escape(sign),
            escape(name)
        );
    }

    /// Text in the left margin, the whole of which shows where a pointer rests.
    pub(crate) fn margin_text(&mut self, y: f64, text: &str, most: usize) {
        let _ = write!(
            self.body,
            "<text class=\"y\" x=\"-6\" y=\"{}\" dy=\".32em\">{}<title>{}</title></text>",
            short(y),
            escape(&shortened(text, most)),
            escape(text)
        );
    }

    /// A bar in fractions of the width, in pixels from the top.
    pub(crate) fn bar(&mut self, class: &str, (from, to): (f64, f64), y: u32, height: u32) {
        let _ = write!(
            self.body,
            "<rect class=\"{class}\" x=\"{}\" width=\"{}\" y=\"{y}\" height=\"{height}\"/>",
            percent(from),
            percent((to - from).max(0.0))
        );
    }

    /// A line in fractions of the width, in pixels from the top.
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

    /// A dot at this fraction of the width, in pixels from the top.
    pub(crate) fn dot(&mut self, x: f64, y: f64) {
        let _ = write!(self.over, "<circle class=\"o\" r=\"4\" cx=\"{}\" cy=\"{}\"/>", percent(x), short(y));
    }

    /// Done.
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
    /// With a key.
    pub(crate) fn with_keys(self, keys: Vec<Key>) -> Self {
        Self { keys, ..self }
    }

    /// With the numbers behind it.
    pub(crate) fn with_table(self, table: Table) -> Self {
        Self { table: Some(table), ..self }
    }

    /// Over the whole width.
    pub(crate) fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// As an element of a page; `id` is unique in it. Its style is the page's.
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

    /// As a file of its own, with its key.
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

    /// The key of a file, row by row, and its height.
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
                l = k.look % LOOKS
            );
            x += wide;
        }
        (out, y + ROW / 2 - 30)
    }
}

/// The pattern of what is idle: lines across, which look the same however wide they are drawn.
pub(crate) const HATCH: &str = "<defs><pattern id=\"hatch\" width=\"8\" height=\"4\" patternUnits=\"userSpaceOnUse\"><path class=\"ha\" d=\"M0 1h8\"/></pattern></defs>";

/// The style of a file: viewers other than browsers know no variables, so their values stand in their places, and those for the dark apart.
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

/// What colours and lines look like; in a page and in a file.
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
            page.contains("x=\"25%\" y=\"50\"") && page.contains("class=\"f1\"") && page.contains(">&lt;<"),
            "{page}"
        );
        assert!(page.contains("viewBox=\"0 0 10 100\" preserveAspectRatio=\"none\""), "{page}");
        assert!(picture.to_file().contains("<title>t &lt; u</title>"));
    }
}
