//! Tables as a page shows them: headings, words on the left, numbers on the right, the best of each block
//! marked.

use crate::text::escape;
use std::fmt::Write as _;

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cell {
    /// The text that is shown.
    pub text: String,
    /// The exact value, in whole nanoseconds, bytes per second or pieces, for programs that read the page.
    /// `None` for words.
    pub value: Option<u64>,
    /// Whether it is the best of its block, and the block has different values.
    pub is_best: bool,
}

impl Cell {
    /// Makes a cell of words, or of a number that is its own value.
    #[must_use]
    pub fn label(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Makes a cell of a number: the shown text, and the exact value.
    #[must_use]
    pub fn number(text: impl Into<String>, value: u64) -> Self {
        Self { text: text.into(), value: Some(value), is_best: false }
    }
}

/// A table: rows in blocks.
///
/// ```
/// use fairhead_report::{Cell, Table};
/// let row = vec![Cell::label("cfq"), Cell::number("8.00ms", 8_000_000)];
/// let table = Table::new("latency", 1, &["scheduler", "mean"], vec![row]);
/// assert!(table.html().contains("data-value=\"8000000\""));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The number of leading columns that are words.
    pub words: usize,
    /// The headings of the columns.
    pub columns: Vec<String>,
    /// The rows, in blocks that are kept together.
    pub blocks: Vec<Vec<Vec<Cell>>>,
}

/// The length of words in a cell, in characters, up to which they stay on one line.
const LINE: usize = 30;

impl Table {
    /// Makes a table of one block.
    #[must_use]
    pub fn new(title: impl Into<String>, words: usize, columns: &[&str], rows: Vec<Vec<Cell>>) -> Self {
        let columns = columns.iter().map(|&c| c.to_owned()).collect();
        Self { title: title.into(), words, columns, blocks: vec![rows] }
    }

    /// Returns the table as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
            escape(&self.title)
        );
        for (i, c) in self.columns.iter().enumerate() {
            let class = if i < self.words { "" } else { " class=\"n\"" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(c));
        }
        out.push_str("</tr></thead>");
        for block in &self.blocks {
            out.push_str("<tbody>");
            for row in block {
                out.push_str("<tr>");
                row.iter().enumerate().for_each(|(i, cell)| self.cell(&mut out, i, cell));
                out.push_str("</tr>");
            }
            out.push_str("</tbody>");
        }
        out.push_str("</table></div>");
        out
    }

    fn cell(&self, out: &mut String, column: usize, cell: &Cell) {
        let text = escape(&cell.text);
        let value = cell.value.map_or_else(String::new, |v| format!(" data-value=\"{v}\""));
        // Longer text may have several lines.
        let wide = if cell.text.chars().count() > LINE { " class=\"w\"" } else { "" };
        let _ = match column {
            c if c + 1 == self.words => write!(out, "<th scope=\"row\"{wide}>{text}</th>"),
            c if c < self.words => write!(out, "<td{wide}>{text}</td>"),
            _ if cell.is_best => {
                write!(out, "<td class=\"n\"{value}><b title=\"the best\">{text}</b></td>")
            }
            _ => write!(out, "<td class=\"n\"{value}>{text}</td>"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_elements() {
        let cells = vec![Cell::label("</td><script>"), Cell::number("5ms", 5_000_000)];
        let html = Table::new("\"><b>", 1, &["<i>", "time"], vec![cells]).html();
        assert!(!html.contains("<script>") && !html.contains("<i>") && !html.contains("<b>"), "{html}");
        assert!(html.contains("<td class=\"n\" data-value=\"5000000\">5ms</td>"), "{html}");
    }
}
