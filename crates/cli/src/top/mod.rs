//! `fairhead top`: what each group of a running disk gets, as a screen with keys or as tables.
//!
//! ```text
//! keys, sizes ─┐
//!              ├─► one channel ─► Model (order, filter, history) ─► draw ─► Screen
//! looks ───────┘
//! ```
//!
//! The screen is for a terminal. With `--count` or `--plain`, in a pipe, and on a terminal that cannot move
//! its cursor (`TERM=dumb`), tables are printed one after the other. One thread asks the server at each
//! interval and one reads keys, so a key is answered while the server is slow. The model and the drawing do
//! no I/O and read no clock: they are tested without a terminal.
//!
//! It changes nothing at the server; `fairhead ctl` does.

mod draw;
mod keys;
mod model;
mod screen;

use std::io::{IsTerminal, stdin, stdout};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use fairhead_live::control::Caller;
use ratatui::crossterm::event::{self, Event};
use serde_json::Value;

use crate::args::TopArgs;
use crate::control::connect;
use crate::error::CliError;
use crate::out;
use crate::output::{Interval, top as table};
use crate::plan::positive_time;
use draw::draw;
use model::{Model, Next};
use screen::Screen;

pub(crate) use screen::restore_before_exit;

/// Shows what the groups get, until a key or a signal ends it or the server ends.
pub(crate) fn top(args: &TopArgs) -> Result<(), CliError> {
    let interval = Duration::from_nanos(positive_time("--interval", &args.interval)?.as_ns());
    let caller = connect(&args.socket)?;
    if args.plain || args.count.is_some() || !is_interactive() {
        return tables(caller, interval, args.count);
    }
    interactive(caller, interval)
}

/// Whether keys can be read and the cursor can be moved.
fn is_interactive() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|t| t.is_empty() || t == "dumb");
    stdin().is_terminal() && stdout().is_terminal() && !is_dumb
}

fn look(caller: &mut Caller) -> Result<Value, CliError> {
    caller.ask(r#"{"do":"stats"}"#).map_err(|e| CliError::from(&e))
}

/// To the upper left corner; and from there on nothing.
const CLEAR: &str = "\x1b[H\x1b[J";

/// A table for each interval: over the last one on a terminal, below it elsewhere.
fn tables(mut caller: Caller, interval: Duration, most: Option<u64>) -> Result<(), CliError> {
    let is_terminal = stdout().is_terminal();
    let coloured = out::coloured(None);
    let mut before = look(&mut caller)?;
    let mut count = 0;
    while most.is_none_or(|most| count < most) {
        thread::sleep(interval);
        let after = look(&mut caller)?;
        let text = table(&Interval::between(&before, &after), coloured);
        let above = match (is_terminal, count) {
            (true, _) => CLEAR,
            (false, 0) => "",
            (false, _) => "\n",
        };
        out::print(&format!("{above}{text}"))?;
        before = after;
        count += 1;
    }
    Ok(())
}

/// What happened outside.
enum Message {
    /// A key was pressed or the terminal has another size.
    Event(Event),
    /// The next interval is over.
    Interval(Box<Interval>),
    /// The server or the terminal is gone.
    Gone(CliError),
}

/// Messages that wait; a sender that finds no room waits, too.
const INBOX: usize = 16;

/// The screen, until a key ends it.
fn interactive(mut caller: Caller, interval: Duration) -> Result<(), CliError> {
    let (to, inbox) = sync_channel(INBOX);
    // The first look comes before the screen opens: for a server that does not answer a line is enough.
    let first = look(&mut caller)?;
    let mut screen = Screen::open().map_err(cannot)?;
    let looks = to.clone();
    thread::spawn(move || ask(caller, first, interval, &looks));
    thread::spawn(move || read_keys(&to));
    serve_screen(&mut screen, &inbox, interval)
}

fn cannot(e: std::io::Error) -> CliError {
    CliError::Failed(format!("cannot draw on the terminal: {e}; --plain prints tables"))
}

fn serve_screen(screen: &mut Screen, inbox: &Receiver<Message>, interval: Duration) -> Result<(), CliError> {
    let mut model = Model::new(interval);
    let look = out::look();
    loop {
        screen.draw(|frame| draw(frame, &mut model, look)).map_err(cannot)?;
        match inbox.recv() {
            Ok(Message::Event(Event::Key(key))) if !key.is_release() => {
                if let Some(key) = keys::key(&key)
                    && model.press(key) == Next::Quit
                {
                    return Ok(());
                }
            }
            // Another size is drawn at once; other events are not asked for.
            Ok(Message::Event(_)) => {}
            Ok(Message::Interval(interval)) => model.add(*interval),
            Ok(Message::Gone(why)) => return Err(why),
            Err(_) => return Err(CliError::Failed("the threads of top have ended".to_owned())),
        }
    }
}

/// Asks the server at each interval, until it or the reader is gone.
fn ask(mut caller: Caller, first: Value, interval: Duration, to: &SyncSender<Message>) {
    let mut before = first;
    loop {
        thread::sleep(interval);
        let (message, is_last) = match look(&mut caller) {
            Ok(after) => {
                let between = Interval::between(&before, &after);
                before = after;
                (Message::Interval(Box::new(between)), false)
            }
            Err(e) => (Message::Gone(e), true),
        };
        if to.send(message).is_err() || is_last {
            return;
        }
    }
}

/// Passes on what comes from the terminal, until it or the reader is gone.
fn read_keys(to: &SyncSender<Message>) {
    loop {
        let (message, is_last) = match event::read() {
            Ok(event) => (Message::Event(event), false),
            Err(e) => (Message::Gone(CliError::Failed(format!("cannot read keys: {e}"))), true),
        };
        if to.send(message).is_err() || is_last {
            return;
        }
    }
}
