//! A guest's memory, as its virtual machine shares it: regions of files, which are mapped here.
//!
//! An address of the guest's is looked up in the table of regions; it is nothing more than a number before.
//! The addresses of the rings are those of the virtual machine's own process, and are looked up likewise.
//!
//! **Which files.** Only memory: memfd, tmpfs and hugetlbfs. An access to any other file may wait for a
//! server behind it, such as one of FUSE that the guest's owner runs, and with it the thread that serves all
//! tenants. Memory that is cut off later: [`sigbus`](super::sigbus).
//!
//! What it does not do: dirty logs, so a guest cannot be migrated live.

use super::sigbus::Mapping;
use crate::guest_data::Part;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::NonNull;
use std::sync::Arc;

/// The most regions of one guest.
pub(super) const REGIONS_MAX: usize = 32;

/// The most memory of one guest, in bytes. It bounds how much of the address space of the process one tenant
/// takes.
const MEMORY_MAX: u64 = 1 << 41;

/// The number of hugetlbfs, in statfs(2).
const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;

/// What a virtual machine says of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RegionFacts {
    /// Where the guest has it.
    pub(super) guest: u64,
    /// Where the process of the virtual machine has it.
    pub(super) user: u64,
    pub(super) len: u64,
    /// Where it begins in the file.
    pub(super) offset: u64,
}

/// A region that is mapped.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) facts: RegionFacts,
    mapping: Mapping,
    /// Where the region begins in the mapping, which begins with a whole page of the file.
    skipped: usize,
}

/// Refuses a file that is no memory.
pub(super) fn check_is_memory(file: &File) -> io::Result<u64> {
    let facts = rustix::fs::fstatfs(file)?;
    let is_memory = [libc::TMPFS_MAGIC, HUGETLBFS_MAGIC].contains(&facts.f_type);
    if !is_memory {
        return Err(io::Error::other("a file that is neither a memfd nor on tmpfs or hugetlbfs"));
    }
    Ok(facts.f_bsize as u64)
}

impl Region {
    /// Maps a region of a file.
    ///
    /// # Errors
    /// If the file is no memory, is too short, or cannot be mapped.
    pub(super) fn new(facts: RegionFacts, file: &File) -> io::Result<Self> {
        let page = check_is_memory(file)?;
        let RegionFacts { guest, user, len, offset } = facts;
        let ends = [guest.checked_add(len), user.checked_add(len), offset.checked_add(len)];
        let [Some(_), Some(_), Some(end)] = ends else {
            return Err(io::Error::other("a region that reaches beyond the last address"));
        };
        if len == 0 || len > MEMORY_MAX || end > file.metadata()?.size() {
            return Err(io::Error::other("a region that is empty, too large, or reaches beyond its file"));
        }
        let begin = offset / page * page;
        let mapped = usize::try_from((end - begin).next_multiple_of(page)).map_err(io::Error::other)?;
        let mapping = Mapping::new(file.as_fd(), begin, mapped)?;
        Ok(Self { facts, mapping, skipped: (offset - begin) as usize })
    }

    /// The place of a byte of the region.
    fn at(&self, offset: u64) -> NonNull<u8> {
        debug_assert!(offset < self.facts.len && self.skipped + (offset as usize) < self.mapping.len());
        // SAFETY: inside the mapping, as the caller has looked up.
        unsafe { self.mapping.start().add(self.skipped + offset as usize) }
    }
}

/// All regions of a guest.
#[derive(Debug, Default)]
pub(super) struct GuestMemory {
    /// In the order of the guest's addresses.
    regions: Vec<Arc<Region>>,
}

