//! Texts for C: of a bounded length, cut where they are longer.

use core::fmt;

/// The longest text, in bytes.
pub(crate) const LONGEST: usize = 111;

/// A text that ends with a zero. Writing more than fits is not an error; the rest is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    bytes: [u8; LONGEST + 1],
    len: u8,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; LONGEST + 1], len: 0 }
    }
}

impl Text {
    pub(crate) fn of(text: &str) -> Self {
        let mut all = Self::default();
        let _ = fmt::Write::write_str(&mut all, text);
        all
    }

    /// The text without the zero.
    #[cfg(any(test, not(feature = "std")))]
    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// The text with the zero at its end.
    pub(crate) fn as_bytes(&self) -> &[u8; LONGEST + 1] {
        &self.bytes
    }
}

impl fmt::Write for Text {
    #[allow(clippy::cast_possible_truncation, reason = "below 160")]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let at = usize::from(self.len);
            if at + c.len_utf8() > LONGEST {
                // Nothing comes behind a gap.
                break;
            }
            c.encode_utf8(&mut self.bytes[at..]);
            self.len += c.len_utf8() as u8;
        }
        Ok(())
    }
}
