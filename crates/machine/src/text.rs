//! Strings of devices and files, made fit for a terminal and for a shell.
//!
//! A device names its own model and serial number, and a USB stick's maker may put an escape sequence there,
//! which a terminal obeys. What is shown has such characters as `\x1b`; the facts keep them as they are.

use std::borrow::Cow;

/// The text with each character that a terminal could obey written as an escape: control characters as
/// `\x1b`, and characters that reorder or hide text as `\u{202e}`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| {
        let code = u32::from(c);
        if code < 0x100 { format!("\\x{code:02x}") } else { format!("\\u{{{code:x}}}") }
    })
}

/// A JSON text in which no character is left that a terminal could obey: `\u009b` stands for it. Such
/// characters can only be inside of strings there, but for line breaks and tabs between them, which stay.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(|c| is_obeyed(c) && c != '\n') {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_obeyed(c) && c != '\n' {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The text as one word of a shell: as it is if it has only plain characters, else in quotes.
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "/_-.,:=@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    if text.chars().any(is_obeyed) {
        // In $'…' the escapes of `printable` are the characters again.
        let inner = text.replace('\\', "\\\\").replace('\'', "\\'");
        let inner = escaped(&inner, |c| format!("\\U{:08x}", u32::from(c))).into_owned();
        return Cow::Owned(format!("$'{inner}'"));
    }
    Cow::Owned(format!("'{}'", text.replace('\'', "'\\''")))
}

fn escaped(text: &str, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) { out.push_str(&escape(c)) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether a terminal obeys the character, or shows other text because of it.
const fn is_obeyed(c: char) -> bool {
    matches!(c, '\0'..='\x1f' | '\x7f'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_written_as_an_escape() {
        assert_eq!(printable("bad\x1b[31mmodel\x07 \"x\""), "bad\\x1b[31mmodel\\x07 \"x\"");
        assert_eq!(printable("a\u{9b}2Jb\u{202e}c\nd\x7f"), "a\\x9b2Jb\\u{202e}c\\x0ad\\x7f");
        assert!(matches!(printable("WDC WD20 – größer"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_json_text_means_the_same_and_has_no_such_character() {
        let model = "a\u{9b}2J\u{202e}\u{e0001}\x1b\x7f";
        let escaped = printable_json("{\n  \"a\u{9b}2J\u{202e}\u{e0001}\x7f\": 1\n}\n").into_owned();
        assert_eq!(escaped, "{\n  \"a\\u009b2J\\u202e\\udb40\\udc01\\u007f\": 1\n}\n");
        assert!(!printable(model).chars().any(is_obeyed));
    }

    #[test]
    fn a_word_of_a_shell_is_one_word() {
        assert_eq!(shell_word("/var/lib"), "/var/lib");
        assert_eq!(shell_word("/mnt/my disk"), "'/mnt/my disk'");
        assert_eq!(shell_word("/a'; reboot"), "'/a'\\''; reboot'");
        assert_eq!(shell_word("/a\x1bb"), "$'/a\\U0000001bb'");
        assert_eq!(shell_word(""), "''");
    }
}
