//! Tables for people: columns as wide as they need to be, the best of each block of rows in bold, and numbers
//! with three digits or so.

use fairhead_core::Duration;
pub use fairhead_report::words::{mib, time};

/// One cell: what is shown, and what it is compared by.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it is compared by.
    pub value: Option<u64>,
}

impl Cell {
    /// A word.
    pub fn label(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }
    /// A rate, in MiB/s; empty if it is 0.
    #[must_use]
    pub fn rate(bytes_per_s: u64) -> Self {
        if bytes_per_s == 0 {
            Self::default()
        } else {
            Self { text: mib(bytes_per_s), value: Some(bytes_per_s) }
        }
    }
    /// A number.
    #[must_use]
    pub fn count(n: u64) -> Self {
        Self { text: n.to_string(), value: Some(n) }
    }
    /// A time; empty if there is none.
    #[must_use]
    pub fn time(t: Option<Duration>) -> Self {
        t.map_or_else(Self::default, |t| Self { text: time(t), value: Some(t.as_ns()) })
    }
}

/// Which value of a column is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Best {
    /// The largest.
    Most,
    /// The smallest.
    Least,
    /// No value is better than another.
    None,
}

/// Rows in blocks; within a block they compete.
pub struct Table<'a> {
    /// Headings, and what wins.
    pub columns: Vec<(&'a str, Best)>,
    /// How many leading columns are words, and aligned to the left.
    pub words: usize,
    /// Rows in blocks.
    pub blocks: Vec<Vec<Vec<Cell>>>,
}

/// Between columns.
const GAP: &str = "  ";

impl Table<'_> {
    /// The table as text; bold where `coloured`.
    pub fn render(&self, coloured: bool) -> String {
        let rows = || self.blocks.iter().flatten();
        let used = self.used();
        let width = |c: usize| {
            let cells = rows().map(|r| r[c].text.chars().count());
            cells.chain([self.columns[c].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let pad = |c: usize, text: &str| {
            // A format's width ends at 65,535, and a long series does not.
            let blank = " ".repeat(widths[c].saturating_sub(text.chars().count()));
            if c < self.words { format!("{text}{blank}") } else { format!("{blank}{text}") }
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

    /// Returns the table for a page, under a title.
    pub fn for_page(&self, title: &str) -> fairhead_report::Table {
        let used = self.used();
        let row = |block: &[Vec<Cell>], i: usize| -> Vec<fairhead_report::Cell> {
            let cell = |&c: &usize| fairhead_report::Cell {
                text: block[i][c].text.clone(),
                value: block[i][c].value,
                is_best: self.is_best(block, i, c),
            };
            used.iter().map(cell).collect()
        };
        fairhead_report::Table {
            title: title.to_owned(),
            words: self.words,
            columns: used.iter().map(|&c| self.columns[c].0.to_owned()).collect(),
            blocks: self.blocks.iter().map(|b| (0..b.len()).map(|i| row(b, i)).collect()).collect(),
        }
    }

    /// Leaves out columns of these names, the first ones first, until a line has at most `width` characters.
    /// Returns the names of those that are left out.
    pub fn fit(&mut self, width: usize, names: &[&'static str]) -> Vec<&'static str> {
        let mut left = Vec::new();
        for &name in names {
            let widest = self.render(false).lines().map(|line| line.chars().count()).max().unwrap_or(0);
            if widest <= width {
                break;
            }
            let Some(at) = self.columns.iter().position(|c| c.0 == name) else { continue };
            if self.used().contains(&at) {
                left.push(name);
            }
            self.columns.remove(at);
            self.blocks.iter_mut().flatten().for_each(|row| drop(row.remove(at)));
        }
        left
    }

    /// The columns that are not empty, and words.
    fn used(&self) -> Vec<usize> {
        let is_used =
            |&c: &usize| c < self.words || self.blocks.iter().flatten().any(|r| !r[c].text.is_empty());
        (0..self.columns.len()).filter(is_used).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_cell_may_be_wider_than_a_format() {
        let long = "1.00 ".repeat(20_000);
        let table = Table {
            words: 2,
            columns: vec![("job", Best::None), ("series", Best::None)],
            blocks: vec![vec![vec![Cell::label("a"), Cell::label(long.as_str())]]],
        };
        assert_eq!(table.render(false), format!("job  series\na    {}\n", long.trim_end()));
    }

    #[test]
    fn columns_are_left_out_until_a_line_fits_and_no_more() {
        let cell = |text: &str| Cell::label(text);
        let table = || Table {
            words: 1,
            columns: ["job", "one", "two", "three"].map(|c| (c, Best::None)).to_vec(),
            blocks: vec![vec![vec![cell("a"), cell("1111111"), cell(""), cell("33333")]]],
        };
        let fit = |width| {
            let mut table = table();
            let left = table.fit(width, &["two", "three", "one"]);
            (left, table.render(false).lines().next().unwrap().to_owned())
        };
        assert_eq!(fit(19), (vec![], "job      one  three".to_owned()));
        // An empty column makes no line shorter, and is not named.
        assert_eq!(fit(18), (vec!["three"], "job      one".to_owned()));
        assert_eq!(fit(4), (vec!["three", "one"], "job".to_owned()));
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
