//! The screen of `fairhead top`, drawn from its [`Model`].
//!
//! ```text
//! bfq  depth 31  up 1h02m  31 at the disk, 12 waiting
//! read 131 MiB/s  write 41.4 MiB/s  2773 IOPS
//! by share  2 groups
//! group  share                     MiB/s   IOPS     p50     p99  share so far, of 100%
//! gold     72%  ██████████████▍      131   2111   221us  3.93ms  ▅▅▆▆▆▆▆▆
//! tin      28%  █████▋              41.4    662   188us  48.2ms  ▃▃▂▂▂▂▂▂
//! h Help  / Filter  > Sort  z Pause  q Quit
//! ```
//!
//! Columns are taken in the order of their importance while they fit; the one that the rows are ordered by
//! always fits. Without Unicode, bars and histories are ASCII. Without colours, only bold and reverse are
//! used.

use fairhead_lab::output::text;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use super::model::{HISTORY, Model, ORDERS, Order};
use crate::out::Look;
use crate::output::{Interval, Row, mib, time};

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Share,
    Bar,
    Bandwidth,
    Iops,
    P50,
    P99,
    Waiting,
    Weight,
    Limits,
    History,
}

/// The columns from left to right: heading, width, importance (0 is taken first).
const COLUMNS: [(Column, &str, u16, u8); 10] = [
    (Column::Weight, "weight", 6, 8),
    (Column::Share, "share", 5, 0),
    (Column::Bar, "", 8, 3),
    (Column::Bandwidth, "MiB/s", 6, 2),
    (Column::Iops, "IOPS", 7, 4),
    (Column::P50, "p50", 6, 6),
    (Column::P99, "p99", 6, 1),
    (Column::Waiting, "waits", 6, 7),
    (Column::History, "", 12, 5),
    (Column::Limits, "limits", 12, 9),
];

/// The narrowest and the widest column of names.
const NAMES: (u16, u16) = (9, 32);

/// The widest bar and the widest history.
const BAR_MAX: u16 = 24;
const HISTORY_MAX: u16 = 60;

/// Draws the model. The scroll position is held within the rows that there are.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model, look: Look) {
    let area = frame.area();
    let mut pen = Pen { buf: frame.buffer_mut(), area, look };
    let Some(last) = &model.last else {
        pen.line(0, &format!("waiting for the first interval of {:?}", model.interval), Style::new());
        return pen.foot(model);
    };
    if model.is_help {
        return pen.help(model);
    }
    let mut y = pen.head(last);
    pen.line(y, &state(model), Style::new().add_modifier(Modifier::BOLD));
    y += 1;
    let room = usize::from(area.height.saturating_sub(y + 2));
    let rows = model.rows();
    let scroll = model.scroll.min(rows.len().saturating_sub(room.max(1)));
    let columns = columns(area.width, &rows, model.order);
    pen.headings(y, &columns, model);
    let top = scale(model, &rows);
    for (row, y) in rows.iter().skip(scroll).take(room).zip(y + 1..) {
        pen.row(y, row, &columns, model, top);
    }
    pen.foot(model);
    model.scroll = scroll;
}

/// What the rows are, in words.
fn state(model: &Model) -> String {
    let all = model.last.as_ref().map_or(0, |i| i.rows.len());
    let shown = model.rows().len();
    let mut text = format!("by {}{}", model.order.name(), if model.is_reversed { ", reversed" } else { "" });
    text += &match model.filter.as_str() {
        "" => format!("  {all} groups"),
        filter => format!("  {shown} of {all} groups, filter: {filter}"),
    };
    if model.is_paused {
        text += "  PAUSED";
    }
    text
}

/// The largest value of all histories on the screen: the full height. Shares are of 1000 parts.
fn scale(model: &Model, rows: &[&Row]) -> u64 {
    match model.order {
        Order::Share | Order::Name => 1000,
        _ => rows.iter().flat_map(|r| model.history(&r.group, HISTORY)).max().unwrap_or(0).max(1),
    }
}

