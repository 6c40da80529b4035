//! `cfq-seeky-ssd-2010`: "cfq-iosched: rethink seeky detection for SSDs", March 2010.
//!
//! Two processes read at random from a flash card without queueing, one always 4 KiB, the other 8 to 64 KiB.
//! Unpatched (the seek rule of 2.6.33) both count as seeky and take turns, request by request. Patched (by
//! request size) the one with requests of 32 KiB and more gets slices of its own: both get equal time.
//!
//! The published rates are in units of 1000 bytes per second although they are labelled KiB/s; ours are too.

use super::{Bound, Column, OfTable, Options, Published, Report, Standing, run_rows};
use fairhead_core::sched::any::{AnyConfig, preset};
use fairhead_device::DeviceParams;
use fairhead_sim::metrics::{ClientStats, Outcome, Result, rate};
use fairhead_sim::{Host, Scenario, SimError, job, simulate};

/// Row, size of the other process's reads, io (KiB), aggrb, minb, maxb (1000 bytes/s).
type GroupRow = (&'static str, &'static str, f64, f64, f64, f64);

#[rustfmt::skip]
const UNPATCHED: [GroupRow; 4] = [
    ("R001-U-0", "8k", 21528.0, 4406.0, 1485.0, 2922.0),
    ("R001-U-1", "16k", 31524.0, 6452.0, 1327.0, 5126.0),
    ("R001-U-2", "32k", 46544.0, 9524.0, 1031.0, 8493.0),
    ("R001-U-3", "64k", 64712.0, 13242.0, 761.0, 12486.0),
];

#[rustfmt::skip]
const PATCHED: [GroupRow; 4] = [
    ("R001-P-0", "8k", 21544.0, 4409.0, 1511.0, 2898.0),
    ("R001-P-1", "16k", 32000.0, 6549.0, 1277.0, 5274.0),
    ("R001-P-2", "32k", 39444.0, 8073.0, 1576.0, 6498.0),
    ("R001-P-3", "64k", 49180.0, 10059.0, 1512.0, 8548.0),
];

/// Unpatched is 2.6.33, which judges by mean distance; patched judges by size on flash. `distance` is the
/// rule between the two patches of the pair: on a card it must do what `mean` does here.
const KERNELS: [(&str, &str, &[GroupRow]); 2] =
    [("cfq-2.6.33", "distance", &UNPATCHED), ("cfq-2.6.34", "size", &PATCHED)];

struct Group {
    kernel: &'static str,
    seek: &'static str,
    row: &'static GroupRow,
}

impl OfTable for Group {
    fn id(&self) -> &str {
        self.row.0
    }

    fn columns(&self) -> Vec<Column> {
        columns(self.row)
    }
}

pub(super) fn reproduce(options: &Options, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Report> {
    let rows: Vec<Group> = KERNELS
        .iter()
        .flat_map(|&(kernel, seek, table)| table.iter().map(move |row| Group { kernel, seek, row }))
        .collect();
    let figures = run_rows(&rows, options, progress, |r, seed| run(r.kernel, r.seek, r.row, seed))?;
    Ok(Report {
        source: "cfq-seeky-ssd-2010",
        title: "seeky detection on flash (C. Zoccolo, 2010)".into(),
        seed: options.seed,
        layouts: options.layouts.max(1),
        figures,
        checks: vec![],
        tables: vec![],
        notes: vec!["rates are in units of 1000 bytes/s, as the published ones are in spite of their label"],
        is_part: options.only.is_some(),
        unknown: vec![],
        runs: None,
    })
}

const BOUND: Bound = Bound::Relative(0.05);

fn columns(&(id, _, io, agg, min, max): &GroupRow) -> Vec<Column> {
    let column = |metric, unit, published| Column {
        // The card's two constants were fitted to groups 0 and 3 of the unpatched run.
        standing: if matches!(id, "R001-U-0" | "R001-U-3") {
            Standing::Calibrates(Some(BOUND))
        } else {
            Standing::Judged(BOUND)
        },
        ..Column::new(metric, unit, Published::Number(published), Standing::Ours)
    };
    vec![
        column("io_KiB", "KiB", io),
        column("aggrb", "kB/s", agg),
        column("minb", "kB/s", min),
        column("maxb", "kB/s", max),
    ]
}

fn run(kernel: &str, seek: &str, row: &GroupRow, seed: u64) -> Result<Vec<f64>> {
    // As the source did: first many parallel readers, so that the scheduler knows that the card does not
    // queue.
    let text = format!(
        "[global]\nrw=randread\ndirect=1\nnorandommap\nsize=128m\ntime_based\n\
         [prepare]\nbs=4k\nnumjobs=32\nruntime=2s\n\
         [small]\nstonewall\nbs=4k\nruntime=5s\n\
         [big]\nbs={}\nruntime=5s\n",
        row.1
    );
    let jobs = job::parse(&text, "built-in")
        .map_err(|e| SimError::Job { job: row.0.to_owned(), message: e.to_string() })?;
    let scenario = Scenario {
        jobs,
        disk: DeviceParams::preset("flashcard2010")?,
        host: Host::of_2010(),
        scheduler: kernel.to_owned(),
        config: config(kernel, seek)?,
        seed,
        interval: None,
        time_max: None,
        watch: None,
    };
    Ok(read_off(&simulate(&scenario)?))
}

fn config(kernel: &str, seek: &str) -> Result<AnyConfig> {
    let mut config = (preset(kernel).expect("a built-in preset").config)();
    config.set_word("seek", seek)?;
    Ok(config)
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn read_off(outcome: &Outcome) -> Vec<f64> {
    let pair = &outcome.clients[outcome.clients.len() - 2..];
    let bytes: u64 = pair.iter().map(ClientStats::bytes).sum();
    let rate_of = |c: &ClientStats| rate(c.bytes(), c.elapsed) as f64 / 1000.0;
    let longest = pair.iter().map(|c| c.elapsed).max().unwrap_or_default();
    vec![bytes as f64 / 1024.0, rate(bytes, longest) as f64 / 1000.0, rate_of(&pair[0]), rate_of(&pair[1])]
}
