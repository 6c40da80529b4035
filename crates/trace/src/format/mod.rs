//! The formats, one module each, and the detection of a file's format by its content, never by its name.

pub mod alibaba;
pub mod biosnoop;
pub mod blkparse;
pub mod blktrace;
pub mod cloudphysics;
pub mod columns;
pub mod disksim;
pub mod ftrace;
pub mod iolog;
pub mod iosnoop;
pub mod libcachesim;
pub mod live;
pub mod mqsim;
pub mod msr;
mod scsi;
pub mod snoop;
pub mod spc;
pub mod startup;
pub mod tencent;
pub mod vscsi;

use crate::lines::MARK;
use crate::record::{Names, Notes};
use std::fmt;

/// A format of traces.
///
/// ```
/// let format = fairhead_trace::read("x", "0,1,512,R,0.5\n".as_bytes()).unwrap().format();
/// assert_eq!(format, fairhead_trace::Format::Spc);
/// assert!(fairhead_trace::Format::ALL.contains(&format));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Format {
    /// The binary format of `blktrace`.
    Blktrace,
    /// The text that `blkparse` prints.
    Blkparse,
    /// The text of the kernel's `trace` file: lines of the `blk` tracer, or the events `block_*`.
    Ftrace,
    /// The log of fio's `write_iolog` before 3.31.
    IologV2,
    /// The log of fio's `write_iolog` since 3.31.
    IologV3,
    /// The traces of servers of Microsoft Research Cambridge.
    Msr,
    /// The traces of virtual disks of Alibaba's cloud.
    Alibaba,
    /// The traces of virtual disks of Tencent's cloud.
    Tencent,
    /// The format of the Storage Performance Council.
    Spc,
    /// The text that DiskSim reads by default.
    DiskSim,
    /// The recordings of real drives that DiskSim was validated with.
    DiskSimValidation,
    /// Recorded start-ups of programs.
    StartUp,
    /// The recordings of `fairhead serve` and `mount`.
    Live,
    /// The table that `biosnoop` prints.
    BioSnoop,
    /// The table that perf-tools' `iosnoop` prints.
    IoSnoop,
    /// The traces of virtual disks of cloudPhysics, as CSV.
    CloudPhysics,
    /// The binary form of cloudPhysics' traces.
    Vscsi,
    /// The text that MQSim reads.
    MqSim,
    /// The CSV that libCacheSim reads.
    LibCacheSim,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 19] = [
        Self::Blktrace,
        Self::Blkparse,
        Self::Ftrace,
        Self::IologV2,
        Self::IologV3,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Spc,
        Self::DiskSim,
        Self::DiskSimValidation,
        Self::StartUp,
        Self::Live,
        Self::BioSnoop,
        Self::IoSnoop,
        Self::CloudPhysics,
        Self::Vscsi,
        Self::MqSim,
        Self::LibCacheSim,
    ];

    /// Returns the name of the format, in a few words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blktrace => "blktrace binary",
            Self::Blkparse => "blkparse text",
            Self::Ftrace => "ftrace text",
            Self::IologV2 => "fio iolog v2",
            Self::IologV3 => "fio iolog v3",
            Self::Msr => "MSR Cambridge CSV",
            Self::Alibaba => "Alibaba CSV",
            Self::Tencent => "Tencent CSV",
            Self::Spc => "SPC CSV",
            Self::DiskSim => "DiskSim ASCII",
            Self::DiskSimValidation => "DiskSim validation",
            Self::StartUp => "start-up trace",
            Self::Live => "fairhead live recording",
            Self::BioSnoop => "biosnoop table",
            Self::IoSnoop => "iosnoop table",
            Self::CloudPhysics => "cloudPhysics CSV",
            Self::Vscsi => "VSCSI binary",
            Self::MqSim => "MQSim ASCII",
            Self::LibCacheSim => "libCacheSim CSV",
        }
    }

    /// Whether a trace of the format can have the times at which requests completed.
    #[must_use]
    pub const fn has_completions(self) -> bool {
        match self {
            Self::Blktrace
            | Self::Blkparse
            | Self::Ftrace
            | Self::Msr
            | Self::DiskSimValidation
            | Self::Live
            | Self::BioSnoop
            | Self::IoSnoop
            | Self::Vscsi => true,
            Self::IologV2
            | Self::IologV3
            | Self::Alibaba
            | Self::Tencent
            | Self::Spc
            | Self::DiskSim
            | Self::StartUp
            | Self::CloudPhysics
            | Self::MqSim
            | Self::LibCacheSim => false,
        }
    }

    /// Returns the format of a line, by its shape alone: a line may have the shape and still be wrong.
    fn of_line(line: &str) -> Option<Self> {
        let commas: Vec<&str> = line.split(',').map(str::trim).collect();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_number = |s: &str| s.bytes().all(|b| b.is_ascii_digit()) && !s.is_empty();
        let letter = |s: &str| matches!(s, "R" | "W" | "r" | "w");
        let named = |s: &str, name: &str| s.eq_ignore_ascii_case(name);
        match (&commas[..], &words[..]) {
            _ if biosnoop::has_shape(line) => Some(Self::BioSnoop),
            _ if iosnoop::has_shape(line) => Some(Self::IoSnoop),
            _ if cloudphysics::is_header(line) => Some(Self::CloudPhysics),
            _ if libcachesim::has_shape(line) => Some(Self::LibCacheSim),
            ([_, _, op, _], _) if named(op, "read") || named(op, "write") => Some(Self::CloudPhysics),
            ([first, ..], _) if named(first, "timestamp") => {
                Some(if commas.len() > 5 { Self::Msr } else { Self::Tencent })
            }
            ([first, ..], _) if named(first, "device_id") => Some(Self::Alibaba),
            (_, [_, _, _, _, "Seq" | "Rand", ..]) => Some(Self::StartUp),
            (_, [_, cache, ..]) if disksim::CACHE_WORDS.contains(cache) => Some(Self::DiskSimValidation),
            (_, ["fairhead", "live", "1"]) => Some(Self::Live),
            (_, ["fio", "version", "2", "iolog"]) => Some(Self::IologV2),
            (_, ["fio", "version", "3", "iolog"]) => Some(Self::IologV3),
            ([_, _, _, op, ..], _) if named(op, "read") || named(op, "write") => Some(Self::Msr),
            ([_, op, _, _, _], _) if letter(op) => Some(Self::Alibaba),
            ([_, _, _, op, _, ..], _) if letter(op) => Some(Self::Spc),
            ([a, b, c, d, e], _) if [a, b, c, d, e].iter().all(|s| is_number(s)) => Some(Self::Tencent),
            _ if ftrace::has_shape(line) => Some(Self::Ftrace),
            (_, [disk, cpu, _, time, ..])
                if disk.contains(',') && is_number(cpu) && time.contains('.') && !time.contains(',') =>
            {
                Some(Self::Blkparse)
            }
            ([_], [time, device, block, size, _])
                if time.contains('.') && [device, block, size].iter().all(|s| is_number(s)) =>
            {
                Some(Self::DiskSim)
            }
            ([_], [time, device, sector, size, op @ ("0" | "1")])
                if [time, device, sector, size, op].iter().all(|s| is_number(s)) =>
            {
                Some(Self::MqSim)
            }
            _ => None,
        }
    }

    /// Returns the format of a file that begins with these bytes, or an error that says why there is none.
    pub(crate) fn detect(head: &[u8]) -> Result<Self, String> {
        if head.is_empty() {
            return Err("is empty".to_owned());
        }
        if blktrace::is_magic(head) {
            return Ok(Self::Blktrace);
        }
        if vscsi::has_shape(head) {
            return Ok(Self::Vscsi);
        }
        if head.get(257..262) == Some(b"ustar") {
            return Err("is a tar archive: take the trace out first, as in `tar -xOf FILE`".to_owned());
        }
        if head.starts_with(b"PK\x03\x04") {
            return Err("is a zip archive: take the trace out first, as in `unzip -p FILE`".to_owned());
        }
        if head.starts_with(b"\x17\x08\x44tracing") {
            return Err(
                "is trace-cmd's own file: write `trace-cmd report FILE > TEXT`, and name TEXT".to_owned()
            );
        }
        if head.starts_with(b"PERFILE2") || head.starts_with(b"2ELIFREP") {
            return Err("is perf's own file: write `perf script -i FILE > TEXT`, and name TEXT".to_owned());
        }
        let head = head.strip_prefix(MARK).unwrap_or(head);
        let text = String::from_utf8_lossy(head);
        let mut lines = text.lines().filter(|l| !l.trim().is_empty());
        let recording = lines.clone().find(|l| !l.starts_with('#')).is_none_or(ftrace::is_note);
        let found = match lines.by_ref().find_map(Self::of_line) {
            // Times of DiskSim have a point, but the first may be a whole number.
            Some(Self::MqSim) if lines.any(|l| Self::of_line(l) == Some(Self::DiskSim)) => {
                Some(Self::DiskSim)
            }
            found => found,
        };
        found.or((recording && head.starts_with(b"#")).then_some(Self::Ftrace)).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|f| f.name()).collect();
            format!("is no trace of a known format; those are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format that consists of lines.
pub(crate) trait LineParser {
    /// What a line is turned into: a request or an event.
    type Item;

    /// Parses a line. `None` for a line without information; an error if the line is wrong.
    fn line(
        &mut self,
        line: &str,
        names: &mut Names,
        notes: &mut Notes,
    ) -> Result<Option<Self::Item>, String>;
}

/// Splits a line with commas into exactly `N` fields, without blanks around them.
fn commas<'a, const N: usize>(line: &'a str, what: &str) -> Result<[&'a str; N], String> {
    exactly(line.split(',').map(str::trim).collect(), what)
}

