//! The data of a bio: memory, pages on their way from or to a socket, bytes of a file that stay where they
//! are, or a question about the file and its answer.

use crate::buffer::Buffer;
use crate::extents::{Extent, Question};
use crate::guest_data::GuestData;
use crate::mapped::Window;
use crate::pipes::{Load, Piped};

/// The data of a bio.
#[derive(Debug)]
pub(crate) enum Data {
    /// Data of a write, or room for those of a read.
    Memory(Buffer),
    /// Data of a read, if they can be had so; else the store puts memory in the place of it.
    Piped(Piped),
    /// Data of a read that stay in the file until they are sent.
    Mapped(Window),
    /// Data of a write, in a pipe; the store may put memory in the place of it.
    Load(Load),
    /// Data of a read or write that are where another program has them.
    Guest(GuestData),
    /// What is asked about the extents of a file, and the answer.
    Question(Question),
    Extents(Vec<Extent>),
}

impl Data {
    /// The memory, if it is that.
    pub(crate) fn memory(self) -> Option<Buffer> {
        match self {
            Self::Memory(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The memory.
    ///
    /// # Panics
    /// If the data are elsewhere.
    pub(crate) fn memory_mut(&mut self) -> &mut Buffer {
        match self {
            Self::Memory(buffer) => buffer,
            _ => panic!("the data are not in memory"),
        }
    }

    /// Copies what is there to where it belongs in `memory`, which is as long as all data.
    pub(crate) fn unload(self, memory: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Memory(_) | Self::Guest(_) | Self::Question(_) | Self::Extents(_) => Ok(()),
            Self::Piped(piped) => piped.unload(memory),
            Self::Mapped(window) => {
                memory.fill(0);
                window.read(memory)
            }
            Self::Load(load) => load.unload(memory),
        }
    }
}
