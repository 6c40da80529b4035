//! `fairhead validate`: a disk model beside a recorded drive.

use fairhead_core::Duration;
use fairhead_sim::validate::{Demerit, Recorded, demerit, quantile, read_recording, replay, sorted_ms};

use crate::args::ValidateArgs;
use crate::error::CliError;
use crate::out;
use crate::plan;

/// Replays the recording through the model and prints how far apart they are.
pub(crate) fn validate(args: &ValidateArgs) -> Result<(), CliError> {
    let (name, params) = plan::choose_disk(&args.disk)?;
    let trace = fairhead_trace::open(&args.trace).map_err(|e| CliError::Misuse(e.to_string()))?;
    let recording = read_recording(trace, &args.trace.to_string_lossy()).map_err(CliError::Misuse)?;
    let model = replay(&params, &recording).map_err(CliError::Misuse)?;
    out::print(&report(&name, &recording, &model))
}

/// Shares of the requests at which the distributions are shown, in thousandths.
const SHARES: [usize; 13] = [10, 50, 100, 250, 400, 500, 600, 750, 900, 950, 990, 999, 1000];

fn report(name: &str, recording: &[Recorded], model: &[Duration]) -> String {
    let drive: Vec<Duration> = recording.iter().map(|r| r.response).collect();
    let (all_drive, all_model) = (sorted_ms(&drive), sorted_ms(model));
    let d = demerit(&all_drive, &all_model);
    let mut text = format!(
        "{name}: {} requests, demerit figure {:.3} ms, {:.1} % of the drive's mean\n\n",
        recording.len(),
        d.ms,
        d.percent
    );
    text.push_str("            requests  drive mean  model mean     demerit\n");
    line(&mut text, "all", recording.len(), d);
    for (what, write) in [("reads", false), ("writes", true)] {
        let of = |times: &[Duration]| {
            let kept = times.iter().zip(recording).filter(|(_, r)| r.write == write);
            sorted_ms(&kept.map(|(t, _)| *t).collect::<Vec<_>>())
        };
        let (drive, model) = (of(&drive), of(model));
        line(&mut text, what, drive.len(), demerit(&drive, &model));
    }
    text.push_str("\nshare of requests answered within …\n                   drive       model\n");
    for share in SHARES {
        let (a, b) = (quantile(&all_drive, share), quantile(&all_model, share));
        text.push_str(&format!("{:>8.1} % {a:>10.3} ms {b:>8.3} ms\n", share as f64 / 10.0));
    }
    text
}

fn line(text: &mut String, what: &str, n: usize, d: Demerit) {
    let (a, b) = (d.drive_mean_ms, d.model_mean_ms);
    text.push_str(&format!("{what:<10} {n:>9} {a:>8.3} ms {b:>8.3} ms {:>8.3} ms\n", d.ms));
}
