//! One row for each request, for spreadsheets and pandas.
//!
//! ```text
//! scheduler,request,disk,client,call,group,op,sync,meta,ahead,sector,sectors,made_ns,inserted_ns,issued_ns,begun_ns,finished_ns,completed_ns,merged_into,chosen
//! bfq,0,0,reader.0,0,/,read,1,0,0,2048,16,98000,98000,98000,98000,9100000,9125000,,Arrival
//! ```
//!
//! Rows come in order of completion, schedulers one after the other. Times are in nanoseconds since the start
//! of the run, sectors have 512 bytes; what is not known or does not apply is empty. A name with a comma or
//! quote is quoted.

use super::{Request, Run, Sink};
use fairhead_core::Duration;
use fairhead_core::trace::Reason;
use fairhead_device::DeviceOp;
use std::fmt::Display;
use std::io::{self, Write};

/// The columns; units are in their names.
pub const COLUMNS: &str = "scheduler,request,disk,client,call,group,op,sync,meta,ahead,sector,sectors,\
    made_ns,inserted_ns,issued_ns,begun_ns,finished_ns,completed_ns,merged_into,chosen";

/// Writes requests as they complete. Give it to one run after the other, and [`finish`](Self::finish) it.
#[derive(Debug)]
pub struct Requests<W> {
    out: W,
    scheduler: String,
    names: Vec<String>,
    groups: Vec<String>,
    result: io::Result<()>,
}

impl<W: Write> Requests<W> {
    /// Begins with the columns.
    pub fn new(mut out: W) -> Self {
        let result = writeln!(out, "{COLUMNS}");
        Self { out, scheduler: String::new(), names: Vec::new(), groups: Vec::new(), result }
    }

    /// Ends the table and gives back where it went.
    ///
    /// # Errors
    /// If some of it could not be written; what came after that was not tried.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn row(&mut self, r: &Request) -> io::Result<()> {
        let text = |names: &[String], i: u32| names.get(i as usize).cloned().unwrap_or_default();
        let (client, group) = (text(&self.names, r.task.0), text(&self.groups, r.group.0));
        let flag = u8::from;
        write!(self.out, "{},{},{},{client},{},{group}", self.scheduler, r.id, r.member, number(r.call))?;
        write!(
            self.out,
            ",{},{},{},{},{},{}",
            op(r.kind.op),
            flag(r.kind.sync),
            flag(r.kind.meta),
            flag(r.kind.ahead),
            r.sector.0,
            r.sectors.0
        )?;
        for at in [Some(r.made), r.inserted, r.issued, r.begun, r.finished, r.completed] {
            write!(self.out, ",{}", number(at.map(Duration::as_ns)))?;
        }
        write!(self.out, ",{},", number(r.merged_into))?;
        match r.chosen {
            Reason::None => writeln!(self.out),
            reason => writeln!(self.out, "{reason:?}"),
        }
    }
}

impl<W: Write> Sink for Requests<W> {
    fn begins(&mut self, run: &Run) {
        self.scheduler = field(&run.scheduler);
        self.names = run.tasks.iter().map(|t| field(&t.name)).collect();
        self.groups = run.groups.iter().map(|g| field(g)).collect();
        if self.groups.is_empty() {
            self.groups.push("/".to_owned());
        }
    }

    fn request(&mut self, request: &Request) {
        if self.result.is_ok() {
            self.result = self.row(request);
        }
    }
}

/// Returns the operation in a word.
#[must_use]
pub const fn op(op: DeviceOp) -> &'static str {
    match op {
        DeviceOp::Read => "read",
        DeviceOp::Write => "write",
        DeviceOp::Flush => "flush",
        DeviceOp::Discard => "discard",
    }
}

fn number(n: Option<impl Display>) -> String {
    n.map_or_else(String::new, |n| n.to_string())
}

/// A text as a field.
//= RFC 4180 section 2
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_must() {
        assert_eq!(field("a.0"), "a.0");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
