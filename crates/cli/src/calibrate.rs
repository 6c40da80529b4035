//! `fairhead calibrate`: a drive from the arguments, its measurement, the report and the disk file.

use std::path::Path;

use fairhead_core::Duration;
use fairhead_device::Device;
use fairhead_device::calibrate::{
    Calibration, Drive, Modelled, Noise, Options, Refusal, calibrate as measure,
};
use fairhead_live::Probe;
use serde_json::{Value, json};

use crate::args::{CalibrateArgs, ReportFormat};
use crate::error::CliError;
use crate::files::{self, Outputs};
use crate::out::{self, Progress};
use crate::plan::{choose_disk, positive_time};

/// Measures what the arguments name, and writes what was found.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<(), CliError> {
    let budget = args.time.as_deref().map(|t| positive_time("--time", t)).transpose()?;
    args.device.as_deref().into_iter().for_each(files::will_read);
    let (what, mut drive) = drive(args)?;
    Outputs::default().file("-o", args.output.as_deref()).check()?;
    let name = args.name.clone().unwrap_or_else(|| {
        let path = args.output.as_deref().unwrap_or(Path::new(&what));
        path.file_stem().map_or_else(|| what.clone(), |s| s.to_string_lossy().into_owned())
    });
    let options = Options { name, seed: args.seed, budget, write: args.write };
    let found = measure(drive.as_mut(), &options).map_err(|e| match e {
        Refusal::Interrupted => CliError::Failed("interrupted".to_owned()),
        Refusal::TooShort(why) => CliError::Misuse(format!("{what}: {why}")),
        Refusal::Inconsistent(why) => CliError::Failed(format!("{what} is not calibrated: {why}")),
        e => CliError::Failed(e.to_string()),
    })?;
    drop(drive);
    found.notes.iter().for_each(|n| out::note(n));
    let text = match args.output_format {
        ReportFormat::Human => human(&what, &found, args.output.is_some()),
        ReportFormat::Json => format!("{:#}\n", in_json(&what, args.seed, &found)),
    };
    // The findings are printed whatever becomes of the file.
    let written = args.output.as_deref().map_or(Ok(()), |file| out::write(Some(file), &found.to_toml()));
    if args.output.is_some() && written.is_ok() {
        out::note(&format!("seed {}", args.seed));
    }
    written.and(out::print(&text))
}

/// What is measured, as the user called it.
fn drive(args: &CalibrateArgs) -> Result<(String, Box<dyn Drive>), CliError> {
    if let Some(model) = &args.model {
        let (name, params) = choose_disk(model)?;
        if params.members().is_some() {
            let wrong = format!("{name} is a set with a queue for each member; calibrate a member");
            return Err(CliError::Misuse(wrong));
        }
        Device::new(&params).map_err(|e| CliError::Misuse(e.to_string()))?;
        let drive = Modelled::new(&params, Noise::default(), args.seed);
        return Ok((name, Box::new(drive.map_err(|e| CliError::Misuse(e.to_string()))?)));
    }
    let Some(path) = &args.device else {
        return Err(CliError::Misuse("a DEVICE or FILE is needed, or --model=PRESET".to_owned()));
    };
    let opened = if args.write { Probe::destructive(path) } else { Probe::open(path) };
    let mut probe = opened.map_err(|e| CliError::from(&e))?;
    if args.write {
        out::note(&format!("--write: everything on {} is lost", path.display()));
    }
    if let Some(why) = probe.may_sleep() {
        out::note(&format!(
            "processors may sleep between requests, so short times are less certain ({why}); root may keep them awake"
        ));
    }
    let progress = Progress::bounded("what it is");
    let mut told = false;
    probe.watch(move |step, done, total| {
        let tenths = |t: Duration| usize::try_from(t.as_ms() / 100).unwrap_or(usize::MAX);
        if total > done && !told {
            told = true;
            out::note(&format!("this takes about {} s", total.as_ms().div_ceil(1000)));
        }
        progress.say(step.to_owned());
        progress.at(tenths(done), tenths(total));
    });
    Ok((path.display().to_string(), Box::new(probe)))
}

fn human(what: &str, c: &Calibration, written: bool) -> String {
    let d = &c.demerit;
    let mut text = format!("{what}: {}\n\n", c.params.about());
    text.push_str(&format!("{:<18}{:<26}{:<12}{}\n", "parameter", "value", "confidence", "from"));
    for f in &c.findings {
        let value = match f.value.matches("tracks =").count() {
            0 => f.value.trim_matches('"').to_owned(),
            1 => "1 zone".to_owned(),
            n => format!("{n} zones"),
        };
        text.push_str(&format!("{:<18}{value:<26}{:<12}{}\n", f.key, f.confidence.word(), f.why));
    }
    text.push_str(&format!(
        "\n{} fresh requests: demerit figure {:.3} ms, {:.1} % of the drive's mean ({:.3} ms; the model's {:.3} ms)\n\
         {} reads in {:.1} s\n",
        c.validated,
        d.ms,
        d.percent,
        d.drive_mean_ms,
        d.model_mean_ms,
        c.reads,
        c.took.as_ms() as f64 / 1000.0
    ));
    if !written {
        text.push_str("-o FILE.toml writes it as a disk file\n");
    }
    text
}

fn in_json(what: &str, seed: u64, c: &Calibration) -> Value {
    let d = &c.demerit;
    let parameters: Vec<Value> = c
        .findings
        .iter()
        .map(|f| json!({ "key": f.key, "value": f.value, "confidence": f.confidence.word(), "from": f.why }))
        .collect();
    json!({
        "device": what,
        "name": c.params.name(),
        "about": c.params.about(),
        "seed": seed,
        "parameters": parameters,
        "validation": {
            "requests": c.validated,
            "demerit_ms": d.ms,
            "demerit_percent": d.percent,
            "drive_mean_ms": d.drive_mean_ms,
            "model_mean_ms": d.model_mean_ms,
        },
        "reads": c.reads,
        "took_ms": c.took.as_ms(),
        "notes": c.notes,
        "disk_file": c.to_toml(),
    })
}
