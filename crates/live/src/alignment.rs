//! The alignment that direct I/O needs.

use crate::buffer::Pool;
use crate::opening::open_blocks;
use crate::store::is_in_memory;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What offsets, lengths and addresses have to be multiples of, where the page cache is bypassed; 1 where
/// any will do. A file system that does not say is tried out, where there are data: of a hole some give any
/// bytes.
pub(crate) fn block_size(path: &Path) -> u32 {
    let Ok(file) = open_blocks(path, false, libc::O_DIRECT) else { return 1 };
    if is_in_memory(&file) {
        // There is no cache to bypass.
        return 1;
    }
    if let Some(told) = direct_alignment(&file).filter(|told| told.is_power_of_two()) {
        return told;
    }
    // SAFETY: it names no memory.
    let Ok(data) = u64::try_from(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_DATA) }) else {
        return 4096;
    };
    let data = data.next_multiple_of(4096);
    let pool = Pool::new(0);
    let mut page = pool.buffer(4096);
    let mut can = |size: usize| file.read_at(&mut page[..size], data + size as u64).is_ok();
    [1, 512, 4096].into_iter().find(|&size| can(size)).unwrap_or(4096) as u32
}

/// The alignment of offsets, as the file system says.
fn direct_alignment(file: &File) -> Option<u32> {
    // SAFETY: all zeros are numbers.
    let mut told: libc::statx = unsafe { std::mem::zeroed() };
    let (fd, mask) = (file.as_raw_fd(), libc::STATX_DIOALIGN);
    // SAFETY: an empty string that ends with a zero, and a place for the answer; both outlive the call.
    let result = unsafe { libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, mask, &raw mut told) };
    (result == 0 && told.stx_mask & mask != 0).then_some(told.stx_dio_offset_align)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    #[test]
    fn blocks_of_a_hole_are_as_large_as_those_of_data() {
        // Beside the programs, which are on a disk wherever the folder for temporary files is.
        let folder = std::env::current_exe().unwrap();
        let path = folder.with_file_name(format!("fairhead-holes-{}", std::process::id()));
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let hole = block_size(&path);
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let data = block_size(&path);
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path);
        let read =
            file.and_then(|f| f.read_at(&mut Pool::new(0).buffer(4096)[..hole as usize], u64::from(hole)));
        std::fs::remove_file(&path).unwrap();
        // A file system may have no direct reads at all: then the page cache is gone through, and that reads
        // any bytes.
        assert_eq!(read.map_or(1, |n| n as u32), hole);
        assert_eq!(hole, data);
    }
}
