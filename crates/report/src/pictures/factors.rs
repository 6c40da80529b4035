//! Draws how many times better each candidate is than the default, with its 95 % interval: the figures behind
//! `advise`.
//!
//! A row is two strips: above the name and the figure, on plain ground, and below them the interval, over the
//! grid, the line of 1 and the grey band of no difference. So no text lies over a mark, at any width.

use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, Frame, Picture, shortened};
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{Advice, EQUAL, Figures, factor};

const ROW: u32 = 38;
/// The height of the strip for text, within a row.
const TEXT: u32 = 18;
/// The longest name, in characters: beside *not known* it fits 326 pixels.
const NAME_MAX: usize = 38;
/// The largest factor on an axis; a wider axis shows nothing more.
const LIMIT: f64 = 1000.0;

/// Makes a picture for each figure and one for the score, with these candidates in this order.
#[must_use]
pub fn factors(advice: &Advice, order: &[usize]) -> Vec<Picture> {
    let score = |c: usize| advice.race.against(c, 0).score;
    let of = |i: usize| move |c: usize| advice.race.against(c, 0).figures[i];
    let mut all = vec![picture(advice, order, "score", &score)];
    all.extend((0..Figures::COUNT).map(|i| picture(advice, order, Figures::NAMES[i], &of(i))));
    all.into_iter().flatten().collect()
}

/// A candidate's name and factor.
type Row = (String, Ratio);

fn picture(
    advice: &Advice,
    order: &[usize],
    what: &str,
    of: &dyn Fn(usize) -> Option<Ratio>,
) -> Option<Picture> {
    let rows: Vec<Row> = order
        .iter()
        .filter(|&&c| c != 0)
        .filter_map(|&c| Some((advice.candidates[c].name(), of(c)?)))
        .collect();
    let canvas = draw(&rows)?;
    let base = advice.candidates[0].name();
    let each =
        rows.iter().map(|(name, r)| format!("{name} {} ({} to {})", shown(r), factor(r.low), factor(r.high)));
    let about = format!(
        "Factors against {base} with intervals of 95 %; right of 1 is better, the grey band is no difference: {}.",
        each.collect::<Vec<_>>().join("; ")
    );
    let title = match what {
        "latency" => "Waiting less, as a factor",
        "score" => "The score, as a factor",
        "throughput" => "Throughput, as a factor",
        _ => "Fairness, as a factor",
    };
    Some(canvas.finish(format!("factor-{what}"), format!("{title} against {base}"), about))
}

/// A factor in words, as the tables have it.
fn shown(r: &Ratio) -> String {
    if r.is_vague() { "not known".to_owned() } else { factor(r.ratio) }
}

/// Draws the rows; `None` if there are none.
fn draw(rows: &[Row]) -> Option<Canvas> {
    let low = rows.iter().map(|r| r.1.low).fold(0.8, f64::min).max(1.0 / LIMIT);
    let high = rows.iter().map(|r| r.1.high).fold(1.25, f64::max).min(LIMIT);
    let bottom = Scale::log_exact(low / 1.05, high * 1.05, Unit::Factor);
    let count = u32::try_from(rows.len()).ok().filter(|n| *n > 0)?;
    let frame = Frame { left: 8, ..Frame::axes(count * ROW) };
    let mut canvas = Canvas::new(frame, (1.0, 1.0));
    let strips: Vec<(u32, u32)> = (0..count).map(|i| (i * ROW + TEXT, (i + 1) * ROW)).collect();
    for (from, to) in &strips {
        canvas.bar("u", (bottom.at(1.0 / EQUAL), bottom.at(EQUAL)), *from, to - from);
    }
    canvas.bottom_axis_in(&bottom, &strips);
    let one = bottom.at(1.0);
    for ((from, to), (name, r)) in strips.iter().zip(rows) {
        canvas.line("one", (one, f64::from(*from)), (one, f64::from(*to)));
        let text = from - TEXT + 13;
        canvas.text("n", 0.0, text, &shortened(name, NAME_MAX));
        canvas.text("v", 1.0, text, &shown(r));
        let middle = f64::from(from + to) / 2.0;
        canvas.line("w", (bottom.at(r.low), middle), (bottom.at(r.high), middle));
        canvas.dot(bottom.at(r.ratio), middle);
    }
    Some(canvas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boxes;

    #[test]
    fn no_name_lies_over_a_mark_or_another_text() {
        let ratio = |ratio: f64| Ratio { count: 3, ratio, low: ratio * 0.6, high: ratio * 1.5 };
        let rows: Vec<Row> = [0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 7.0]
            .into_iter()
            .enumerate()
            .map(|(i, r)| (format!("bfq, strict_guarantees=1, timeout_sync={i}50ms"), ratio(r)))
            .chain([("vague".to_owned(), Ratio { count: 3, ratio: 3.0, low: 0.5, high: 30.0 })])
            .collect();
        let picture = draw(&rows).unwrap().finish("n".to_owned(), "t".to_owned(), "a".to_owned());
        for width in [326.0, 700.0] {
            let svg = picture.in_page("p");
            let texts = boxes::texts(&svg, width);
            assert_eq!(texts.iter().filter(|t| t.text.starts_with("bfq, ")).count(), 7, "{texts:?}");
            assert!(texts.iter().any(|t| t.text == "not known"), "{texts:?}");
            let marks = boxes::marks(&svg, width, &["u", "one", "w", "o", "g"]);
            assert!(marks.len() >= 4 * rows.len(), "{marks:?}");
            assert_eq!(boxes::over(&texts, &marks), Vec::<String>::new());
            assert_eq!(boxes::overlaps(&texts), Vec::<String>::new());
        }
    }
}
