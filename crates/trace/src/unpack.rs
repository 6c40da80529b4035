//! Decompresses traces while they are read. The first bytes show which compression it is.
//!
//! Supported are `gzip`, `xz`, `zstd` and `bzip2`, including files that were concatenated, as `cat a.gz b.gz`
//! and the parallel compressors do. All decoders are in Rust and take bounded memory; a file that needs more
//! is refused. Archives (`tar`, `zip`) are refused, because they may hold many traces.

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// The memory that decompressing `xz` may take, in KiB: enough for its strongest preset.
const XZ_MEMORY_KIB: u32 = 128 * 1024;

/// An input, starting with the bytes that were read of it already.
pub(crate) type Rest = io::Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

/// Returns the first `most` bytes (fewer at the end of the input), and an input that starts with them again.
pub(crate) fn peek(mut input: Box<dyn Read>, most: u64) -> io::Result<(Vec<u8>, Rest)> {
    let mut head = Vec::new();
    input.by_ref().take(most).read_to_end(&mut head)?;
    let again = Cursor::new(head.clone());
    Ok((head, again.chain(input)))
}

/// Fills the buffer and returns the number of bytes that there were.
pub(crate) fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Returns the decompressed input, or the input itself if it is not compressed.
pub(crate) fn unpack(input: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    let (head, input) = peek(input, 6)?;
    Ok(match head[..] {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(input)),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(XzReader::new_mem_limit(input, true, XZ_MEMORY_KIB)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Zstd { input: Some(BufReader::new(input)), frame: None }),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Box::new(MultiBzDecoder::new(input)),
        _ => Box::new(input),
    })
}

/// All frames of a file in `zstd`'s format; its decoder reads one frame only.
struct Zstd<R: BufRead> {
    /// `None` while a frame is being read.
    input: Option<R>,
    frame: Option<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>,
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(frame) = &mut self.frame {
                let n = frame.read(buffer)?;
                if n > 0 {
                    return Ok(n);
                }
            }
            if let Some(frame) = self.frame.take() {
                self.input = Some(frame.into_inner());
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            if input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new(input);
            self.frame = Some(frame.map_err(|e| io::Error::new(ErrorKind::InvalidData, e.to_string()))?);
        }
    }
}
