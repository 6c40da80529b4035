//! Small pictures of a few points: two panels side by side, each with its own scale from zero.
//!
//! ```text
//!     waits, ms              all together, MB/s
//!     |     .-o              | o--.
//!     | o-(o)                |    (o)--o          (o): the default
//!     +--------              +-----------
//!      1  8  64                1  8  64
//! ```
//!
//! Written by hand: this crate has no dependencies.

use std::fmt::Write as _;

/// A value of a tunable and what came of it.
pub(crate) struct Point {
    pub(crate) label: String,
    /// It is the default.
    pub(crate) marked: bool,
    pub(crate) values: [f64; 2],
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 190.0;
const PANEL: f64 = WIDTH / 2.0;

/// Two panels over the same values.
pub(crate) fn pair(name: &str, titles: [&str; 2], points: &[Point]) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n<title>{}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n",
        escaped(name)
    );
    for (i, title) in titles.iter().enumerate() {
        panel(&mut out, PANEL * i as f64, title, points, i);
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">{} (ring: the default)</text>\n</svg>",
        WIDTH / 2.0,
        HEIGHT - 4.0,
        escaped(name)
    );
    out
}

fn panel(out: &mut String, left: f64, title: &str, points: &[Point], i: usize) {
    let (x0, x1, y0, y1) = (left + 52.0, left + PANEL - 14.0, HEIGHT - 38.0, 26.0);
    let top = round_up(points.iter().map(|p| p.values[i]).fold(0.0, f64::max));
    let y = |v: f64| y0 - (y0 - y1) * v / top;
    let x = |k: usize| x0 + (x1 - x0) * (k as f64 + 0.5) / points.len().max(1) as f64;
    let _ = writeln!(
        out,
        "<text x=\"{x0:.0}\" y=\"14\" font-weight=\"bold\" fill=\"#333\">{}</text>",
        escaped(title)
    );
    for step in 0..=2 {
        let v = top * f64::from(step) / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{x0:.0} {0:.1}H{x1:.0}\" stroke=\"#ccc\"/><text x=\"{1:.0}\" y=\"{2:.1}\" text-anchor=\"end\" fill=\"#555\">{3}</text>",
            y(v),
            x0 - 5.0,
            y(v) + 4.0,
            short(v)
        );
    }
    let line: Vec<String> =
        points.iter().enumerate().map(|(k, p)| format!("{:.1} {:.1}", x(k), y(p.values[i]))).collect();
    let _ = writeln!(
        out,
        "<path d=\"M{}\" fill=\"none\" stroke=\"#0b62a8\" stroke-width=\"1.5\"/>",
        line.join("L")
    );
    for (k, p) in points.iter().enumerate() {
        let (cx, cy) = (x(k), y(p.values[i]));
        let _ = writeln!(out, "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3\" fill=\"#0b62a8\"/>");
        if p.marked {
            let _ = writeln!(
                out,
                "<circle cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"6\" fill=\"none\" stroke=\"#c33\" stroke-width=\"1.5\"/>"
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{cx:.1}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"9\" fill=\"#555\">{}</text>",
            y0 + 13.0,
            escaped(&p.label)
        );
    }
}

/// A bar: its name, its length, what is written at its end, and whether it stands out.
pub(crate) struct Bar {
    pub(crate) label: &'static str,
    pub(crate) value: f64,
    pub(crate) text: String,
    pub(crate) strong: bool,
}

/// Two panels of bars, each with its own scale from zero.
pub(crate) fn bars(name: &str, titles: [&str; 2], panels: &[Vec<Bar>; 2]) -> String {
    const ROW: f64 = 20.0;
    const TOP: f64 = 44.0;
    const LABELS: f64 = 96.0;
    let rows = panels.iter().map(Vec::len).max().unwrap_or(0);
    let height = TOP + ROW * rows as f64 + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"8\" y=\"15\" font-weight=\"bold\" fill=\"#333\">{0}</text>\n",
        escaped(name)
    );
    for (i, (title, bars)) in titles.iter().zip(panels).enumerate() {
        let left = PANEL * i as f64 + LABELS;
        let longest = bars.iter().map(|b| b.value).fold(f64::MIN_POSITIVE, f64::max);
        let _ =
            writeln!(out, "<text x=\"{left}\" y=\"{}\" fill=\"#333\">{}</text>", TOP - 10.0, escaped(title));
        for (k, bar) in bars.iter().enumerate() {
            let (y, long) = (TOP + ROW * k as f64, (PANEL - LABELS - 48.0) * bar.value / longest);
            let colour = if bar.strong { "#0b62a8" } else { "#9ab" };
            let _ = writeln!(
                out,
                "<text x=\"{0:.0}\" y=\"{1:.0}\" text-anchor=\"end\" fill=\"#333\">{2}</text>\
                 <rect x=\"{left:.0}\" y=\"{y:.0}\" width=\"{long:.1}\" height=\"{3:.0}\" fill=\"{colour}\"/>\
                 <text x=\"{4:.1}\" y=\"{1:.0}\" fill=\"#333\">{5}</text>",
                left - 6.0,
                y + 12.0,
                escaped(bar.label),
                ROW - 5.0,
                left + long + 4.0,
                escaped(&bar.text)
            );
        }
    }
    out + "</svg>\n"
}

