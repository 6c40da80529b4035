//! The terminal while `fairhead top` draws on it, and its way back.
//!
//! Keys are read one by one without echo, and everything is drawn on the alternate screen, so that the user's
//! text is there again afterwards. The terminal is restored when a [`Screen`] is dropped, before a panic is
//! reported, and before a signal ends the program ([`restore_before_exit`]). SIGKILL leaves it as it is;
//! `reset` helps.

use std::io::{self, Stdout, Write, stdout};
use std::panic;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::prelude::CrosstermBackend;
use ratatui::{Frame, Terminal};

/// Whether the terminal is ours now. It is locked while something is drawn: who restores the terminal waits
/// for the end of a picture, and nothing is drawn after that.
static OPEN: Mutex<bool> = Mutex::new(false);

fn open() -> MutexGuard<'static, bool> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a Rust program that has panicked ends with.
const PANICKED: i32 = 101;

/// The alternate screen; dropped, the terminal is as it was.
pub(super) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A panic while drawing holds the lock already.
            if let Ok(mut open) = OPEN.try_lock() {
                restore(&mut open);
            } else {
                restore(&mut true);
            }
            report(info);
            // The thread that draws would wait for the next message, which does not come.
            if std::thread::current().name() != Some("main") {
                std::process::exit(PANICKED);
            }
        }));
        let mut open = open();
        *open = true;
        enable_raw_mode().and_then(|()| execute!(stdout(), EnterAlternateScreen)).inspect_err(|_| {
            restore(&mut open);
        })?;
        drop(open);
        Ok(Self(terminal))
    }

    /// Draws one picture, at the size that the terminal has now.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let open = open();
        if *open {
            self.0.draw(picture)?;
        }
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore(&mut open());
    }
}

/// Gives the terminal back, if it was taken. Errors are ignored: a terminal that is gone needs nothing.
fn restore(open: &mut bool) {
    if std::mem::take(open) {
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = stdout().flush();
    }
}

/// Gives the terminal back before a signal ends the program. Nothing is drawn from here on.
pub(crate) fn restore_before_exit() {
    restore(&mut open());
}
