//! What the keys of the terminal mean. As in htop: F1 help, F4 filter, F6 order, F10 quit.
//!
//! A character stays one, because what it means depends on whether the filter is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key that [`super::model::Model`] knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A character.
    Char(char),
    /// F1.
    Help,
    /// F4.
    Filter,
    /// F6.
    NextOrder,
    /// F10 or Ctrl-C; these quit in every state.
    Quit,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Erase,
    /// Lines to scroll: negative is up.
    Scroll(i32),
    /// To the first line.
    First,
}

/// Translates what crossterm reports; none for keys without a meaning.
pub(super) fn key(event: &KeyEvent) -> Option<Key> {
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if control => Key::Quit,
        KeyCode::Char(_) if control || event.modifiers.contains(KeyModifiers::ALT) => return None,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::F(1) => Key::Help,
        KeyCode::F(4) => Key::Filter,
        KeyCode::F(6) => Key::NextOrder,
        KeyCode::F(10) => Key::Quit,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Erase,
        KeyCode::Up => Key::Scroll(-1),
        KeyCode::Down => Key::Scroll(1),
        KeyCode::PageUp => Key::Scroll(-10),
        KeyCode::PageDown => Key::Scroll(10),
        KeyCode::Home => Key::First,
        _ => return None,
    })
}