/// A cell of a table of tiles: what it says, and a value from 0 to 1 that its colour follows from.
pub(crate) struct Tile {
    pub(crate) label: String,
    pub(crate) value: f64,
}

/// A table of coloured tiles, each with its label and its value in per cent.
pub(crate) fn tiles(name: &str, columns: &[&str], rows: &[(&str, Vec<Tile>)]) -> String {
    const LEFT: f64 = 92.0;
    const TOP: f64 = 42.0;
    const ROW: f64 = 34.0;
    let (width, height) = (720.0, TOP + ROW * rows.len() as f64 + 8.0);
    let column = (width - LEFT - 8.0) / columns.len().max(1) as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\" role=\"img\">\n<title>{0}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"{1}\" y=\"14\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"#333\">{0}</text>\n",
        escaped(name),
        width / 2.0
    );
    let text = |x: f64, y: f64, anchor: &str, words: &str| {
        let words = escaped(words);
        format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#333\">{words}</text>\n")
    };
    for (i, name) in columns.iter().enumerate() {
        out.push_str(&text(LEFT + column * (i as f64 + 0.5), TOP - 8.0, "middle", name));
    }
    for (r, (name, tiles)) in rows.iter().enumerate() {
        let y = TOP + ROW * r as f64;
        out.push_str(&text(LEFT - 8.0, y + ROW / 2.0 + 4.0, "end", name));
        for (i, tile) in tiles.iter().enumerate() {
            let x = LEFT + column * i as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                column - 3.0,
                ROW - 3.0,
                shade(tile.value)
            );
            let words = format!("{} {:.0} %", tile.label, tile.value * 100.0);
            out.push_str(&text(x + (column - 3.0) / 2.0, y + ROW / 2.0 + 3.0, "middle", &words));
        }
    }
    out + "</svg>\n"
}

/// From orange for a half or less to green for the best; light, so that black is read on it.
fn shade(value: f64) -> String {
    let part = ((value - 0.5) / 0.5).clamp(0.0, 1.0);
    let between = |from: f64, to: f64| (from + (to - from) * part).round();
    format!("rgb({},{},{})", between(246.0, 160.0), between(178.0, 218.0), between(120.0, 170.0))
}

/// The next of 1, 2, 2.5, 5 and 10 times a power of ten; 1 for nothing.
fn round_up(v: f64) -> f64 {
    if v <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(v.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|s| s * power >= v * 0.999_999).unwrap_or(10.0);
    step * power
}

fn short(v: f64) -> String {
    let text = if v >= 100.0 { format!("{v:.0}") } else { format!("{v:.3}") };
    match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!([0.0, 0.7, 1.0, 17.0, 260.0].map(round_up), [1.0, 1.0, 1.0, 20.0, 500.0]);
        assert_eq!([0.0, 0.25, 5.0, 250.0].map(short), ["0", "0.25", "5", "250"]);
    }

    #[test]
    fn tiles_have_their_words_and_colours() {
        let tile = |value| Tile { label: "none".to_owned(), value };
        let svg = tiles("t", &["a", "b"], &[("x<y", vec![tile(1.0), tile(0.25)])]);
        assert!(svg.contains("none 100 %") && svg.contains("none 25 %") && svg.contains("x&lt;y"), "{svg}");
        assert!(svg.contains(&shade(1.0)) && svg.contains(&shade(0.5)) && shade(0.5) == shade(0.1));
        assert!(svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_picture_has_each_point_twice_and_the_default_marked() {
        let point = |label: &str, marked| Point { label: label.to_owned(), marked, values: [1.0, 2.0] };
        let svg = pair("a<b", ["l", "r"], &[point("1", false), point("2", true)]);
        assert_eq!((svg.matches("r=\"3\"").count(), svg.matches("r=\"6\"").count()), (4, 2));
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
