//! `--watch`: the disk time that control groups were charged, interval by interval, and the first group's
//! beside the others', as a script did that printed `io.disk_time` every two seconds.
//!
//! ```text
//! disk time of control groups per 2.00s, and the ratio of test1 to others
//!
//! cfq  until  test1  test2  to test2
//!      2.00s  805ms  301ms      2.67
//!      4.00s  1.20s  714ms      1.69
//! ```
//!
//! A group's time is that of everything inside it; the root's is its own tasks' and is left out if there is
//! none. The last interval may be shorter. Schedulers that charge no disk time have a line that says so.
//
//= io-controller-v9-2009, watch_cgroup.sh

use super::table::{Best, Cell, Table, time};
use super::{Report, csv::quoted};
use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_sim::Outcome;
use serde_json::{Value, json};

/// One group's series under one scheduler.
struct Column<'o> {
    path: &'o str,
    times: Vec<Duration>,
    /// Whether there is a sense in comparing the first group with it: neither is inside the other.
    is_rival: bool,
}

/// The series of all groups, in file order.
fn columns(o: &Outcome) -> Vec<Column<'_>> {
    let time_of = |row: &Vec<Duration>, group: usize| {
        let inside = (0..row.len()).filter(|&g| if group == 0 { g == 0 } else { o.is_inside(g, group) });
        inside.fold(Duration::ZERO, |sum, g| sum + row[g])
    };
    let column = |group: usize| Column {
        path: &o.groups[group].path,
        times: o.watch.iter().map(|row| time_of(row, group)).collect(),
        is_rival: group > 1 && !o.is_inside(group, 1),
    };
    let mut all: Vec<_> = (1..o.groups.len()).map(column).collect();
    let root = column(0);
    if root.times.iter().any(|t| !t.is_zero()) {
        all.push(Column { is_rival: true, ..root });
    }
    all
}

/// Whether the scheduler charged any group.
fn is_charged(o: &Outcome) -> bool {
    o.watch.iter().flatten().any(|t| !t.is_zero())
}

/// When each interval ended.
fn ends(o: &Outcome, interval: Duration) -> impl Iterator<Item = Duration> {
    let elapsed = o.elapsed;
    (1..=o.watch.len() as u64).map(move |n| (interval * n).min(elapsed))
}

/// `first / other` in hundredths.
fn ratio(first: Duration, other: Duration) -> Option<u64> {
    (first.as_ns() * 100).checked_div(other.as_ns())
}

/// As many groups as a terminal is wide.
const GROUPS_SHOWN: usize = 8;

pub(crate) fn human(report: &Report<'_>, interval: Duration, coloured: bool) -> String {
    let mut text = format!("disk time of control groups per {}", time(interval));
    if let Some(first) = report.outcomes.first().and_then(|o| o.groups.get(1)) {
        text.push_str(&format!(", and the ratio of {} to others", first.path));
    }
    text.push('\n');
    for o in report.outcomes {
        text.push('\n');
        if !is_charged(o) {
            text.push_str(&not_charged(&o.scheduler));
            continue;
        }
        let all = columns(o);
        let shown = &all[..all.len().min(GROUPS_SHOWN)];
        text.push_str(&table(o, interval, shown, coloured));
        if all.len() > shown.len() {
            text.push_str(&format!("and {} more groups in JSON and CSV\n", all.len() - shown.len()));
        }
    }
    text
}

/// In one line, what could be done about it.
fn not_charged(scheduler: &str) -> String {
    let with_groups = format!("{scheduler}+groups");
    match preset(&with_groups) {
        Some(p) => format!("{scheduler} charges no disk time; {} does\n", p.name),
        None => format!("{scheduler} charges no disk time\n"),
    }
}

