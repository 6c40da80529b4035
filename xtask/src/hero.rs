//! `docs/pictures/start.svg`: the first picture of the README. A program starts beside ten readers, under
//! deadline and under BFQ, side by side and moving.
//!
//! ```text
//!   fairhead run app-start --requests CSV ─► where the head is, how far the program is ─► SVG that moves
//! ```
//!
//! In each lane a dot is the head over the disk's sectors, and a bar fills with the reads of the program.
//! Both lanes run at the same speed, so that one is done while the other has hardly begun. What is drawn
//! without the movement is the end: readers that do not animate SVG show the two times.
//!
//! What this does not do: draw every request. A lane has [`SAMPLES`] positions of the head.

use crate::docs::root_file;
use crate::shell::{capture, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const WIDTH: f64 = 720.0;
const LANE: f64 = 104.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 110.0;

/// The positions of the head in a lane.
const SAMPLES: usize = 160;

/// The length of the picture's loop, in seconds; the last part of it shows the end.
const LOOP_S: f64 = 9.0;
const MOVING: f64 = 0.85;

/// What a lane shows: times in seconds from the program's start, positions and progress from 0 to 1.
struct Lane {
    name: &'static str,
    head: Vec<(f64, f64)>,
    done: Vec<(f64, f64)>,
    took_s: f64,
}

/// Makes the picture.
pub(crate) fn make(program: &Path, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let lanes = [lane(program, "deadline")?, lane(program, "bfq")?];
    files.insert(root_file("docs/pictures/start.svg"), picture(&lanes));
    Ok(())
}

/// The columns of the recorded requests that are used here.
struct Columns {
    client: usize,
    sector: usize,
    begun: usize,
    finished: usize,
    completed: usize,
}

fn lane(program: &Path, sched: &'static str) -> Result<Lane, String> {
    let mut run = Command::new(program);
    run.args(["run", "app-start", "--disk", "nas2020", "--sched", sched, "--seed", "1", "--requests", "-"]);
    let output = capture(run.current_dir(root()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let header = lines.next().ok_or("no requests were recorded")?;
    let at = |name: &str| header.iter().position(|h| *h == name).ok_or(format!("no column {name}"));
    let columns = Columns {
        client: at("client")?,
        sector: at("sector")?,
        begun: at("begun_ns")?,
        finished: at("finished_ns")?,
        completed: at("completed_ns")?,
    };
    read(sched, &columns, &lines.collect::<Vec<_>>())
}

fn read(name: &'static str, columns: &Columns, rows: &[Vec<&str>]) -> Result<Lane, String> {
    let number = |row: &Vec<&str>, column: usize| row.get(column).and_then(|v| v.parse::<f64>().ok());
    let of_program = |row: &&Vec<&str>| row.get(columns.client).is_some_and(|c| c.starts_with("application"));
    let starts = rows.iter().filter(of_program).filter_map(|r| number(r, columns.begun));
    let start = starts.fold(f64::INFINITY, f64::min);
    let mut ends: Vec<f64> =
        rows.iter().filter(of_program).filter_map(|r| number(r, columns.completed)).collect();
    ends.sort_by(f64::total_cmp);
    let end = *ends.last().ok_or(format!("{name}: the program has no requests"))?;
    let total = ends.len() as f64;
    let done = ends.iter().enumerate().map(|(n, t)| ((t - start) / 1e9, (n + 1) as f64 / total)).collect();
    let last = rows.iter().filter_map(|r| number(r, columns.sector)).fold(1.0, f64::max);
    let head = rows
        .iter()
        .filter_map(|r| Some((number(r, columns.finished)?, number(r, columns.sector)?)))
        .filter(|(t, _)| (start..=end).contains(t))
        .map(|(t, sector)| ((t - start) / 1e9, sector / last))
        .collect();
    Ok(Lane { name, head, done, took_s: (end - start) / 1e9 })
}

/// At most `most` of the points, evenly chosen, with the last.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(most).max(1);
    let mut few: Vec<_> = points.iter().copied().step_by(step).collect();
    few.extend(points.last().copied());
    few
}

fn picture(lanes: &[Lane]) -> String {
    let height = LANE * lanes.len() as f64 + 30.0;
    let longest = lanes.iter().map(|l| l.took_s).fold(0.0, f64::max);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>A program starts while ten others stream from a 7200 rpm disk: under deadline, and under bfq</title>\n\
         <style>.ink{{fill:#222}}.line{{fill:#d8d8d8}}.head{{fill:#888}}.bar{{fill:#c0392b}}.best{{fill:#1e8449}}.ground{{fill:#fff}}\
         @media (prefers-color-scheme:dark){{.ink{{fill:#ddd}}.line{{fill:#444}}.ground{{fill:#161616}}}}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n\
         <text class=\"ink\" x=\"{LEFT}\" y=\"20\">A program starts while ten others stream from one 7200 rpm disk</text>\n"
    );
    for (i, lane) in lanes.iter().enumerate() {
        draw(&mut out, lane, 30.0 + LANE * i as f64, longest);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, lane: &Lane, top: f64, longest: f64) {
    let width = WIDTH - LEFT - RIGHT;
    let (disk, bar) = (top + 26.0, top + 54.0);
    let class = if lane.took_s < longest { "best" } else { "bar" };
    // Playing time as a part of the loop.
    let at = |t: f64| (t / longest * MOVING).min(1.0);
    let line = |out: &mut String, text: String| writeln!(out, "{text}").expect("a string takes all");
    line(
        out,
        format!(
            "<text class=\"ink\" x=\"12\" y=\"{:.0}\" font-weight=\"bold\">{}</text>",
            disk + 6.0,
            lane.name
        ),
    );
    line(
        out,
        format!("<text class=\"ink\" x=\"12\" y=\"{:.0}\" font-size=\"11\">program</text>", bar + 14.0),
    );
    line(out, format!("<rect class=\"line\" x=\"{LEFT}\" y=\"{disk:.0}\" width=\"{width}\" height=\"4\"/>"));
    let head: Vec<_> = thinned(&lane.head, SAMPLES).iter().map(|(t, x)| (at(*t), LEFT + x * width)).collect();
    line(
        out,
        format!(
            "<circle class=\"head\" r=\"5\" cx=\"{LEFT}\" cy=\"{:.0}\">{}</circle>",
            disk + 2.0,
            animate("cx", &head)
        ),
    );
    line(out, format!("<rect class=\"line\" x=\"{LEFT}\" y=\"{bar:.0}\" width=\"{width}\" height=\"18\"/>"));
    let mut done: Vec<_> =
        thinned(&lane.done, SAMPLES / 2).iter().map(|(t, part)| (at(*t), part * width)).collect();
    done.insert(0, (0.0, 0.0));
    line(
        out,
        format!(
            "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{bar:.0}\" width=\"{width}\" height=\"18\">{}</rect>",
            animate("width", &done)
        ),
    );
    let shown = [(0.0, 0.0), (at(lane.took_s), 0.0), (at(lane.took_s), 1.0)];
    line(
        out,
        format!(
            "<text class=\"ink\" x=\"{:.0}\" y=\"{:.0}\" font-weight=\"bold\">{:.1} s{}</text>",
            WIDTH - RIGHT + 12.0,
            bar + 14.0,
            lane.took_s,
            animate("opacity", &shown)
        ),
    );
}

/// An endless movement through the values at their parts of the loop; the last value stays until its end.
fn animate(attribute: &str, points: &[(f64, f64)]) -> String {
    let mut all: Vec<(f64, f64)> = points.to_vec();
    if all.first().is_some_and(|p| p.0 > 0.0) {
        all.insert(0, (0.0, all[0].1));
    }
    all.extend(all.last().filter(|p| p.0 < 1.0).map(|p| (1.0, p.1)));
    let join = |of: &dyn Fn(&(f64, f64)) -> String| all.iter().map(of).collect::<Vec<_>>().join(";");
    format!(
        "<animate attributeName=\"{attribute}\" dur=\"{LOOP_S}s\" repeatCount=\"indefinite\" keyTimes=\"{}\" values=\"{}\"/>",
        join(&|p| format!("{:.4}", p.0)),
        join(&|p| format!("{:.0}", if attribute == "opacity" { p.1 } else { p.1.max(0.0) }))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_movement_begins_at_0_ends_at_1_and_its_times_do_not_fall() {
        let text = animate("cx", &[(0.1, 5.0), (0.4, 9.0)]);
        assert!(text.contains("keyTimes=\"0.0000;0.1000;0.4000;1.0000\" values=\"5;5;9;9\""), "{text}");
        let thin = thinned(&[(0.0, 0.0), (0.1, 1.0), (0.2, 2.0)], 2);
        assert_eq!(thin, [(0.0, 0.0), (0.2, 2.0), (0.2, 2.0)]);
    }

    #[test]
    fn progress_is_that_of_the_program_alone() {
        let columns = Columns { client: 0, sector: 1, begun: 2, finished: 3, completed: 4 };
        let row = |text: &'static str| text.split(',').collect::<Vec<_>>();
        let rows = [
            row("streams.0,100,0,5,5"),
            row("application,50,1000000000,2000000000,2000000000"),
            row("application,100,2000000000,3000000000,3000000000"),
        ];
        let lane = read("bfq", &columns, &rows).unwrap();
        assert_eq!(lane.done, [(1.0, 0.5), (2.0, 1.0)]);
        assert_eq!((lane.took_s, lane.head.len()), (2.0, 2));
    }
}
