//! The conversation with a virtual machine: what it says of features, memory and rings, and what becomes of
//! it.
//!
//! One thread for each device has it (`device.rs`). The messages are the crate `vhost`'s; here is what they
//! mean. A ring that has everything it needs (size, addresses, memory, an eventfd for kicks, and is enabled)
//! goes to the engine's thread; when one of these changes, it comes back first. To come back, it waits until
//! all that was read from it is answered.
//!
//! What is wrong ends the connection, and nothing else. Rings that are not there, sizes, addresses, and files
//! that are no memory or no eventfds are refused here, before the engine's thread sees them.
//!
//! What it does not do: live migration (dirty logs, transfer of state), postcopy, packed rings, polling
//! without eventfds.
//!
//! Source: QEMU's documentation, *Vhost-user Protocol*.

use super::command::{Command, Setup, What};
use super::config_space::{CACHE_AT, CONFIG_ASKED_MAX, EVENT_INDEX, FLUSH, PROTOCOL_FEATURES};
use super::event_fd::{self, Caller};
use super::inflight::{self, Inflight};
use super::memory::{GuestMemory, REGIONS_MAX, Region, RegionFacts};
use super::shared::Shared;
use super::split_ring::{Addresses, SIZE_MAX, SplitRing};
use std::fs::File;
use std::io;
use std::sync::{Arc, mpsc};
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Backend, Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};

/// The way to the engine's thread.
pub(super) trait Engine: Send {
    /// Returns whether it listens.
    fn tell(&self, command: Command) -> bool;
}

/// A ring, as far as it is known.
#[derive(Debug, Default)]
struct RingState {
    size: u16,
    at: Option<Addresses>,
    /// How far it was read.
    base: u16,
    kick: Option<Arc<File>>,
    call: Option<File>,
    is_enabled: bool,
    /// Whether the engine's thread has it.
    is_running: bool,
}

/// See the [module](self).
pub(super) struct Session<E> {
    engine: E,
    device: usize,
    id: u64,
    shared: Arc<Shared>,
    features: u64,
    protocol: u64,
    regions: Vec<Arc<Region>>,
    memory: Arc<GuestMemory>,
    rings: Vec<RingState>,
    inflight: Option<Inflight>,
}

fn refused(e: impl std::fmt::Display) -> Error {
    Error::ReqHandlerError(io::Error::other(e.to_string()))
}

impl<E: Engine> Session<E> {
    pub(super) fn new(engine: E, device: usize, id: u64, shared: Arc<Shared>) -> Self {
        engine.tell(Command { device, session: id, what: What::Begin });
        Self {
            engine,
            device,
            id,
            rings: (0..shared.queues()).map(|_| RingState::default()).collect(),
            shared,
            features: 0,
            protocol: 0,
            regions: Vec::new(),
            memory: Arc::default(),
            inflight: None,
        }
    }

    /// Whether the virtual machine wants to hear of changes of the configuration.
    pub(super) const fn hears_changes(&self) -> bool {
        self.protocol & VhostUserProtocolFeatures::CONFIG.bits() != 0
    }

    fn tell(&self, what: What) -> Result<()> {
        let is_told = self.engine.tell(Command { device: self.device, session: self.id, what });
        if is_told { Ok(()) } else { Err(refused("the engine has stopped")) }
    }

    fn ring(&mut self, index: usize) -> Result<&mut RingState> {
        self.rings.get_mut(index).ok_or_else(|| refused(format_args!("there is no ring {index}")))
    }

    /// Takes a ring back from the engine's thread, if it is there. Waits until all is answered.
    fn stop(&mut self, index: usize) -> Result<()> {
        if !std::mem::replace(&mut self.ring(index)?.is_running, false) {
            return Ok(());
        }
        let (reply, stopped) = mpsc::channel();
        self.tell(What::Stop(index, reply))?;
        let base = stopped.recv().map_err(|_| refused("the engine has stopped"))?;
        self.ring(index)?.base = base;
        Ok(())
    }

