//! Draws how many times better each candidate is than the default, with its 95 % interval: the figures behind
//! `advise`.

use crate::scale::{Scale, Unit};
use crate::svg::{Canvas, Frame, Picture, shortened};
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{Advice, EQUAL, Figures, factor};

const ROW: u32 = 40;
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

fn picture(
    advice: &Advice,
    order: &[usize],
    what: &str,
    of: &dyn Fn(usize) -> Option<Ratio>,
) -> Option<Picture> {
    let rows: Vec<(usize, Ratio)> =
        order.iter().filter(|&&c| c != 0).filter_map(|&c| Some((c, of(c)?))).collect();
    let low = rows.iter().map(|r| r.1.low).fold(0.8, f64::min).max(1.0 / LIMIT);
    let high = rows.iter().map(|r| r.1.high).fold(1.25, f64::max).min(LIMIT);
    let bottom = Scale::log_exact(low / 1.05, high * 1.05, Unit::Factor);
    let height = u32::try_from(rows.len()).ok().filter(|n| *n > 0)? * ROW;
    let frame = Frame { left: 8, ..Frame::axes(height) };
    let mut canvas = Canvas::new(frame, (1.0, 1.0));
    canvas.bar("u", (bottom.at(1.0 / EQUAL), bottom.at(EQUAL)), 0, height);
    canvas.bottom_axis(&bottom);
    let one = bottom.at(1.0);
    canvas.line("one", (one, 0.0), (one, f64::from(height)));
    for (i, (c, r)) in (0u32..).zip(&rows) {
        let y = i * ROW;
        canvas.text("ov", 0.0, y + 13, &shortened(&advice.candidates[*c].name(), 44));
        let middle = f64::from(y) + 26.0;
        canvas.line("w", (bottom.at(r.low), middle), (bottom.at(r.high), middle));
        canvas.dot(bottom.at(r.ratio), middle);
        canvas.text("v ov", 1.0, y + 13, &factor(r.ratio));
    }
    let each = rows.iter().map(|(c, r)| {
        let name = advice.candidates[*c].name();
        format!("{name} {} ({} to {})", factor(r.ratio), factor(r.low), factor(r.high))
    });
    let about = format!(
        "Factors against {} with intervals of 95 %; right of 1 is better, the grey band is no difference: {}.",
        advice.candidates[0].name(),
        each.collect::<Vec<_>>().join("; ")
    );
    let title = match what {
        "latency" => "Waiting less, as a factor".to_owned(),
        "score" => "The score, as a factor".to_owned(),
        "throughput" => "Throughput, as a factor".to_owned(),
        _ => "Fairness, as a factor".to_owned(),
    };
    let title = format!("{title} against {}", advice.candidates[0].name());
    Some(canvas.finish(format!("factor-{what}"), title, about))
}
