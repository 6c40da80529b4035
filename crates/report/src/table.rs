//! Tables as a page shows them: headings, words on the left, numbers on the right, the best of a block marked.

use crate::svg::escape;
use std::fmt::Write as _;

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it is, in whole nanoseconds, bytes per second or pieces; for programs that read the page.
    pub value: Option<u64>,
    /// Whether it is the best of its block, and not all are alike.
    pub is_best: bool,
}

impl Cell {
    /// Words, or a number that is its own value.
    #[must_use]
    pub fn label(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A number as it is shown, and as it is.
    #[must_use]
    pub fn number(text: impl Into<String>, value: u64) -> Self {
        Self { text: text.into(), value: Some(value), is_best: false }
    }
}

/// Rows in blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What it is of.
    pub title: String,
    /// How many leading columns are words.
    pub words: usize,
    /// Headings.
    pub columns: Vec<String>,
    /// Rows; a block's are kept together.
    pub blocks: Vec<Vec<Vec<Cell>>>,
}

/// Words in a cell that stay on one line.
const LINE: usize = 30;

impl Table {
    /// A table of one block.
    #[must_use]
    pub fn new(title: impl Into<String>, words: usize, columns: &[&str], rows: Vec<Vec<Cell>>) -> Self {
        let columns = columns.iter().map(|&c| c.to_owned()).collect();
        Self { title: title.into(), words, columns, blocks: vec![rows] }
    }

    /// As HTML.
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
        // What is long may have several lines.
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
