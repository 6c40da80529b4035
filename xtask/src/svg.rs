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
    fn a_picture_has_each_point_twice_and_the_default_marked() {
        let point = |label: &str, marked| Point { label: label.to_owned(), marked, values: [1.0, 2.0] };
        let svg = pair("a<b", ["l", "r"], &[point("1", false), point("2", true)]);
        assert_eq!((svg.matches("r=\"3\"").count(), svg.matches("r=\"6\"").count()), (4, 2));
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