/// Returns the columns that fit, from left to right: which, where it begins, and how wide it is. Names come
/// first, without an entry of their own.
fn columns(width: u16, rows: &[&Row], order: Order) -> Vec<(Column, u16, u16)> {
    let must = match order {
        Order::Share | Order::Name => Column::Share,
        Order::Bandwidth => Column::Bandwidth,
        Order::Iops => Column::Iops,
        Order::Latency => Column::P99,
    };
    let mut by_importance = COLUMNS;
    by_importance.sort_by_key(|c| if c.0 == must { 0 } else { c.3 + 1 });
    let mut left = width.saturating_sub(NAMES.0);
    let mut taken = Vec::new();
    for (column, _, wide, _) in by_importance {
        if column == Column::Limits && rows.iter().all(|r| r.limits.is_empty()) {
            continue;
        }
        if left > wide {
            left -= wide + 1;
            taken.push((column, wide));
        }
    }
    // What is left goes to the names as far as they need it, then to the bar, then to the history.
    let longest = rows.iter().map(|r| Span::raw(&r.group).width()).max().unwrap_or(0);
    let needed = u16::try_from(longest).unwrap_or(u16::MAX).min(NAMES.1).saturating_sub(NAMES.0);
    let names = NAMES.0 + needed.min(left);
    left -= needed.min(left);
    for (stretched, most) in [(Column::Bar, BAR_MAX), (Column::History, HISTORY_MAX)] {
        if let Some(column) = taken.iter_mut().find(|c| c.0 == stretched) {
            let more = left.min(most.saturating_sub(column.1));
            column.1 += more;
            left -= more;
        }
    }
    let mut x = names + 1;
    let in_order = COLUMNS.iter().filter_map(|c| taken.iter().find(|t| t.0 == c.0));
    let place = |&(column, wide): &(Column, u16)| {
        let at = x;
        x += wide + 1;
        (column, at, wide)
    };
    in_order.map(place).collect()
}

/// Draws on a buffer, in the style of the terminal. Nothing is drawn outside of the area.
struct Pen<'a> {
    buf: &'a mut Buffer,
    area: Rect,
    look: Look,
}

