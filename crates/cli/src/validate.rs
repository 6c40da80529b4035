//! `fairhead validate`: a disk model beside a recorded drive.

use fairhead_core::Duration;
use fairhead_papers::validate::{Demerit, Recorded, demerit, quantile, read_recording, replay, sorted_ms};
use serde_json::{Value, json};

use crate::args::{ReportFormat, ValidateArgs};
use crate::error::CliError;
use crate::files::{self, Outputs};
use crate::out;
use crate::plan;

/// Replays the recording through the model and prints how far apart they are.
pub(crate) fn validate(args: &ValidateArgs) -> Result<(), CliError> {
    let (name, mut params) = plan::choose_disk(&args.disk)?;
    if let Some(rate) = &args.bus_rate {
        params = params.with_bus_rate(rate).map_err(|e| CliError::Misuse(format!("--bus-rate: {e}")))?;
    }
    files::will_read(&args.trace);
    Outputs::default().file("-o", args.output.file.as_deref()).check()?;
    let trace = fairhead_trace::open(&args.trace).map_err(|e| CliError::Misuse(e.to_string()))?;
    let recording = read_recording(trace, &args.trace.to_string_lossy()).map_err(CliError::Misuse)?;
    let model = replay(&params, &recording).map_err(CliError::Misuse)?;
    let compared = Compared::of(&recording, &model);
    let text = match args.output.format {
        ReportFormat::Human => human(&name, &compared),
        ReportFormat::Json => {
            let object = object(&name, &args.trace.to_string_lossy(), &compared);
            serde_json::to_string_pretty(&object).expect("a JSON value can be written") + "\n"
        }
    };
    out::results(args.output.file.as_deref(), &text)
}

/// Shares of the requests at which the distributions are shown, in thousandths.
const SHARES: [usize; 13] = [10, 50, 100, 250, 400, 500, 600, 750, 900, 950, 990, 999, 1000];

/// Some of the requests: how many, and how far apart.
type Row = (&'static str, usize, Demerit);

/// The two distributions.
struct Compared {
    /// All, the reads, the writes.
    rows: [Row; 3],
    /// A share in thousandths, the drive's time and the model's, ms.
    shares: [(usize, f64, f64); SHARES.len()],
}

impl Compared {
    fn of(recording: &[Recorded], model: &[Duration]) -> Self {
        let of = |keep: &dyn Fn(&Recorded) -> bool| {
            let kept = recording.iter().zip(model).filter(|(r, _)| keep(r));
            let (drive, model): (Vec<_>, Vec<_>) = kept.map(|(r, t)| (r.response, *t)).unzip();
            (sorted_ms(&drive), sorted_ms(&model))
        };
        let row = |what, (drive, model): &(Vec<f64>, Vec<f64>)| (what, drive.len(), demerit(drive, model));
        let all = of(&|_| true);
        let rows = [row("all", &all), row("reads", &of(&|r| !r.write)), row("writes", &of(&|r| r.write))];
        Self { rows, shares: SHARES.map(|s| (s, quantile(&all.0, s), quantile(&all.1, s))) }
    }
}

fn human(name: &str, c: &Compared) -> String {
    let (_, requests, d) = c.rows[0];
    let mut text = format!(
        "{name}: {requests} requests, demerit figure {:.3} ms, {:.1} % of the drive's mean\n\n",
        d.ms, d.percent
    );
    text.push_str("            requests  drive mean  model mean     demerit\n");
    for (what, n, d) in c.rows {
        let (a, b) = (d.drive_mean_ms, d.model_mean_ms);
        text.push_str(&format!("{what:<10} {n:>9} {a:>8.3} ms {b:>8.3} ms {:>8.3} ms\n", d.ms));
    }
    text.push_str("\nshare of requests answered within …\n                   drive       model\n");
    for (share, a, b) in c.shares {
        text.push_str(&format!("{:>8.1} % {a:>10.3} ms {b:>8.3} ms\n", share as f64 / 10.0));
    }
    text
}

fn object(name: &str, trace: &str, c: &Compared) -> Value {
    let row = |(what, requests, d): Row| {
        json!({
            "what": what,
            "requests": requests,
            "demerit_ms": d.ms,
            "demerit_percent": d.percent,
            "drive_mean_ms": d.drive_mean_ms,
            "model_mean_ms": d.model_mean_ms,
        })
    };
    let share = |(share, drive, model): (usize, f64, f64)| json!({ "share_percent": share as f64 / 10.0, "drive_ms": drive, "model_ms": model });
    json!({
        "disk": name,
        "trace": trace,
        "figures": c.rows.map(row),
        "answered_within": c.shares.map(share),
    })
}
