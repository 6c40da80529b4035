//! SCSI commands, as traces of virtual disks name them.

use crate::record::Op;

/// Returns the operation of a command's code. `None` for commands that move no data of the disk.
//= SCSI Block Commands 4 "Commands for direct access block devices"
pub(super) const fn operation(code: u8) -> Option<Op> {
    Some(match code {
        // READ and WRITE of 6, 10, 12 and 16 bytes, and WRITE AND VERIFY.
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Op::Write,
        // SYNCHRONIZE CACHE of 10 and 16 bytes.
        0x35 | 0x91 => Op::Flush,
        _ => return None,
    })
}