fn table(o: &Outcome, interval: Duration, shown: &[Column<'_>], coloured: bool) -> String {
    let rivals = || shown.iter().filter(|c| c.is_rival);
    let ratios: Vec<String> = rivals().map(|c| format!("to {}", c.path)).collect();
    let heads = [o.scheduler.as_str(), "until"].into_iter().chain(shown.iter().map(|c| c.path));
    let heads = heads.chain(ratios.iter().map(String::as_str)).map(|h| (h, Best::None)).collect();
    let row = |(i, end): (usize, Duration)| {
        let mut cells = vec![Cell::default(), Cell::label(time(end))];
        cells.extend(shown.iter().map(|c| match c.times[i] {
            Duration::ZERO => Cell::label("0"),
            t => Cell::label(time(t)),
        }));
        cells.extend(rivals().map(|c| {
            let text = ratio(shown[0].times[i], c.times[i])
                .map_or_else(|| "--".to_owned(), |r| format!("{}.{:02}", r / 100, r % 100));
            Cell::label(text)
        }));
        cells
    };
    let blocks = vec![ends(o, interval).enumerate().map(row).collect()];
    Table { words: 1, columns: heads, blocks }.render(coloured)
}

/// Null for schedulers that charge none.
pub(crate) fn json(o: &Outcome, interval: Duration) -> Value {
    if !is_charged(o) {
        return Value::Null;
    }
    let all = columns(o);
    let point = |(i, end): (usize, Duration)| {
        let ratio = |c: &Column<'_>| c.is_rival.then(|| ratio(all[0].times[i], c.times[i])).flatten();
        json!({
            "end_ns": end.as_ns(),
            "disk_time_ns": all.iter().map(|c| c.times[i].as_ns()).collect::<Vec<_>>(),
            "first_over_this": all.iter().map(|c| ratio(c).map(hundredths)).collect::<Vec<_>>(),
        })
    };
    json!({
        "interval_ns": interval.as_ns(),
        "cgroups": all.iter().map(|c| c.path).collect::<Vec<_>>(),
        "points": ends(o, interval).enumerate().map(point).collect::<Vec<_>>(),
    })
}

fn hundredths(n: u64) -> f64 {
    super::json::float(n) / 100.0
}

/// A line per scheduler, group and interval.
pub(crate) fn csv(report: &Report<'_>, interval: Duration) -> String {
    let mut text = "scheduler,disk,seed,cgroup,start_ns,interval_ns,disk_time_ns\n".to_owned();
    for o in report.outcomes.iter().filter(|o| is_charged(o)) {
        for c in columns(o) {
            let names = [&o.scheduler, &report.plan.disk.0].map(|n| quoted(n)).join(",");
            let mut start = Duration::ZERO;
            for (end, disk_time) in ends(o, interval).zip(&c.times) {
                text.push_str(&format!(
                    "{names},{},{},{},{},{}\n",
                    report.plan.seed,
                    quoted(c.path),
                    start.as_ns(),
                    end.saturating_sub(start).as_ns(),
                    disk_time.as_ns()
                ));
                start = end;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_device::DeviceParams;
    use fairhead_sim::{Host, Scenario, job, simulate};

    /// A short run of these groups, with the disk time that they were charged made up.
    fn outcome(cgroups: &[&str], watch: &[&[u64]]) -> Outcome {
        let jobs: Vec<String> =
            cgroups.iter().map(|g| format!("[j]\nsize=4k\ndirect=1\ncgroup={g}\n")).collect();
        let outcome = simulate(&Scenario {
            jobs: job::parse(&jobs.concat(), "x").unwrap(),
            disk: DeviceParams::preset("sata2009").unwrap(),
            host: Host::of_2010(),
            scheduler: "cfq".into(),
            config: (preset("cfq").unwrap().config)(),
            seed: 1,
            interval: None,
            time_max: None,
            watch: None,
        });
        let rows = |row: &&[u64]| row.iter().map(|&ms| Duration::from_ms(ms)).collect();
        Outcome {
            elapsed: Duration::from_ms(3500),
            watch: watch.iter().map(rows).collect(),
            ..outcome.unwrap()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn text(o: &Outcome) -> String {
        table(o, SECOND, &columns(o), false)
    }

    #[test]
    fn the_first_group_is_put_beside_the_others() {
        //= io-controller-v9-2009, watch_cgroup.sh 2, rows 2, 3 and 20 type=test
        let o =
            outcome(&["test1", "test2", "test3"], &[&[0, 805, 301, 0], &[0, 1209, 714, 0], &[0, 0, 2124, 0]]);
        assert_eq!(
            text(&o),
            "cfq  until  test1  test2  test3  to test2  to test3\n\
             \x20    1.00s  805ms  301ms      0      2.67        --\n\
             \x20    2.00s  1.20s  714ms      0      1.69        --\n\
             \x20    3.00s      0  2.12s      0      0.00        --\n"
        );
    }

    #[test]
    fn a_group_has_what_is_inside_it_and_is_no_rival_of_that() {
        let o = outcome(&["a/x", "a", "b"], &[&[5, 10, 20, 40], &[0, 0, 10, 10], &[0; 4], &[0, 1, 1, 4]]);
        assert_eq!(
            text(&o),
            "cfq  until       a     a/x       b       /  to b  to /\n\
             \x20    1.00s  30.0ms  20.0ms  40.0ms  5.00ms  0.75  6.00\n\
             \x20    2.00s  10.0ms  10.0ms  10.0ms       0  1.00    --\n\
             \x20    3.00s       0       0       0       0    --    --\n\
             \x20    3.50s  2.00ms  1.00ms  4.00ms       0  0.50    --\n"
        );
        let points = &json(&o, SECOND)["points"];
        assert_eq!(
            points[0]["disk_time_ns"],
            serde_json::json!([30_000_000, 20_000_000, 40_000_000, 5_000_000])
        );
        assert_eq!(points[1]["first_over_this"], serde_json::json!([null, null, 1.0, null]));
        assert_eq!(points[3]["end_ns"], 3_500_000_000_u64, "the last one is shorter");
    }

    #[test]
    fn who_charges_nothing_says_so() {
        let o = outcome(&["a"], &[&[0, 0]]);
        assert!(!is_charged(&o) && json(&o, SECOND).is_null());
        assert_eq!(not_charged("kyber"), "kyber charges no disk time\n");
    }
}
