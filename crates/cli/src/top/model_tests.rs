//! Keys and intervals go in, rows come out.

use super::*;
use fairhead_core::Duration as Time;

pub(in crate::top) fn row(group: &str, share: u64, mib: u64, iops: u64, p99_ms: u64) -> Row {
    Row {
        group: group.to_owned(),
        weight: 100,
        part: (share, 100),
        read: mib << 20,
        iops,
        p50: Some(Time::from_ns(p99_ms * 500_000)),
        p99: Some(Time::from_ns(p99_ms * 1_000_000)),
        ..Row::default()
    }
}

/// Each of three groups is the first in another order.
pub(in crate::top) fn interval() -> Interval {
    Interval {
        scheduler: "bfq".to_owned(),
        depth: 31,
        up: Time::from_ns(3_725_000_000_000),
        rows: vec![row("tin", 30, 20, 900, 5), row("gold", 60, 10, 300, 7), row("vms/web", 10, 40, 10, 90)],
        all: row("", 100, 70, 1210, 90),
        ..Interval::default()
    }
}

pub(in crate::top) fn model() -> Model {
    let mut model = Model::new(Duration::from_secs(1));
    model.add(interval());
    model
}

fn names(model: &Model) -> Vec<&str> {
    model.rows().iter().map(|r| r.group.as_str()).collect()
}

fn type_text(model: &mut Model, text: &str) {
    for c in text.chars() {
        assert_eq!(model.press(Key::Char(c)), Next::GoOn);
    }
}

#[test]
fn each_order_has_a_key_and_a_place_in_the_round() {
    let mut model = model();
    let orders = [
        ("p", ["gold", "tin", "vms/web"]),
        ("b", ["vms/web", "tin", "gold"]),
        ("i", ["tin", "gold", "vms/web"]),
        ("L", ["vms/web", "gold", "tin"]),
        ("n", ["gold", "tin", "vms/web"]),
    ];
    for (key, expected) in orders {
        type_text(&mut model, key);
        assert_eq!(names(&model), expected, "{key}");
    }
    type_text(&mut model, "r");
    assert_eq!(names(&model), ["vms/web", "tin", "gold"]);
    model.press(Key::NextOrder);
    assert_eq!(model.order, Order::Share, "around the end");
    type_text(&mut model, "<");
    assert_eq!(model.order, Order::Name);
}

#[test]
fn a_filter_takes_the_keys_until_it_is_done() {
    let mut model = model();
    type_text(&mut model, "/");
    type_text(&mut model, "WEqb");
    assert_eq!((names(&model).len(), model.order), (0, Order::Share), "q and b are text");
    model.press(Key::Erase);
    model.press(Key::Erase);
    assert_eq!(names(&model), ["vms/web"], "whatever its case");
    model.press(Key::Enter);
    type_text(&mut model, "b");
    assert_eq!((model.filter.as_str(), model.order), ("WE", Order::Bandwidth));
    model.press(Key::Escape);
    assert_eq!(names(&model).len(), 3);
    type_text(&mut model, "/");
    type_text(&mut model, &"x".repeat(1000));
    assert_eq!(model.filter.len(), FILTER, "bounded");
    assert_eq!(model.press(Key::Quit), Next::Quit, "Ctrl-C in every state");
}

#[test]
fn help_is_closed_by_any_key_and_pause_leaves_intervals_out() {
    let mut model = model();
    type_text(&mut model, "hq");
    assert!(!model.is_help, "q closed the help, and did not quit");
    assert_eq!(model.press(Key::Char('q')), Next::Quit);
    type_text(&mut model, "z");
    model.add(Interval::default());
    assert_eq!((names(&model).len(), model.history("tin", 9).len()), (3, 1));
    type_text(&mut model, " ");
    model.add(Interval::default());
    assert_eq!(names(&model).len(), 0);
}

#[test]
fn history_follows_the_order_is_bounded_and_ends_with_its_group() {
    let mut model = model();
    for n in 1..=300 {
        model.add(Interval { rows: vec![row("tin", n % 100, 2, n, 3)], ..Interval::default() });
    }
    assert_eq!(model.history("tin", 1000).len(), HISTORY);
    assert_eq!(model.history("tin", 2), [990, 0], "shares in thousandths, the last two");
    type_text(&mut model, "i");
    assert_eq!(model.history("tin", 2), [299, 300]);
    assert_eq!(model.history("gold", 9), [0; 0], "it is gone");
}