/// Splits a line with blanks into exactly `N` fields.
fn words<'a, const N: usize>(line: &'a str, what: &str) -> Result<[&'a str; N], String> {
    exactly(line.split_ascii_whitespace().collect(), what)
}

fn exactly<'a, const N: usize>(fields: Vec<&'a str>, what: &str) -> Result<[&'a str; N], String> {
    let plural = if fields.len() == 1 { "" } else { "s" };
    let wrong = |fields: Vec<&str>| format!("{} field{plural}; a request has {N}: {what}", fields.len());
    fields.try_into().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_is_told_by_its_line() {
        let lines = [
            ("  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]", Format::Blkparse),
            ("  fio-20569 [001] d..1.  5423.202123:   7,0    Q   R 111168 + 32 [fio]", Format::Ftrace),
            (
                "kworker/7:1H-250 [007] .... 19654.923352: block_rq_issue: 8,0 R 0 () 0 + 8 [k]",
                Format::Ftrace,
            ),
            ("fio version 2 iolog", Format::IologV2),
            ("fio version 3 iolog", Format::IologV3),
            ("128166372003061629,usr,0,Read,7014609920,24576,41286", Format::Msr),
            ("0,R,126703644672,4096,1577808000000626", Format::Alibaba),
            ("1538323200,12910952,128,0,1063", Format::Tencent),
            ("0,20941264,8192,W,0.551706", Format::Spc),
            ("0.5 0 1234 8 1", Format::DiskSim),
            ("R Hit    3962268  12   6657.00000  64047.00000", Format::DiskSimValidation),
            ("sh-7 .000066 8 113248528 Seq 0 8 RA 4.682475 C", Format::StartUp),
            ("fairhead live 1", Format::Live),
            ("TIME(s)     COMM           PID    DISK    T SECTOR     BYTES   LAT(ms)", Format::BioSnoop),
            ("0.000310    Web Content    4210   sda     W 81920      4096       0.25", Format::BioSnoop),
            ("1.5 (udev-worker) 77 sda FF -1 0 -1.000 0.740", Format::BioSnoop),
            ("COMM         PID    TYPE DEV      BLOCK        BYTES     LATms", Format::IoSnoop),
            ("71.500460 71.500880 my prog 2211 WS 8,0 10240008 4096 0.42", Format::IoSnoop),
            ("time,object,op,size", Format::CloudPhysics),
            ("5633800611441,42000745,read,512", Format::CloudPhysics),
            ("4851300 1 524288 16 0", Format::MqSim),
            ("version,time,op,size,lbn", Format::LibCacheSim),
            ("# time, obj_id, obj_size", Format::LibCacheSim),
            ("1,33800,2a,512,42000745", Format::LibCacheSim),
            ("1,33800,28,4096,42000745", Format::LibCacheSim),
        ];
        let binary = [Format::Blktrace, Format::Vscsi];
        for format in Format::ALL.into_iter().filter(|f| !binary.contains(f)) {
            assert!(lines.iter().any(|(_, f)| *f == format), "this test has no line of {format}");
        }
        for (line, format) in lines {
            assert!(Format::ALL.contains(&format), "Format::ALL lacks {format}");
            assert_eq!(Format::of_line(line), Some(format), "{line}");
            assert_eq!(Format::detect(line.as_bytes()), Ok(format), "{line}");
        }
    }

    #[test]
    fn what_is_no_trace_is_told() {
        assert_eq!(Format::detect(b""), Err("is empty".to_owned()));
        assert!(Format::detect(b"hello\nworld\n").unwrap_err().starts_with("is no trace of a known format"));
        assert!(Format::detect(b"PK\x03\x04...").unwrap_err().contains("zip"));
        let mut tar = vec![b'a'; 512];
        tar[257..262].copy_from_slice(b"ustar");
        assert!(Format::detect(&tar).unwrap_err().contains("tar"));
        assert!(Format::detect(b"\x17\x08\x44tracing6\0").unwrap_err().contains("`trace-cmd report FILE"));
        assert!(Format::detect(b"PERFILE2h\0").unwrap_err().contains("`perf script -i FILE"));
        assert_eq!(Format::detect(b"# tracer: nop\n#\n"), Ok(Format::Ftrace));
        assert_eq!(Format::detect(b"1 0 8 8 1\n2.5 0 16 8 1\n"), Ok(Format::DiskSim));
        assert_eq!(Format::detect(b"1 0 8 8 1\n2 0 16 8 1\n"), Ok(Format::MqSim));
        // Five numbers: the fourth is Tencent's type.
        assert_eq!(Format::detect(b"1,33800,28,1,42000745\n"), Ok(Format::Tencent));
    }
}
