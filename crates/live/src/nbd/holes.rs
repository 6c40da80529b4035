//! Where a file has holes.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Returns the extents of a range, in order: lengths, and whether each is a hole. At most `most` of them; the
/// rest of the range is left out. Where the file system does not say, there are data.
pub(super) fn extents(file: &File, offset: u64, len: u32, most: usize) -> Vec<(u32, bool)> {
    let end = offset + u64::from(len);
    let (mut at, mut found) = (offset, Vec::new());
    while at < end && found.len() < most {
        let data = seek(file, at, libc::SEEK_DATA);
        let (next, is_hole) = match data {
            Ok(data) if data > at => (data, true),
            Ok(_) => (seek(file, at, libc::SEEK_HOLE).unwrap_or(end), false),
            // Behind the last data.
            Err(libc::ENXIO) => (end, true),
            Err(_) => (end, false),
        };
        let next = next.clamp(at + 1, end);
        found.push(((next - at) as u32, is_hole));
        at = next;
    }
    found
}

fn seek(file: &File, at: u64, whence: i32) -> Result<u64, i32> {
    let at = i64::try_from(at).map_err(|_| libc::EINVAL)?;
    // SAFETY: it names no memory, and no code reads the file by its position.
    let found = unsafe { libc::lseek(file.as_raw_fd(), at, whence) };
    u64::try_from(found).map_err(|_| std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn extents_add_up_and_data_are_never_called_a_hole() {
        let path = std::env::temp_dir().join(format!("fairhead-holes-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[1; 4096], 256 << 10).unwrap();
        let all = extents(&file, 0, 1 << 20, 100);
        assert_eq!(all.iter().map(|e| e.0).sum::<u32>(), 1 << 20);
        let mut at = 0;
        for &(len, is_hole) in &all {
            let has_data = at <= 256 << 10 && at + len > 256 << 10;
            assert!(!(is_hole && has_data), "{all:?}");
            at += len;
        }
        assert_eq!(extents(&file, 4096, 8192, 1).len(), 1);
        let inside = extents(&file, (256 << 10) + 512, 1024, 9);
        assert_eq!(inside, [(1024, false)]);
    }
}