    /// Hands a ring to the engine's thread, if it has all that it needs and is not there.
    fn start(&mut self, index: usize) -> Result<()> {
        // Without this feature, rings are enabled from the start.
        let is_always_enabled = self.features & PROTOCOL_FEATURES == 0;
        let has_event_index = self.features & EVENT_INDEX != 0;
        let is_write_through = self.features & FLUSH == 0;
        let memory = Arc::clone(&self.memory);
        let marks = self.inflight.clone();
        let ring = self.ring(index)?;
        let (Some(at), Some(kick)) = (ring.at, ring.kick.clone()) else { return Ok(()) };
        if ring.is_running || ring.size == 0 || !(ring.is_enabled || is_always_enabled) || memory.is_empty() {
            return Ok(());
        }
        let split = SplitRing::new(memory, ring.size, at, ring.base, has_event_index).map_err(refused)?;
        let marks = marks.and_then(|all| all.of_ring(index, ring.size));
        let call = ring.call.as_ref().map(caller).transpose()?;
        ring.is_running = true;
        self.tell(What::Start(index, Box::new(Setup { split, kick, call, marks, is_write_through })))
    }

    /// Changes something that all rings depend on.
    fn change(&mut self, change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        (0..self.rings.len()).try_for_each(|i| self.stop(i))?;
        change(self)?;
        (0..self.rings.len()).try_for_each(|i| self.start(i))
    }

    /// Changes a ring.
    fn change_ring(&mut self, index: usize, change: impl FnOnce(&mut RingState)) -> Result<()> {
        self.stop(index)?;
        change(self.ring(index)?);
        self.start(index)
    }

    fn use_regions(&mut self, regions: Vec<Arc<Region>>) -> Result<()> {
        self.memory = Arc::new(GuestMemory::new(regions.clone()).map_err(refused)?);
        self.regions = regions;
        Ok(())
    }
}

fn caller(file: &File) -> Result<Box<Caller>> {
    file.try_clone().and_then(Caller::new).map(Box::new).map_err(refused)
}

fn unsupported<T>() -> Result<T> {
    Err(Error::InvalidOperation("not offered"))
}

