//! Compressed traces: told by how they begin, unpacked as they are read.
//!
//! `gzip`, `xz`, `zstd` and `bzip2`, each also when several were put behind one another, as `cat a.gz b.gz` and the parallel packers
//! do. All in Rust, no C; each takes bounded memory, and a file that asks for more is refused. Archives (`tar`, `zip`) are not
//! opened: they may hold many traces.

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// What unpacking `xz` may take: enough for the strongest of its presets.
const XZ_MEMORY_KIB: u32 = 128 * 1024;

/// Begins with what was read of it already.
pub(crate) type Rest = io::Chain<Cursor<Vec<u8>>, Box<dyn Read>>;

/// The first bytes, `most` of them unless the input ends, and all of it again.
pub(crate) fn peek(mut input: Box<dyn Read>, most: u64) -> io::Result<(Vec<u8>, Rest)> {
    let mut head = Vec::new();
    input.by_ref().take(most).read_to_end(&mut head)?;
    let again = Cursor::new(head.clone());
    Ok((head, again.chain(input)))
}

/// The input as it was before it was packed, if it was.
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

/// All frames of a file in `zstd`'s format, where the decoder knows of one.
struct Zstd<R: BufRead> {
    /// Between frames.
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
