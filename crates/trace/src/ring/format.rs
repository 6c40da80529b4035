//! The `format` file of an event, and `header_page`, which has the same form.

use crate::error::quote;

/// The most fields of an event that are kept; the kernel's have some 20.
const FIELDS_MAX: usize = 256;
/// The largest page that is accepted, in bytes. The kernel's sub-buffers have 4 KiB to 64 KiB.
const PAGE_MAX: usize = 1 << 20;

/// One field of an event: where it is in the event's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name: `sector`, `rwbs`.
    pub name: String,
    /// Its first byte.
    pub offset: usize,
    /// Its length in bytes.
    pub size: usize,
}

impl Field {
    /// Returns the bytes of the field; `None` if the data is too short for it.
    #[must_use]
    pub fn of<'a>(&self, data: &'a [u8]) -> Option<&'a [u8]> {
        data.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Returns the number in the field, in this machine's byte order, without a sign.
    #[must_use]
    pub fn number(&self, data: &[u8]) -> Option<u64> {
        let bytes = self.of(data)?;
        Some(match *bytes {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_ne_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(*bytes.first_chunk()?),
        })
    }
}

/// The layout of one kind of event, from its `format` file.
///
/// ```
/// use fairhead_trace::ring::EventFormat;
/// let text = "name: block_rq_issue\nID: 1234\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
///     \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\nprint fmt: \"%d\", REC->x\n";
/// let format = EventFormat::parse(text).unwrap();
/// assert_eq!((format.name.as_str(), format.id), ("block_rq_issue", 1234));
/// assert_eq!(format.field("rwbs").unwrap().offset, 34);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventFormat {
    /// The name of the event.
    pub name: String,
    /// The number that an event of this kind has in its field `common_type`.
    pub id: u16,
    /// The fields, in the order of the file.
    pub fields: Vec<Field>,
}

impl EventFormat {
    /// Parses a `format` file.
    ///
    /// # Errors
    /// If it has no name or number, or a field that is not understood. The message is one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)).map(str::trim);
        let name = value("name:").ok_or("a format file without a line 'name:'")?.to_owned();
        let id = value("ID:").ok_or_else(|| format!("the format of {} has no line 'ID:'", quote(&name)))?;
        let id = id.parse().map_err(|_| format!("the format of {}: bad ID {}", quote(&name), quote(id)))?;
        Ok(Self { fields: fields(text)?, name, id })
    }

    /// Returns the field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// The layout of a page, from `events/header_page`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The length of the word `commit`: 8 bytes, or 4 on machines of 32 bits. It follows the time stamp.
    pub(super) commit_bytes: usize,
    /// Where the events begin.
    pub(super) data: usize,
    /// The length of a whole page.
    pub(super) page: usize,
}

impl Layout {
    /// Parses `header_page`.
    ///
    /// # Errors
    /// If a field is missing or its place is impossible. The message is one line.
    ///
    /// ```
    /// use fairhead_trace::ring::Layout;
    /// let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    ///     \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    /// assert_eq!(Layout::parse(text).unwrap().page_bytes(), 4096);
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields = fields(text)?;
        let field = |name: &str| {
            let found = fields.iter().find(|f| f.name == name);
            found.ok_or_else(|| format!("header_page has no field '{name}'"))
        };
        let (stamp, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let page = data.offset.checked_add(data.size).filter(|n| *n <= PAGE_MAX);
        let page = page.ok_or_else(|| format!("header_page: a page of more than {PAGE_MAX} bytes"))?;
        let in_order = stamp.offset == 0 && stamp.size == 8 && commit.offset == 8;
        if !in_order || !matches!(commit.size, 4 | 8) || data.offset < 8 + commit.size || data.size < 8 {
            return Err("header_page: expected timestamp (8 bytes), commit (4 or 8), data".to_owned());
        }
        Ok(Self { commit_bytes: commit.size, data: data.offset, page })
    }

    /// Returns the length of a page in bytes: what one `read` of `trace_pipe_raw` asks for.
    #[must_use]
    pub const fn page_bytes(&self) -> usize {
        self.page
    }
}

/// Returns all fields of a text: `field:TYPE NAME[N]; offset:N; size:N; signed:N;`.
fn fields(text: &str) -> Result<Vec<Field>, String> {
    let lines = text.lines().filter_map(|l| l.trim_start().strip_prefix("field:"));
    lines.take(FIELDS_MAX).map(|l| field(l).ok_or_else(|| format!("no field: {}", quote(l.trim())))).collect()
}

fn field(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit(|c: char| c.is_whitespace() || c == '*').next()?;
    let name = name.split('[').next().filter(|n| !n.is_empty())?.to_owned();
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", n)) => offset = n.trim().parse().ok(),
            Some(("size", n)) => size = n.trim().parse().ok(),
            _ => {}
        }
    }
    let field = Field { name, offset: offset?, size: size? };
    (field.offset <= PAGE_MAX && field.size <= PAGE_MAX).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_their_types() {
        for (line, name) in [
            ("unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;", "common_type"),
            ("char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;", "rwbs"),
            ("__data_loc char[] cmd;\toffset:44;\tsize:4;\tsigned:0;", "cmd"),
            ("const char *text;\toffset:8;\tsize:8;\tsigned:0;", "text"),
        ] {
            assert_eq!(field(line).unwrap().name, name);
        }
        for line in [
            "",
            "int x",
            "int x; offset:1;",
            "int x; offset:y; size:4;",
            "int x; offset:99999999999; size:4;",
        ] {
            assert_eq!(field(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_no_format_file_is_refused() {
        assert!(EventFormat::parse("").unwrap_err().contains("name:"));
        assert!(EventFormat::parse("name: x\n").unwrap_err().contains("ID:"));
        assert!(EventFormat::parse("name: x\nID: 99999\n").unwrap_err().contains("99999"));
        assert!(Layout::parse("").unwrap_err().contains("timestamp"));
    }

    #[test]
    fn numbers_of_all_sizes() {
        let field = |offset, size| Field { name: String::new(), offset, size };
        let data = 0x0102_0304_0506_0708_u64.to_ne_bytes();
        assert_eq!(field(0, 8).number(&data), Some(0x0102_0304_0506_0708));
        assert_eq!(field(0, 4).number(&7u32.to_ne_bytes()), Some(7));
        assert_eq!(field(5, 4).number(&data), None);
        assert_eq!(field(usize::MAX, 4).number(&data), None);
    }
}
