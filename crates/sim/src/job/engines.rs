//! The I/O engines: those that are simulated, and why the others are not.
//!
//! | engines | what the disk sees |
//! |---|---|
//! | `sync psync vsync pvsync pvsync2 mmap splice` | one call at a time |
//! | `libaio io_uring posixaio` | `iodepth` calls at a time |
//! | `null` | nothing: a call is done when it is made |
//!
//! The rest moves no data, or moves it past the scheduler, or moves it somewhere else than to a disk. Some
//! have options of their own, which fio refuses with any other engine; so do we.
//
//= fio-3.33 --enghelp of every engine; HOWTO "I/O engine", "I/O engine specific parameters"

use super::error::clean;
use super::load::Engine;

/// Engines that are simulated.
pub(super) const ENGINES: &[(&str, Engine)] = &[
    ("sync", Engine::Sync),
    ("psync", Engine::Sync),
    ("vsync", Engine::Sync),
    ("pvsync", Engine::Sync),
    ("pvsync2", Engine::Sync),
    ("mmap", Engine::Sync),
    ("splice", Engine::Sync),
    ("libaio", Engine::Async),
    ("io_uring", Engine::Async),
    ("posixaio", Engine::Async),
    ("null", Engine::Null),
];

const METADATA: &str = "changes files' metadata and moves no data";
const NETWORK: &str = "does I/O over a network and not to a disk";
const PASSED: &str = "sends commands to the device past the scheduler; libaio or io_uring go through it";
const MEMORY: &str = "stores to persistent memory, where there is no disk and no scheduler";
const SYSTEM: &str = "is another operating system's; libaio or io_uring do the same here";

/// Engines that are not, and why.
const NOT_SIMULATED: &[(&str, &str)] = &[
    ("cpuio", "burns CPU time and does no I/O"),
    ("exec", "runs a program and does no I/O"),
    ("ftruncate", METADATA),
    ("filecreate", METADATA),
    ("filestat", METADATA),
    ("filedelete", METADATA),
    ("falloc", METADATA),
    ("e4defrag", "has ext4 exchange files' blocks, and moves no data of its own"),
    ("net", NETWORK),
    ("netsplice", NETWORK),
    ("rdma", NETWORK),
    ("librpma_apm_client", NETWORK),
    ("librpma_apm_server", NETWORK),
    ("librpma_gpspm_client", NETWORK),
    ("librpma_gpspm_server", NETWORK),
    ("nbd", NETWORK),
    ("nfs", NETWORK),
    ("http", NETWORK),
    ("rados", NETWORK),
    ("rbd", NETWORK),
    ("gfapi", NETWORK),
    ("gfapi_async", NETWORK),
    ("libhdfs", NETWORK),
    ("libiscsi", NETWORK),
    ("dfs", NETWORK),
    ("ime_psync", NETWORK),
    ("ime_psyncv", NETWORK),
    ("ime_aio", NETWORK),
    ("mtd", "writes to raw flash, where there is no disk and no scheduler"),
    ("pmemblk", MEMORY),
    ("dev-dax", MEMORY),
    ("libpmem", MEMORY),
    ("libcufile", "moves data between a disk and a graphics card's memory"),
    ("sg", PASSED),
    ("io_uring_cmd", PASSED),
    ("xnvme", PASSED),
    ("libblkio", PASSED),
    ("libzbc", "is about zoned disks, which are not simulated"),
    ("cpp_null", "is loaded from a file; null does the same"),
    ("guasi", SYSTEM),
    ("solarisaio", SYSTEM),
    ("windowsaio", SYSTEM),
];

/// Options of engines that are not simulated.
const OPTIONS: &[(&str, &str)] = &[
    ("cpuio", "cpuload cpuchunks cpumode exit_on_io_done"),
    ("exec", "program arguments grace_time std_redirect"),
    ("filestat", "stat_type"),
    ("e4defrag", "donorname inplace"),
    ("net", "hostname port protocol proto nodelay listen pingpong interface ttl window_size mss"),
    ("rdma", "bindname verb"),
    ("librpma_apm_client", "serverip direct_write_to_pmem busy_wait_polling"),
    ("nbd", "uri"),
    ("nfs", "nfs_url"),
    (
        "http",
        "http_host http_user http_pass https http_mode http_s3_region http_s3_key http_s3_keyid http_s3_sse_customer_key
         http_s3_sse_customer_algorithm http_s3_storage_class http_swift_auth_token http_verbose",
    ),
    ("rados", "clustername pool clientname conf busy_poll touch_objects"),
    ("rbd", "rbdname"),
    ("gfapi", "volume brick single-instance"),
    ("libhdfs", "namenode hdfsdirectory"),
    ("dfs", "cont object_class chunk_size"),
    ("mtd", "skip_bad"),
    ("libcufile", "gpu_dev_ids cuda_io"),
    ("sg", "readfua writefua sg_write_mode stream_id"),
    ("io_uring_cmd", "cmd_type"),
    ("xnvme", "xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_iovec"),
];

/// Why the engine is not simulated. `None`: fio has none of that name, or it is simulated.
pub(super) fn refusal(engine: &str) -> Option<String> {
    if engine.starts_with("external:") {
        return Some(format!("'ioengine={}' is loaded from a file, and not simulated", clean(engine)));
    }
    let (_, why) = NOT_SIMULATED.iter().find(|(name, _)| *name == engine)?;
    Some(format!("ioengine={engine} {why}"))
}

/// Why an option that belongs to an engine is refused. `None`: it belongs to none that we know.
pub(super) fn refusal_of_option(key: &str) -> Option<String> {
    let (engine, _) = OPTIONS.iter().find(|(_, keys)| keys.split_ascii_whitespace().any(|k| k == key))?;
    Some(format!("option '{key}' belongs to ioengine={engine}, which is not simulated"))
}

/// All engines that fio has.
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    ENGINES.iter().map(|(name, _)| *name).chain(NOT_SIMULATED.iter().map(|(name, _)| *name))
}
