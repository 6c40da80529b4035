//! Which driver of Linux a drive is behind, and so how many requests the block layer can have at it.
//!
//! A *tag* is the driver's, a drive's *depth* is its own: a request needs a tag to leave the scheduler, and
//! the drive takes as many at a time as it likes.
//!
//! | driver | tags | from |
//! |---|---:|---|
//! | `usb` | 1 | usb-storage sends one command at a time |
//! | `pata` | 1 | libata without a command queue in the controller |
//! | `mmc` | 64, or those of the card's command queue | `mmc_block` keeps as many ready for one-by-one cards |
//! | `ahci` | 32 | the slots of a port, whatever the drive does with them |
//! | `sas` | 1024 | of a controller, for all of its drives |
//! | `nvme` | the queue's | for each hardware queue |
//! | `virtio` | 256 | the ring that QEMU makes |
//! | `loop` | 128 | `hw_queue_depth` |
//!
//! With a scheduler, `nr_requests` is twice the smaller of the tags and 128.
//
//= docs/reference/nvme.md#1-the-path-of-a-request tags

/// A driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Driver {
    /// usb-storage: most USB disks, sticks and card readers.
    Usb,
    /// IDE drives.
    Pata,
    /// SD cards and eMMC.
    Mmc,
    /// SATA drives.
    Ahci,
    /// SAS drives, and sets behind a controller.
    Sas,
    /// NVMe drives, which have a hardware queue for each processor.
    Nvme,
    /// Disks of virtual machines.
    Virtio,
    /// Files as block devices.
    Loop,
}

impl Driver {
    /// All drivers, by their names in disk files.
    pub const NAMES: [(&'static str, Self); 8] = [
        ("usb", Self::Usb),
        ("pata", Self::Pata),
        ("mmc", Self::Mmc),
        ("ahci", Self::Ahci),
        ("sas", Self::Sas),
        ("nvme", Self::Nvme),
        ("virtio", Self::Virtio),
        ("loop", Self::Loop),
    ];

    /// The most commands that a SATA drive queues.
    const AHCI: u16 = 32;
    /// The most commands that eMMC and SAS drives queue. What queues more is an NVMe drive.
    const SHALLOW: u16 = 256;

    /// Returns the driver of a drive that takes `depth` commands at a time, if its description has none.
    pub(crate) const fn usual(depth: u16) -> Self {
        if depth <= Self::AHCI {
            Self::Ahci
        } else if depth <= Self::SHALLOW {
            Self::Sas
        } else {
            Self::Nvme
        }
    }

    /// The number of tags of each hardware queue, for a drive that takes `depth` commands at a time.
    #[must_use]
    pub const fn tags(self, depth: u16) -> u16 {
        match self {
            Self::Usb | Self::Pata => 1,
            Self::Mmc if depth == 1 => 64,
            Self::Mmc | Self::Nvme => depth,
            Self::Ahci => Self::AHCI,
            Self::Sas => 1024,
            Self::Virtio => 256,
            Self::Loop => 128,
        }
    }

    /// The driver's name in disk files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, driver)| *driver == self).map_or("", |(name, _)| name)
    }
}