impl Pen<'_> {
    /// Writes a text at a place, at most `wide` columns of it.
    fn text(&mut self, x: u16, y: u16, wide: u16, text: &str, style: Style) {
        if x < self.area.width && y < self.area.height {
            let wide = usize::from(wide.min(self.area.width - x));
            self.buf.set_stringn(x, y, text, wide, style);
        }
    }

    fn line(&mut self, y: u16, text: &str, style: Style) {
        self.text(0, y, self.area.width, text, style);
    }

    fn colour(&self, colour: Color) -> Style {
        if self.look.is_coloured { Style::new().fg(colour) } else { Style::new() }
    }

    /// What goes for the whole disk. Returns the next free line.
    fn head(&mut self, i: &Interval) -> u16 {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let up = uptime(i.up.as_ns() / 1_000_000_000);
        let disk = format!(
            "{}  depth {}  up {up}  {} at the disk, {} waiting",
            i.scheduler, i.depth, i.at_disk, i.all.waiting
        );
        self.line(0, &disk, bold);
        let all = &i.all;
        let total =
            format!("{} IOPS  read {} MiB/s  write {} MiB/s", all.iops, mib(all.read), mib(all.write));
        self.line(1, &total, Style::new());
        let mut y = 2;
        let given_up = (i.given_up > 0).then(|| format!("{} requests given up", i.given_up));
        for wrong in given_up.into_iter().chain(i.doubt.as_ref().map(|d| format!("NOT to be trusted: {d}"))) {
            self.line(y, &wrong, self.colour(Color::Red).add_modifier(Modifier::BOLD));
            y += 1;
        }
        y
    }

    fn headings(&mut self, y: u16, columns: &[(Column, u16, u16)], model: &Model) {
        let style = Style::new().add_modifier(Modifier::REVERSED);
        self.line(y, &" ".repeat(usize::from(self.area.width)), style);
        self.text(0, y, NAMES.1, "group", style);
        for &(column, x, wide) in columns {
            let heading = COLUMNS.iter().find(|c| c.0 == column).map_or("", |c| c.1);
            match column {
                Column::History => {
                    let what = if model.order == Order::Name { Order::Share } else { model.order };
                    self.text(x, y, wide, &format!("{} so far", what.name()), style);
                }
                Column::Limits => self.text(x, y, wide, heading, style),
                _ => self.right(x, y, wide, heading, style),
            }
        }
    }

    fn right(&mut self, x: u16, y: u16, wide: u16, text: &str, style: Style) {
        let blank = wide.saturating_sub(u16::try_from(text.chars().count()).unwrap_or(wide));
        self.text(x + blank, y, wide - blank, text, style);
    }

    fn row(&mut self, y: u16, row: &Row, columns: &[(Column, u16, u16)], model: &Model, top: u64) {
        let names = columns.first().map_or(self.area.width, |c| c.1 - 1);
        self.text(0, y, names, &row.group, Style::new());
        for &(column, x, wide) in columns {
            let cell = match column {
                Column::Bar => {
                    let bar = bar(row.part.0, row.part.1, wide, self.look.is_unicode);
                    self.text(x, y, wide, &bar, self.colour(Color::Green));
                    continue;
                }
                Column::History => {
                    let past = model.history(&row.group, usize::from(wide));
                    let line = sparkline(&past, top, self.look.is_unicode);
                    self.text(x, y, wide, &line, self.colour(Color::Cyan));
                    continue;
                }
                Column::Limits => {
                    self.text(x, y, wide, &row.limits, Style::new());
                    continue;
                }
                Column::Share => row.percent().map_or_else(String::new, |s| format!("{s}%")),
                Column::Bandwidth => mib(row.bandwidth()),
                Column::Iops => row.iops.to_string(),
                Column::P50 => row.p50.map_or_else(String::new, time),
                Column::P99 => row.p99.map_or_else(String::new, time),
                Column::Waiting => row.waiting.to_string(),
                Column::Weight => match row.class.as_str() {
                    "" => row.weight.to_string(),
                    class => class.to_owned(),
                },
            };
            self.right(x, y, wide, &cell, Style::new());
        }
    }

    /// The keys, in the last line; or the filter while it is typed.
    fn foot(&mut self, model: &Model) {
        let y = self.area.height.saturating_sub(1);
        let style = Style::new().add_modifier(Modifier::REVERSED);
        let text = if model.is_typing {
            format!("Filter: {}_  Enter keeps it, Esc clears it", model.filter)
        } else {
            "h Help  / Filter  > Sort  z Pause  q Quit".to_owned()
        };
        let wide = usize::from(self.area.width);
        self.line(y, &format!("{text:wide$}"), style);
    }

    fn help(&mut self, model: &Model) {
        let mut lines = vec!["fairhead top: what each group of the disk gets".to_owned(), String::new()];
        lines.extend(ORDERS.map(|(key, _, name)| format!("{key}         order by {name}")));
        let more = [
            "> < F6    next or previous order",
            "r         reverse the order",
            "/ F4      show names with this text",
            "z Space   pause, go on",
            "Up Down   scroll; PgUp PgDn Home",
            "h ? F1    this help",
            "q F10     quit; also Ctrl-C",
            "",
            "share: of the disk's time, or bytes",
            "p50 p99: from arrival to answer",
            "A row has the groups inside it, too.",
        ];
        lines.extend(more.map(str::to_owned));
        lines.push(format!("A picture covers {:?}.", model.interval));
        for (line, y) in lines.iter().zip(0..self.area.height.saturating_sub(1)) {
            self.line(y, line, Style::new());
        }
        let y = self.area.height.saturating_sub(1);
        self.line(y, "any key: back", Style::new().add_modifier(Modifier::REVERSED));
    }
}

/// A time since the start in two units: `12s`, `5m03s`, `1h02m`, `3d04h`.
fn uptime(seconds: u64) -> String {
    let (m, h, d) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{m}m{:02}s", seconds % 60),
        3600..86400 => format!("{h}h{:02}m", m % 60),
        _ => format!("{d}d{:02}h", h % 24),
    }
}

/// A bar of a part of `all`, in eighths of a character.
fn bar(part: u64, all: u64, wide: u16, is_unicode: bool) -> String {
    let full = u128::from(wide) * 8;
    let eighths = (u128::from(part) * full).checked_div(u128::from(all)).unwrap_or(0).min(full);
    text::bar(usize::try_from(eighths).unwrap_or(0), is_unicode)
}

/// A character for each value, as high as its part of `top`; what is more than nothing is seen.
fn sparkline(values: &[u64], top: u64, is_unicode: bool) -> String {
    const STEPS: [&str; 2] = [" ▁▂▃▄▅▆▇█", " _.-=+*%#"];
    let steps: Vec<char> = STEPS[usize::from(!is_unicode)].chars().collect();
    let step = |&value: &u64| {
        let step = (u128::from(value) * 8).div_ceil(u128::from(top.max(1))).min(8);
        steps[usize::try_from(step).unwrap_or(0)]
    };
    values.iter().map(step).collect()
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