impl<E: Engine> VhostUserBackendReqHandlerMut for Session<E> {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.reset_device()
    }

    fn reset_device(&mut self) -> Result<()> {
        for index in 0..self.rings.len() {
            self.stop(index)?;
            *self.ring(index)? = RingState::default();
        }
        self.features = 0;
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.shared.facts().features())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        let offered = self.shared.facts().features();
        if features & !offered != 0 {
            return Err(refused(format_args!("features {:x} are not offered", features & !offered)));
        }
        self.change(|s| {
            s.features = features;
            Ok(())
        })
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        let new = regions.iter().zip(&files).map(|(region, file)| {
            let facts = RegionFacts {
                guest: region.guest_phys_addr,
                user: region.user_addr,
                len: region.memory_size,
                offset: region.mmap_offset,
            };
            Region::new(facts, file).map(Arc::new).map_err(refused)
        });
        let new = new.collect::<Result<Vec<_>>>()?;
        self.change(|s| s.use_regions(new))?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let size = u16::try_from(num).ok().filter(|n| n.is_power_of_two() && *n <= SIZE_MAX);
        let size = size
            .ok_or_else(|| refused(format_args!("a ring of {num} descriptors: a power of two, 1 to 1024")))?;
        self.change_ring(index as usize, |ring| ring.size = size)
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _: u64,
    ) -> Result<()> {
        if flags.contains(VhostUserVringAddrFlags::VHOST_VRING_F_LOG) {
            return unsupported();
        }
        let at = Some(Addresses { descriptors, available, used });
        if self.ring(index as usize)?.at == at {
            return Ok(());
        }
        self.change_ring(index as usize, |ring| ring.at = at)
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let base = u16::try_from(base).map_err(|_| refused("an index of more than 16 bits"))?;
        self.change_ring(index as usize, |ring| ring.base = base)
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        self.stop(index as usize)?;
        let ring = self.ring(index as usize)?;
        // It begins again with the next eventfd.
        ring.kick = None;
        Ok(VhostUserVringState::new(index, ring.base.into()))
    }

    fn set_vring_kick(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let file = file.ok_or_else(|| refused("a ring without an eventfd for kicks"))?;
        event_fd::check(&file).map_err(refused)?;
        self.change_ring(index.into(), |ring| ring.kick = Some(Arc::new(file)))
    }

    fn set_vring_call(&mut self, index: u8, file: Option<File>) -> Result<()> {
        let index = usize::from(index);
        if let Some(file) = &file {
            event_fd::check(file).map_err(refused)?;
        }
        let ring = self.ring(index)?;
        let call = if ring.is_running { file.as_ref().map(caller).transpose()? } else { None };
        ring.call = file;
        if ring.is_running { self.tell(What::Call(index, call)) } else { Ok(()) }
    }

    fn set_vring_err(&mut self, index: u8, _: Option<File>) -> Result<()> {
        self.ring(index.into()).map(|_| ())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        type F = VhostUserProtocolFeatures;
        Ok(F::MQ
            | F::CONFIG
            | F::REPLY_ACK
            | F::INFLIGHT_SHMFD
            | F::BACKEND_REQ
            | F::RESET_DEVICE
            | F::CONFIGURE_MEM_SLOTS)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        self.protocol = features;
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.rings.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        if self.ring(index as usize)?.is_enabled == enable {
            return Ok(());
        }
        self.change_ring(index as usize, |ring| ring.is_enabled = enable)
    }

    fn get_config(&mut self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let config = self.shared.facts().config();
        let end = offset.checked_add(size).filter(|end| *end as usize <= CONFIG_ASKED_MAX);
        let end = end.ok_or_else(|| refused("the configuration is shorter"))?;
        Ok(config[offset as usize..end as usize].to_vec())
    }

    fn set_config(&mut self, offset: u32, bytes: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        match (offset, bytes) {
            (CACHE_AT, [value @ (0 | 1)]) => {
                self.shared.set_cached(*value == 1);
                Ok(())
            }
            _ => Err(refused("of the configuration only the cache can be set, to 0 or 1")),
        }
    }

    fn set_backend_req_fd(&mut self, backend: Backend) {
        // The crate cannot send what is to be sent there: `device.rs` takes this message itself.
        drop(backend);
    }

    fn set_gpu_socket(&mut self, _: GpuBackend) -> Result<()> {
        unsupported()
    }

    fn get_shared_object(&mut self, _: VhostUserSharedMsg) -> Result<File> {
        unsupported()
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (rings, size) = (wanted.num_queues, wanted.queue_size);
        if rings == 0 || usize::from(rings) > self.rings.len() || size == 0 || size > SIZE_MAX {
            return Err(refused("requests in flight of rings that there are not"));
        }
        let file = inflight::create(rings, size).map_err(refused)?;
        Ok((VhostUserInflight::new(inflight::needed(rings, size), 0, rings, size), file))
    }

    fn set_inflight_fd(&mut self, given: &VhostUserInflight, file: File) -> Result<()> {
        let VhostUserInflight { mmap_size, mmap_offset, num_queues, queue_size } = *given;
        let inflight =
            Inflight::open(&file, mmap_offset, mmap_size, num_queues, queue_size).map_err(refused)?;
        self.change(|s| {
            s.inflight = Some(inflight);
            Ok(())
        })
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(REGIONS_MAX as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        let region = Region::new(facts_of(region), &file).map(Arc::new).map_err(refused)?;
        let all: Vec<_> = self.regions.iter().cloned().chain([region]).collect();
        self.change(|s| s.use_regions(all))?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        let gone = facts_of(region);
        let is_it =
            |r: &Arc<Region>| (r.facts.guest, r.facts.user, r.facts.len) == (gone.guest, gone.user, gone.len);
        let all: Vec<_> = self.regions.iter().filter(|r| !is_it(r)).cloned().collect();
        if all.len() == self.regions.len() {
            return Err(refused("a region that there is not"));
        }
        self.change(|s| s.use_regions(all))
    }

    fn set_device_state_fd(
        &mut self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        unsupported()
    }

    fn check_device_state(&mut self) -> Result<()> {
        unsupported()
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        unsupported()
    }

    fn set_log_base(&mut self, _: &VhostUserLog, _: File) -> Result<()> {
        unsupported()
    }
}

fn facts_of(region: &VhostUserSingleMemoryRegion) -> RegionFacts {
    RegionFacts {
        guest: region.guest_phys_addr,
        user: region.user_addr,
        len: region.memory_size,
        offset: region.mmap_offset,
    }
}
