//! A bio's data: memory, or pages on their way to a socket.

use crate::buffer::Buffer;
use crate::pipes::Piped;

/// The data of a bio.
#[derive(Debug)]
pub(crate) enum Data {
    /// Data of a write, or room for those of a read.
    Memory(Buffer),
    /// Data of a read, if they can be had so; else the store puts memory in the place of it.
    Piped(Piped),
}

impl Data {
    /// The memory, if it is that.
    pub(crate) fn memory(self) -> Option<Buffer> {
        match self {
            Self::Memory(buffer) => Some(buffer),
            Self::Piped(_) => None,
        }
    }

    /// The memory.
    ///
    /// # Panics
    /// If the data are in pipes.
    pub(crate) fn memory_mut(&mut self) -> &mut Buffer {
        match self {
            Self::Memory(buffer) => buffer,
            Self::Piped(_) => panic!("the data are in pipes"),
        }
    }
}
