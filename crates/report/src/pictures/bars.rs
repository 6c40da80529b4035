//! Draws bars, with names above and numbers at the end, that are readable at 330 pixels as well as at 700.

use crate::svg::{Canvas, Frame, shortened};

/// A row: a name, a bar and a number.
pub(crate) struct Row {
    pub(crate) look: usize,
    pub(crate) sign: String,
    pub(crate) label: String,
    pub(crate) value: String,
    /// The length of the bar, as a part of the longest bar.
    pub(crate) part: f64,
    /// Where the bar's end may be, as parts of the longest bar.
    pub(crate) interval: Option<(f64, f64)>,
}

const ROW: u32 = 38;
/// The part of the width for bars; the rest is for numbers.
const WIDTH: f64 = 0.7;
/// The longest label, in characters, that fits 330 pixels.
const LABEL_MAX: usize = 50;

/// Draws rows from the top.
pub(crate) fn draw(rows: &[Row]) -> Canvas {
    let count = u32::try_from(rows.len()).unwrap_or(0);
    let mut canvas = Canvas::new(Frame::rows(count * ROW), (1.0, 1.0));
    for (i, row) in (0u32..).zip(rows) {
        let y = i * ROW;
        canvas.row_label(y + 10, row.look, &row.sign, &shortened(&row.label, LABEL_MAX));
        canvas.bar("u", (0.0, WIDTH), y + 24, 8);
        canvas.bar(&format!("f{}", crate::svg::class(row.look)), (0.0, row.part * WIDTH), y + 24, 8);
        if let Some((low, high)) = row.interval {
            let middle = f64::from(y + 28);
            canvas.line("w", (low * WIDTH, middle), (high * WIDTH, middle));
        }
        canvas.text("v", 1.0, y + 32, &row.value);
    }
    canvas
}
