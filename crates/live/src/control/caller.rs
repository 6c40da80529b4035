//! The client's end of the control socket.

use crate::error::{Error, ErrorKind};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// No answer is longer.
const ANSWER_MAX: u64 = 64 << 20;

/// A connection to a control socket.
#[derive(Debug)]
pub struct Caller {
    stream: BufReader<UnixStream>,
    place: String,
}

impl Caller {
    /// Connects.
    ///
    /// # Errors
    /// If no process listens there.
    pub fn connect(path: &Path) -> Result<Self, Error> {
        let place = path.display().to_string();
        let failed = |e: std::io::Error| Error::new(ErrorKind::Socket, format!("{place}: {e}"));
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self { stream: BufReader::new(stream), place })
    }

    /// Says a line, and hears what the answer is.
    ///
    /// # Errors
    /// What the other end says is wrong with it; or that it says nothing.
    pub fn ask(&mut self, line: &str) -> Result<Value, Error> {
        let place = &self.place;
        let failed = |why: String| Error::new(ErrorKind::Socket, format!("{place}: {why}"));
        // A server that refuses says so before it hangs up, and may not have read this line.
        let told = self.stream.get_mut().write_all(format!("{line}\n").as_bytes());
        let mut answer = String::new();
        let read = self.stream.by_ref().take(ANSWER_MAX).read_line(&mut answer);
        if read.as_ref().map_or(true, |&n| n == 0) {
            let why = told.err().or(read.err()).filter(|e| !has_closed(e.kind()));
            let why = why.map_or("the server has closed the connection".to_owned(), |e| e.to_string());
            return Err(failed(why));
        }
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|e| failed(format!("it does not talk our language: {e}")))?;
        match answer["error"].as_str() {
            Some(why) => Err(Error::new(ErrorKind::Setting, clean_line(why))),
            None => Ok(answer),
        }
    }
}

/// Whether an error says no more than that the other end is gone.
fn has_closed(kind: std::io::ErrorKind) -> bool {
    matches!(kind, std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset)
}

/// Nothing that a terminal would obey.
fn clean_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