impl GuestMemory {
    /// # Errors
    /// If regions overlap, or there are too many.
    pub(super) fn new(mut regions: Vec<Arc<Region>>) -> io::Result<Self> {
        regions.sort_by_key(|r| r.facts.guest);
        let overlap = regions.windows(2).any(|w| w[0].facts.guest + w[0].facts.len > w[1].facts.guest);
        let all = regions.iter().try_fold(0u64, |all, r| all.checked_add(r.facts.len));
        if overlap || regions.len() > REGIONS_MAX || all.is_none_or(|all| all > MEMORY_MAX) {
            return Err(io::Error::other("regions that overlap, too many of them, or too much memory"));
        }
        Ok(Self { regions })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Whether some of it was cut off by its owner.
    pub(super) fn is_lost(&self) -> bool {
        self.regions.iter().any(|r| r.mapping.is_lost())
    }

    /// The region with this address of the guest's, and how many bytes of the region are before it.
    fn find(&self, address: u64) -> Option<(&Region, u64)> {
        // Most guests have one or two.
        let before = self.regions.partition_point(|r| r.facts.guest <= address);
        let region = &self.regions[before.checked_sub(1)?];
        let at = address - region.facts.guest;
        (at < region.facts.len).then_some((region, at))
    }

    /// The place of `len` bytes that are in one region.
    pub(super) fn place(&self, address: u64, len: u64) -> Option<NonNull<u8>> {
        let (region, at) = self.find(address)?;
        (len <= region.facts.len - at).then(|| region.at(at))
    }

    /// The place of `len` bytes at an address of the virtual machine's process.
    pub(super) fn place_of_user(&self, address: u64, len: u64) -> Option<NonNull<u8>> {
        self.regions.iter().find_map(|r| {
            let at = address.checked_sub(r.facts.user).filter(|at| *at < r.facts.len)?;
            (len <= r.facts.len - at).then(|| r.at(at))
        })
    }

    /// Adds the parts of `len` bytes at an address of the guest's; there may be several, if regions follow
    /// each other. Returns whether the guest has such memory.
    pub(super) fn parts(&self, mut address: u64, mut len: u32, into: &mut Vec<Part>) -> bool {
        while len > 0 {
            let Some((region, at)) = self.find(address) else { return false };
            let here = (region.facts.len - at).min(len.into()) as u32;
            into.push(Part { start: region.at(at), len: here });
            len -= here;
            let Some(next) = address.checked_add(here.into()) else { return len == 0 };
            address = next;
        }
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    /// A file in memory.
    pub(in crate::vhost) fn memory_file(len: u64) -> File {
        // SAFETY: the name ends with a zero; the descriptor is new.
        let file = unsafe { File::from_raw_fd(libc::memfd_create(c"guest".as_ptr(), 0)) };
        file.set_len(len).unwrap();
        file
    }

    /// Memory with these regions: address and length.
    pub(in crate::vhost) fn memory(regions: &[(u64, u64)]) -> GuestMemory {
        let all = regions.iter().map(|&(guest, len)| {
            let facts = RegionFacts { guest, user: guest + (1 << 40), len, offset: 0 };
            Arc::new(Region::new(facts, &memory_file(len)).unwrap())
        });
        GuestMemory::new(all.collect()).unwrap()
    }

    #[test]
    fn addresses_are_looked_up_and_nothing_else_is_believed() {
        let memory = memory(&[(0x10000, 0x4000), (0x14000, 0x1000), (0x100_0000, 0x2000)]);
        assert!(memory.place(0x10000, 0x4000).is_some());
        assert!(memory.place(0x13fff, 2).is_none(), "in two regions");
        for (address, len) in
            [(0, 1), (0xffff, 1), (0x15000, 1), (0x100_2000, 1), (u64::MAX, 1), (u64::MAX, u64::MAX)]
        {
            assert!(memory.place(address, len).is_none(), "{address:x}");
        }
        let mut parts = Vec::new();
        assert!(memory.parts(0x13000, 0x2000, &mut parts));
        assert_eq!(parts.iter().map(|p| p.len).collect::<Vec<_>>(), [0x1000, 0x1000]);
        assert!(!memory.parts(0x13000, 0x2001, &mut Vec::new()));
        assert!(!memory.parts(u64::MAX, 2, &mut Vec::new()));
        assert!(memory.place_of_user((1 << 40) + 0x10010, 16).is_some());
        assert!(memory.place_of_user(0x10010, 16).is_none());
    }

    #[test]
    fn regions_are_checked() {
        let file = memory_file(0x4000);
        let facts = RegionFacts { guest: 0, user: 0, len: 0x4000, offset: 0 };
        assert!(Region::new(facts, &file).is_ok());
        for wrong in [
            RegionFacts { len: 0, ..facts },
            RegionFacts { len: 0x4001, ..facts },
            RegionFacts { offset: 1, ..facts },
            RegionFacts { offset: u64::MAX, ..facts },
            RegionFacts { guest: u64::MAX, ..facts },
            RegionFacts { user: u64::MAX - 0x3fff + 1, ..facts },
            RegionFacts { len: u64::MAX, ..facts },
        ] {
            assert!(Region::new(wrong, &file).is_err(), "{wrong:?}");
        }
        let part = Region::new(RegionFacts { len: 0x1000, offset: 0x1800, ..facts }, &file).unwrap();
        file.set_len(0x4000).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[9], 0x1800).unwrap();
        // SAFETY: inside the region.
        assert_eq!(unsafe { part.at(0).read() }, 9, "its first byte is at its offset");
        let disk = File::open("/proc/self/exe").unwrap();
        assert!(Region::new(RegionFacts { len: 0x1000, ..facts }, &disk).is_err(), "no memory");
        let one = || Arc::new(Region::new(facts, &file).unwrap());
        assert!(GuestMemory::new(vec![one(), one()]).is_err(), "they overlap");
    }

    #[test]
    fn what_is_cut_off_is_lost() {
        let file = memory_file(0x4000);
        let facts = RegionFacts { guest: 0x1000, user: 0, len: 0x4000, offset: 0 };
        let memory = GuestMemory::new(vec![Arc::new(Region::new(facts, &file).unwrap())]).unwrap();
        assert!(!memory.is_lost());
        file.set_len(0).unwrap();
        let at = memory.place(0x2000, 1).unwrap();
        // SAFETY: inside the region.
        assert_eq!(unsafe { at.read_volatile() }, 0);
        assert!(memory.is_lost());
    }
}
