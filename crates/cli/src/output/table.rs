//! Tables for people: columns as wide as they need to be, the best of each block of rows in bold, and numbers with three
//! digits or so.

use fairhead_core::Duration;

/// One cell: what is shown, and what it is compared by.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    /// What is shown.
    pub(super) text: String,
    /// What it is compared by.
    pub(super) value: Option<u64>,
}

impl Cell {
    pub(super) fn label(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }
    pub(super) fn rate(bytes_per_s: u64) -> Self {
        if bytes_per_s == 0 {
            Self::default()
        } else {
            Self { text: mib(bytes_per_s), value: Some(bytes_per_s) }
        }
    }
    pub(super) fn count(n: u64) -> Self {
        Self { text: n.to_string(), value: Some(n) }
    }
    pub(super) fn time(t: Option<Duration>) -> Self {
        t.map_or_else(Self::default, |t| Self { text: time(t), value: Some(t.as_ns()) })
    }
}

/// Which value of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Best {
    Most,
    Least,
    None,
}

/// Rows in blocks; within a block they compete.
pub(super) struct Table<'a> {
    /// Headings, and what wins.
    pub(super) columns: Vec<(&'a str, Best)>,
    /// How many leading columns are words, and aligned to the left.
    pub(super) words: usize,
    /// Rows in blocks.
    pub(super) blocks: Vec<Vec<Vec<Cell>>>,
}

/// Between columns.
const GAP: &str = "  ";

impl Table<'_> {
    /// The table as text; bold where `coloured`.
    pub(super) fn render(&self, coloured: bool) -> String {
        let rows = || self.blocks.iter().flatten();
        let used: Vec<usize> = (0..self.columns.len())
            .filter(|&c| c < self.words || rows().any(|r| !r[c].text.is_empty()))
            .collect();
        let width = |c: usize| {
            let cells = rows().map(|r| r[c].text.chars().count());
            cells.chain([self.columns[c].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let pad = |c: usize, text: &str| {
            let w = widths[c];
            if c < self.words { format!("{text:w$}") } else { format!("{text:>w$}") }
        };
        let line = |cells: Vec<String>| cells.join(GAP).trim_end().to_owned() + "\n";
        let mut text = line(used.iter().map(|&c| pad(c, self.columns[c].0)).collect());
        for block in &self.blocks {
            for (i, row) in block.iter().enumerate() {
                let cell = |&c: &usize| {
                    let padded = pad(c, &row[c].text);
                    if coloured && self.is_best(block, i, c) {
                        format!("\x1b[1m{padded}\x1b[0m")
                    } else {
                        padded
                    }
                };
                text.push_str(&line(used.iter().map(cell).collect()));
            }
        }
        text
    }

    /// Whether the cell shows the best of its block, and not all show the same.
    fn is_best(&self, block: &[Vec<Cell>], row: usize, column: usize) -> bool {
        let cells = || block.iter().map(|r| &r[column]).filter(|c| c.value.is_some());
        let best = match self.columns[column].1 {
            Best::Most => cells().max_by_key(|c| c.value),
            Best::Least => cells().min_by_key(|c| c.value),
            Best::None => None,
        };
        let shown = &block[row][column].text;
        best.is_some_and(|b| b.text == *shown) && cells().any(|c| c.text != *shown)
    }
}

/// Bytes per second in MiB/s, with three digits.
pub(super) fn mib(bytes_per_s: u64) -> String {
    let hundredths = bytes_per_s.saturating_mul(100) >> 20;
    match hundredths {
        10_000.. => (hundredths / 100).to_string(),
        1_000.. => format!("{}.{}", hundredths / 100, hundredths % 100 / 10),
        _ => format!("{}.{:02}", hundredths / 100, hundredths % 100),
    }
}

/// A time with three digits or so: `830us`, `12.3ms`, `1.25s`.
pub(crate) fn time(t: Duration) -> String {
    let ns = t.as_ns();
    let (unit, name) = match ns {
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        _ => (1_000, "us"),
    };
    match ns / unit {
        whole @ 100.. => format!("{whole}{name}"),
        whole @ 10.. => format!("{whole}.{}{name}", ns % unit * 10 / unit),
        whole => format!("{whole}.{:02}{name}", ns % unit * 100 / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_so() {
        assert_eq!(
            [0, 5_000, 1 << 20, 25 << 19, 200 << 20].map(mib),
            ["0.00", "0.00", "1.00", "12.5", "200"]
        );
        assert_eq!(time(Duration::from_ns(830)), "0.83us");
        assert_eq!(time(Duration::from_us(12_340)), "12.3ms");
        assert_eq!(time(Duration::from_ms(1_257)), "1.25s");
        assert_eq!(time(Duration::from_secs(100)), "100s");
    }

    #[test]
    fn the_best_of_a_block_is_bold_unless_all_are_equal() {
        let row = |a: u64, b: u64| vec![Cell::label("x"), Cell::label("y"), Cell::count(a), Cell::count(b)];
        let table = Table {
            words: 2,
            columns: vec![
                ("job", Best::None),
                ("scheduler", Best::None),
                ("most", Best::Most),
                ("least", Best::Least),
            ],
            blocks: vec![vec![row(1, 7), row(2, 7)]],
        };
        assert_eq!(
            table.render(false),
            "job  scheduler  most  least\nx    y             1      7\nx    y             2      7\n"
        );
        assert_eq!(
            table.render(true),
            "job  scheduler  most  least\nx    y             1      7\nx    y          \x1b[1m   2\x1b[0m      7\n"
        );
    }

    #[test]
    fn empty_columns_are_left_out() {
        let table = Table {
            words: 2,
            columns: vec![("job", Best::None), ("scheduler", Best::None), ("none", Best::Most)],
            blocks: vec![vec![vec![Cell::label("a"), Cell::label("b"), Cell::rate(0)]]],
        };
        assert_eq!(table.render(false), "job  scheduler\na    b\n");
    }
}
