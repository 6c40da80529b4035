//! The recordings of `run`, beside its figures: files that are written run after run.

use std::io::Write;
use std::path::Path;

use fairhead_sim::journal::blocks::Blocks;
use fairhead_sim::journal::csv::Requests;
use fairhead_sim::journal::timeline::Timeline;
use fairhead_sim::journal::{Call, End, Event, Head, Idle, Request, Run, Sink};

use crate::args::RecordingArgs;
use crate::error::CliError;
use crate::out::Stream;

type Out = Box<dyn Write>;

/// The files that were asked for.
pub(crate) struct Recording {
    requests: Option<(Stream, Requests<Out>)>,
    trace: Option<(Stream, Blocks<Out>)>,
    timeline: Option<(Stream, Timeline<Out>)>,
}

impl RecordingArgs {
    /// Whether something is to be written where results are printed.
    pub(crate) fn takes_terminal(&self) -> bool {
        self.files().any(|f| f.as_os_str() == "-")
    }

    /// The files that are asked for.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.requests, &self.trace_out, &self.timeline].into_iter().flatten().map(|p| p.as_path())
    }
}

impl Recording {
    /// Begins those files for that many runs; `None` if none was asked for.
    pub(crate) fn new(args: &RecordingArgs, runs: usize) -> Result<Option<Self>, CliError> {
        if args.files().next().is_none() {
            return Ok(None);
        }
        if args.trace_out.is_some() && runs != 1 {
            let message = format!(
                "--trace-out needs a run of one scheduler, and this run has {runs}; name one with --sched"
            );
            return Err(CliError::Misuse(message));
        }
        let target = args.trace_format.into();
        let open = |file: &Option<_>| file.as_deref().map(Stream::create).transpose();
        Ok(Some(Self {
            requests: open(&args.requests)?.map(|(file, out)| (file, Requests::new(out))),
            trace: open(&args.trace_out)?.map(|(file, out)| (file, Blocks::new(target, out))),
            timeline: open(&args.timeline)?.map(|(file, out)| (file, Timeline::new(out))),
        }))
    }

    /// All runs are over.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        if let Some((file, requests)) = self.requests {
            file.finish(requests.finish().map(drop))?;
        }
        if let Some((file, trace)) = self.trace {
            file.finish(trace.finish())?;
        }
        if let Some((file, timeline)) = self.timeline {
            file.finish(timeline.finish())?;
        }
        Ok(())
    }

    fn each(&mut self, mut tell: impl FnMut(&mut dyn Sink)) {
        if let Some((_, requests)) = &mut self.requests {
            tell(requests);
        }
        if let Some((_, trace)) = &mut self.trace {
            tell(trace);
        }
        if let Some((_, timeline)) = &mut self.timeline {
            tell(timeline);
        }
    }
}

impl Sink for Recording {
    fn begins(&mut self, run: &Run) {
        self.each(|s| s.begins(run));
    }
    fn call(&mut self, call: &Call) {
        self.each(|s| s.call(call));
    }
    fn request(&mut self, request: &Request) {
        self.each(|s| s.request(request));
    }
    fn event(&mut self, event: &Event) {
        self.each(|s| s.event(event));
    }
    fn idle(&mut self, idle: &Idle) {
        self.each(|s| s.idle(idle));
    }
    fn head(&mut self, head: &Head) {
        self.each(|s| s.head(head));
    }
    fn ends(&mut self, end: &End) {
        self.each(|s| s.ends(end));
    }
}
