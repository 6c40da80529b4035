//! `fairhead trace`: what is in a recorded trace, and the same in another format.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use fairhead_trace::{Summary, Trace, TraceError, Writer, open};

use crate::args::{TraceArgs, TraceTarget};
use crate::error::CliError;
use crate::files::{self, Outputs};
use crate::out;
use crate::output::trace::{Read, render};

/// Reads the trace to its end, writes it anew if asked to, and else tells what is in it.
pub(crate) fn trace(args: &TraceArgs) -> Result<(), CliError> {
    let misuse = |e: TraceError| CliError::Misuse(e.to_string());
    files::will_read(&args.trace);
    Outputs::default().file("-o", args.output.file.as_deref()).check()?;
    let mut trace = open(&args.trace).map_err(misuse)?;
    let file = args.output.file.as_deref();
    if let Some(target) = args.to {
        return convert(&mut trace, target, file);
    }
    let mut summary = Summary::default();
    for record in trace.by_ref() {
        summary.add(&record.map_err(misuse)?);
    }
    let name = args.trace.display().to_string();
    let read = Read { file: &name, trace: &trace, summary: &summary };
    out::results(file, &render(&read, args.output.format, out::coloured(file)))
}

fn convert(trace: &mut Trace, target: TraceTarget, file: Option<&Path>) -> Result<(), CliError> {
    // What is wrong with the trace, as it is no fault of what is written.
    let mut damage = None;
    let result = match file {
        Some(path) => out::complete(path, |file| rewrite(trace, target, file, &mut damage)),
        None => rewrite(trace, target, io::stdout().lock(), &mut damage).map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => CliError::Closed,
            _ => CliError::Failed(format!("cannot write the trace: {e}")),
        }),
    };
    damage.map_or(result, |e| Err(CliError::Misuse(e.to_string())))
}

/// Writes the whole trace; `damage` is what ended it too early.
fn rewrite(
    trace: &mut Trace,
    target: TraceTarget,
    sink: impl Write,
    damage: &mut Option<TraceError>,
) -> io::Result<()> {
    let sink = BufWriter::new(sink);
    let mut writer = Writer::new(target.into(), sink)?;
    while let Some(record) = trace.next() {
        let record = match record {
            Ok(record) => record,
            Err(e) => {
                *damage = Some(e);
                return Err(io::Error::other("the trace is damaged"));
            }
        };
        writer.write(&record, trace.names())?;
    }
    writer.finish(trace.names())
}
