//! Draws bars, with names above and numbers at the end, that are readable at 330 pixels as well as at 700.

use crate::runs::Runs;
use crate::svg::{Canvas, Frame, Picture, shortened};
use crate::table::{Cell, Table};
use crate::verdict::Judged;

/// A row: a name, a bar and a number.
pub(super) struct Row {
    pub(super) look: usize,
    pub(super) sign: String,
    pub(super) label: String,
    pub(super) value: String,
    /// The length of the bar, as a part of the longest bar.
    pub(super) part: f64,
}

const ROW: u32 = 38;
/// The part of the width for bars; the rest is for numbers.
const WIDTH: f64 = 0.7;
/// The longest label, in characters, that fits 330 pixels.
const LABEL_MAX: usize = 50;

/// Draws rows from the top.
pub(super) fn draw(rows: &[Row]) -> Canvas {
    let count = u32::try_from(rows.len()).unwrap_or(0);
    let mut canvas = Canvas::new(Frame::rows(count * ROW), (1.0, 1.0));
    for (i, row) in (0u32..).zip(rows) {
        let y = i * ROW;
        canvas.row_label(y + 10, row.look, &row.sign, &shortened(&row.label, LABEL_MAX));
        canvas.bar("u", (0.0, WIDTH), y + 24, 8);
        canvas.bar(&format!("f{}", crate::svg::class(row.look)), (0.0, row.part * WIDTH), y + 24, 8);
        canvas.text("v", 1.0, y + 32, &row.value);
    }
    canvas
}

/// Draws a figure of the verdict.
pub(super) fn judged(runs: &Runs<'_>, j: &Judged) -> Picture {
    let ranked = j.ranked();
    let longest = ranked.iter().map(|r| j.length(r.1)).fold(f64::MIN_POSITIVE, f64::max);
    let row = |&(run, value): &(usize, f64)| Row {
        look: runs.shown[run].look,
        sign: Runs::sign(run),
        label: runs.shown[run].name(),
        value: j.shown(value),
        part: j.length(value) / longest,
    };
    let rows: Vec<Row> = ranked.iter().map(row).collect();
    let subject = j.subject.strip_prefix("The ").unwrap_or(&j.subject).trim_end_matches(',');
    let mut title = subject.to_owned();
    if let Some(first) = title.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let better = if j.less_is_better { "shorter is better" } else { "longer is better" };
    let about = format!("A bar for each scheduler, the best first; {better}.");
    let cells = ranked.iter().map(|&(run, value)| {
        let number = Cell { is_best: j.is_best(value), ..Cell::number(j.shown(value), j.raw(value)) };
        vec![Cell::label(runs.shown[run].name()), number]
    });
    let table = Table::new(title.clone(), 1, &["scheduler", "value"], cells.collect());
    draw(&rows).finish(j.stem.to_owned(), format!("{title} ({better})"), about).with_table(table)
}
