//! Reading a line word by word.

/// The words of a text, with the rest at hand.
#[derive(Clone, Debug)]
pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text.trim() }
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    /// If the rest begins with `text`: passes over it.
    pub(super) fn pass(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?.trim_start();
        Some(())
    }

    /// The number that the rest begins with, in decimal.
    pub(super) fn number<T: std::str::FromStr>(&mut self) -> Option<T> {
        let digits = self.rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'-').count();
        let number = self.rest[..digits].parse().ok()?;
        self.rest = self.rest[digits..].trim_start();
        Some(number)
    }

    /// Reads a number in hexadecimal, as addresses are.
    pub(super) fn address(&mut self) -> Option<u64> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let number = u64::from_str_radix(&self.rest[..digits], 16).ok()?;
        self.rest = self.rest[digits..].trim_start();
        Some(number)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (word, rest) = self.rest.split_once(char::is_whitespace).unwrap_or((self.rest, ""));
        self.rest = rest.trim_start();
        Some(word)
    }
}
