//! Pictures of the screen, without a terminal.

use super::super::keys::Key;
use super::super::model::tests::{interval, model, row};
use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const LOOK: Look = Look { is_coloured: true, is_unicode: true };

fn picture(model: &mut Model, look: Look, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, look)).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buf: &Buffer) -> Vec<String> {
    let line = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect::<String>();
    (0..buf.area.height).map(|y| line(y).trim_end().to_owned()).collect()
}

fn press(model: &mut Model, keys: &str) {
    for c in keys.chars() {
        model.press(Key::Char(c));
    }
}

#[test]
fn a_wide_screen_has_everything() {
    let mut model = model();
    model.add(interval());
    let text = lines(&picture(&mut model, LOOK, 110, 9));
    assert_eq!(text[0], "bfq  depth 31  up 1h02m  0 at the disk, 0 waiting");
    assert_eq!(text[1], "1210 IOPS  read 70.0 MiB/s  write 0.00 MiB/s");
    assert_eq!(text[2], "by share  3 groups");
    for heading in ["group", "weight", "share", "MiB/s", "IOPS", "p50", "p99", "waits", "share so far"] {
        assert!(text[3].contains(heading), "{heading}: {}", text[3]);
    }
    let gold: Vec<&str> = text[4].split_whitespace().collect();
    let bar = "█".repeat(14) + "▍";
    assert_eq!(gold, ["gold", "100", "60%", &bar, "10.0", "300", "3.50ms", "7.00ms", "0", "▅▅"]);
    assert!(text[8].starts_with("h Help") && text[7].is_empty(), "{text:?}");
}

#[test]
fn forty_columns_keep_what_the_rows_are_ordered_by() {
    let mut model = model();
    for (key, heading, first) in [
        ('p', "share", "gold"),
        ('b', "MiB/s", "vms/web"),
        ('i', "IOPS", "tin"),
        ('l', "p99", "vms/web"),
        ('n', "share", "gold"),
    ] {
        model.press(Key::Char(key));
        let text = lines(&picture(&mut model, LOOK, 40, 8));
        assert!(text[3].contains(heading), "{key}: {}", text[3]);
        assert!(text[4].starts_with(first), "{key}: {}", text[4]);
    }
}

#[test]
fn no_size_and_no_state_is_too_small() {
    let mut long = model();
    long.add(Interval {
        rows: (0..300).map(|n| row(&format!("群组/{n}"), n, n, n, n)).collect(),
        doubt: Some("late".to_owned()),
        given_up: 3,
        ..interval()
    });
    long.press(Key::Scroll(1000));
    for width in 1..=60 {
        for height in 1..=12 {
            for keys in ["", "h", "/x", ""] {
                press(&mut long, keys);
                picture(&mut long, LOOK, width, height);
                long.press(Key::Escape);
            }
            picture(&mut Model::new(std::time::Duration::from_secs(1)), LOOK, width, height);
        }
    }
}

#[test]
fn scrolling_ends_at_the_last_row() {
    let mut model = model();
    model.press(Key::Scroll(1000));
    let text = lines(&picture(&mut model, LOOK, 60, 7));
    assert!(text[4].starts_with("tin") && text[5].starts_with("vms/web"), "{text:?}");
    model.press(Key::Scroll(-1));
    let text = lines(&picture(&mut model, LOOK, 60, 7));
    assert!(text[4].starts_with("gold"), "one key up moves at once: {text:?}");
}

#[test]
fn without_colours_and_unicode_there_are_none() {
    let mut model = model();
    model.add(Interval { doubt: Some("late".to_owned()), ..interval() });
    let plain = picture(&mut model, Look { is_coloured: false, is_unicode: false }, 110, 10);
    assert!(plain.content.iter().all(|c| c.fg == Color::Reset && c.bg == Color::Reset));
    assert!(lines(&plain).concat().is_ascii(), "{plain:?}");
    assert!(lines(&plain)[5].contains(&"#".repeat(14)) && lines(&plain)[5].ends_with("++"), "{plain:?}");
    let coloured = picture(&mut model, LOOK, 110, 10);
    assert!(coloured.content.iter().any(|c| c.fg == Color::Green), "bars are green");
    assert!(coloured.content.iter().any(|c| c.fg == Color::Red), "a warning is red");
}

#[test]
fn states_are_said() {
    let mut model = model();
    press(&mut model, "zr/go");
    let text = lines(&picture(&mut model, LOOK, 80, 8));
    assert_eq!(text[2], "by share, reversed  1 of 3 groups, filter: go  PAUSED");
    assert!(text[7].starts_with("Filter: go_"), "{text:?}");
    model.press(Key::Enter);
    model.press(Key::Help);
    let text = lines(&picture(&mut model, LOOK, 80, 24)).join("\n");
    for key in ["p         order by share", "q F10", "z Space", "/ F4", "A picture covers 1s."] {
        assert!(text.contains(key), "{key}: {text}");
    }
}

#[test]
fn times_since_the_start_have_two_units() {
    let seconds = [0, 59, 303, 3725, 86400 * 3 + 3600 * 4];
    assert_eq!(seconds.map(uptime), ["0s", "59s", "5m03s", "1h02m", "3d04h"]);
}
