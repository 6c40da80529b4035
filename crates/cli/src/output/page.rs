//! What a page says made it.

use std::ffi::OsString;

/// What was typed, quoted so that a shell takes it again.
pub(crate) fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let quoted = |word: OsString| {
        let word = word.to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_alphanumeric() || "-_=+.,/:@%".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            return word;
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    };
    let rest: Vec<String> = words.skip(1).map(quoted).collect();
    format!("fairhead {}", rest.join(" ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["/usr/bin/fairhead", "run", "my job.fio", "--set", "cfq.slice_idle=4ms", "it's"];
        let line = command_line(words.iter().map(OsString::from));
        assert_eq!(line, "fairhead run 'my job.fio' --set cfq.slice_idle=4ms 'it'\\''s'");
        assert_eq!(command_line(std::iter::once(OsString::from("x"))), "fairhead");
    }
}
