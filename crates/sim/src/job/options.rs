//! The options: every key that fio knows, and what becomes of it here.
//!
//! | kind | example | what happens |
//! |---|---|---|
//! | [`Effect::Set`] | `iodepth` | sets a field of the draft |
//! | [`Effect::Ignored`] | `gtod_reduce` | cannot matter to a simulated disk: accepted, and listed in a note |
//! | [`Effect::Refused`] | `trim_backlog` | would change what the disk sees, and is not simulated: an error, unless set to 0 or none |
//!
//! A key that is in none of the tables is a typing error.
//
//= fio-3.33 HOWTO "Job file parameters"

use fairhead_core::units::{Class, Duration, Sector};

use super::draft::Draft;
use super::engines::{self, ENGINES};
use super::error::clean;
use super::groups::{Cgroups, Setting, set_own};
use super::load::{
    Application, BlockSize, Direction, Engine, Kind, Layout, Metadata, Pattern, Placement, Program,
    Sequencer, SyncMode, Unified,
};
use super::steer::ExitWhat;
use super::value::{Arg, BareTime};
use crate::replay::{Fit, Mode, Skip};

/// What an option does.
#[derive(Clone, Copy)]
pub(super) enum Effect {
    /// Needs a value, and sets something.
    Set(fn(&mut Draft, &Arg<'_>) -> Result<(), String>),
    /// Needs none, and sets a name: empty without one.
    Name(fn(&mut Draft, String)),
    /// Needs none, `key` is `key=1`; sets something.
    Switch(fn(&mut Draft, bool)),
    /// Needs a value, and says something of cgroups, from that line on or at a time.
    Groups(fn(&mut Cgroups, &mut Draft, &Arg<'_>, u32) -> Result<(), String>),
    /// Cannot matter here.
    Ignored,
    /// Would matter, and is not simulated.
    Refused,
}

/// What the key does, with its main name. `None`: there is no such option.
pub(super) fn find(key: &str) -> Option<(&'static str, Effect)> {
    let main = ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |(_, name)| name);
    if let Some((name, effect)) = SET.iter().find(|(name, _)| *name == main) {
        return Some((name, *effect));
    }
    let among = |words: &'static str| words.split_ascii_whitespace().find(|w| *w == main);
    among(IGNORED).map(|w| (w, Effect::Ignored)).or_else(|| among(REFUSED).map(|w| (w, Effect::Refused)))
}

/// All keys, for suggestions: those that do something first.
pub(super) fn all_keys() -> impl Iterator<Item = &'static str> {
    let set = SET.iter().map(|(name, _)| *name);
    let rest = IGNORED.split_ascii_whitespace().chain(REFUSED.split_ascii_whitespace());
    set.chain(ALIASES.iter().map(|(alias, _)| *alias)).chain(rest)
}

const ALIASES: &[(&str, &str)] = &[
    ("readwrite", "rw"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("io_limit", "io_size"),
    ("fileoffset", "offset"),
    ("start_delay", "startdelay"),
    ("wait_for_previous", "stonewall"),
    ("nr_files", "nrfiles"),
    ("blockalign", "ba"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iomem", "mem"),
    ("disable_bw", "disable_bw_measurement"),
    ("ratemin", "rate_min"),
    ("ratecycle", "rate_cycle"),
    ("timeout", "runtime"),
    ("fill_fs", "fill_device"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("mem_align", "iomem_align"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    ("threads", "thread"),
];

use Effect::{Groups, Name, Set, Switch};

const SET: &[(&str, Effect)] = &[
    ("name", Set(|d, a| text(&mut d.job.name, a))),
    ("description", Set(|d, a| text(d.job.description.get_or_insert_default(), a))),
    // What.
    (
        "rw",
        Set(|d, a| {
            // A block is trimmed, then written.
            d.job.writes_trimmed = a.value.contains("trimwrite");
            a.pattern().map(|(rw, hop, run)| (d.job.rw, d.job.hop, d.job.run_calls) = (rw, hop, run))
        }),
    ),
    ("rw_sequencer", Set(|d, a| a.word(SEQUENCERS).map(|v| d.job.sequencer = v))),
    ("ba", Set(|d, a| a.per_op(&d.job.align, |e| e.block().map(Some)).map(|v| d.job.align = v))),
    ("bs", Set(|d, a| a.per_op(&d.job.bs, |e| e.block().map(BlockSize::Fixed)).map(|v| d.job.bs = v))),
    ("bsrange", Set(|d, a| a.per_op(&d.job.bs, |e| e.block_range()).map(|v| d.job.bs = v))),
    ("bssplit", Set(|d, a| a.per_op(&d.job.bs, |e| e.block_split()).map(|v| d.job.bs = v))),
    ("rwmixread", Set(|d, a| a.percent().map(|v| d.job.rwmix_read_pct = v))),
    ("rwmixwrite", Set(|d, a| a.percent().map(|v| d.job.rwmix_read_pct = 100 - v))),
    (
        "percentage_random",
        Set(|d, a| {
            a.per_op(&d.random_pct.unwrap_or_default(), |e| e.percent()).map(|v| d.random_pct = Some(v))
        }),
    ),
    (
        "random_distribution",
        Set(|d, a| a.distribution().map(|v| (d.job.distribution, d.job.random_center) = v)),
    ),
    ("norandommap", Switch(|d, v| d.job.norandommap = v)),
    ("bs_is_seq_rand", Set(|d, a| a.flag().map(|v| d.job.bs_by_order = v))),
    // Where.
    ("filename", Set(|d, a| a.file_names().map(|v| d.job.filenames = v))),
    ("nrfiles", Set(|d, a| a.int32(1, NRFILES_MAX).map(|v| d.job.nrfiles = v))),
    ("filename_format", Set(|d, a| text(d.job.filename_format.get_or_insert_default(), a))),
    ("file_service_type", Set(|d, a| a.file_service().map(|v| (d.job.file_service, d.job.file_run) = v))),
    ("openfiles", Set(|d, a| a.int32(1, NRFILES_MAX).map(|v| d.job.open_files = v))),
    ("size", Set(|d, a| a.size().map(|v| d.job.size = Some(v)))),
    (
        "filesize",
        Set(|d, a| a.file_size().map(|(v, max)| (d.job.filesize, d.job.filesize_max) = (Some(v), max))),
    ),
    ("io_size", Set(|d, a| a.size().map(|v| d.job.io_size = Some(v)))),
    ("number_ios", Set(|d, a| a.int(1, COUNT_MAX).map(|v| d.job.number_ios = Some(v)))),
    ("offset", Set(|d, a| a.place().map(|v| d.job.offset = v))),
    ("offset_increment", Set(|d, a| a.place().map(|v| d.job.offset_increment = v))),
    ("offset_align", Set(|d, a| a.bytes().map(|v| d.job.offset_align = v))),
    ("zonemode", Set(|d, a| a.zone_mode().map(|v| d.strided = v))),
    ("zonesize", Set(|d, a| a.zone_bytes().map(|v| d.zone_size = v))),
    ("zonerange", Set(|d, a| a.zone_bytes().map(|v| d.zone_range = v))),
    ("zoneskip", Set(|d, a| a.zone_bytes().map(|v| d.zone_skip = v))),
    ("loops", Set(|d, a| a.int32(1, u32::MAX).map(|v| d.job.loops = v))),
    ("file_append", Set(|d, a| a.flag().map(|v| d.job.append = v))),
    ("create_only", Set(|d, a| a.flag().map(|v| d.creates_only = v))),
    ("serialize_overlap", Set(|d, a| a.flag().map(|v| d.serializes = v))),
    ("fill_device", Set(|d, a| a.flag().map(|v| d.fills = v))),
    ("overwrite", Set(|d, a| a.flag().map(|v| d.job.overwrite = v))),
    ("fallocate", Set(|d, a| a.word(FALLOCATE).map(|v| d.job.fallocate = v))),
    ("fadvise_hint", Set(|d, a| a.word(FADVISE).map(|v| d.job.fadvise = v))),
    ("invalidate", Set(|d, a| a.flag().map(|v| d.job.invalidate = v))),
    ("pre_read", Set(|d, a| a.flag().map(|v| d.job.pre_read = v))),
    // What is read again.
    ("verify", Set(|d, a| a.verify().map(|v| d.verify = v))),
    (
        "verify_pattern",
        Set(|d, _| {
            d.verify_pattern = true;
            Ok(())
        }),
    ),
    ("do_verify", Set(|d, a| a.flag().map(|v| d.no_verify = !v))),
    ("verify_backlog", Set(|d, a| a.int32(0, u32::MAX).map(|v| d.verify_backlog = v))),
    ("verify_backlog_batch", Set(|d, a| a.int32(0, u32::MAX).map(|v| d.verify_batch = v))),
    // How.
    ("direct", Set(|d, a| a.flag().map(|v| d.direct = Some(v)))),
    ("buffered", Set(|d, a| a.flag().map(|v| d.buffered = Some(v)))),
    ("sync", Set(|d, a| a.word(SYNC).map(|v| d.job.sync = v))),
    (
        "ioengine",
        Set(|d, a| {
            a.engine().map(|v| {
                d.job.engine = v;
                a.value.clone_into(&mut d.job.ioengine);
            })
        }),
    ),
    ("iodepth", Set(|d, a| a.int32(1, IODEPTH_MAX).map(|v| d.job.iodepth = v))),
    ("iodepth_batch", Set(|d, a| a.int32(1, IODEPTH_MAX).map(|v| d.job.iodepth_batch = v))),
    (
        "iodepth_batch_complete_max",
        Set(|d, a| a.int32(1, IODEPTH_MAX).map(|v| d.job.iodepth_batch_complete = v)),
    ),
    (
        "iodepth_batch_complete_min",
        Set(|d, a| a.int32(0, IODEPTH_MAX).map(|v| d.job.iodepth_batch_complete_min = v.max(1))),
    ),
    ("hipri", Switch(|d, v| d.job.hipri = v)),
    ("cpus_allowed", Set(|d, a| a.cpus().map(|v| d.job.cpus_allowed = v))),
    (
        "cpus_allowed_policy",
        Set(|d, a| a.word(&[("shared", false), ("split", true)]).map(|v| d.job.cpus_split = v)),
    ),
    ("fsync", Set(|d, a| a.int32(0, u32::MAX).map(|v| d.job.fsync = v))),
    ("fdatasync", Set(|d, a| a.int32(0, u32::MAX).map(|v| d.job.fdatasync = v))),
    ("end_fsync", Set(|d, a| a.flag().map(|v| d.job.end_fsync = v))),
    ("fsync_on_close", Set(|d, a| a.flag().map(|v| d.job.fsync_on_close = v))),
    // When.
    ("numjobs", Set(|d, a| a.int32(1, super::CLIENTS_MAX).map(|v| d.job.numjobs = v))),
    ("runtime", Set(|d, a| a.time(BareTime::Seconds).map(|v| d.job.runtime = (!v.is_zero()).then_some(v)))),
    ("time_based", Switch(|d, v| d.job.time_based = v)),
    ("startdelay", Set(|d, a| a.start_delay().map(|v| d.job.startdelay = v))),
    ("ramp_time", Set(|d, a| a.time(BareTime::Seconds).map(|v| d.job.ramp_time = v))),
    ("thinktime", Set(|d, a| a.time(BareTime::Micros).map(|v| d.job.thinktime = v))),
    ("thinktime_spin", Set(|d, a| a.time(BareTime::Micros).map(|v| d.job.thinktime_spin = v))),
    ("thinktime_blocks", Set(|d, a| a.int32(1, u32::MAX).map(|v| d.job.thinktime_blocks = v))),
    ("rate", Set(|d, a| a.per_op(&d.job.rate, |e| e.bytes().map(some_if_not_0)).map(|v| d.job.rate = v))),
    (
        "rate_iops",
        Set(|d, a| {
            a.per_op(&d.job.rate_iops, |e| e.int32(0, u32::MAX).map(some_if_not_0))
                .map(|v| d.job.rate_iops = v)
        }),
    ),
    ("rate_process", Set(|d, a| a.word(&[("linear", false), ("poisson", true)]).map(|v| d.job.poisson = v))),
    (
        "rate_min",
        Set(|d, a| {
            let min = &mut d.job.rate_min.bytes;
            a.per_op(min, |e| e.bytes().map(some_if_not_0)).map(|v| *min = v)
        }),
    ),
    (
        "rate_iops_min",
        Set(|d, a| {
            let min = &mut d.job.rate_min.calls;
            a.per_op(min, |e| e.int32(0, u32::MAX).map(some_if_not_0)).map(|v| *min = v)
        }),
    ),
    ("rate_cycle", Set(|d, a| a.cycle().map(|v| d.job.rate_min.cycle = v))),
    (
        "max_latency",
        Set(|d, a| {
            a.per_op(&d.job.max_latency, |e| e.time(BareTime::Micros).map(some_if_not_0))
                .map(|v| d.job.max_latency = v)
        }),
    ),
    ("latency_target", Set(|d, a| a.time(BareTime::Micros).map(|v| d.job.latency_target.target = v))),
    ("latency_window", Set(|d, a| a.time(BareTime::Micros).map(|v| d.job.latency_target.window = v))),
    ("latency_percentile", Set(|d, a| a.percentile().map(|v| d.job.latency_target.percentile = v))),
    ("latency_run", Set(|d, a| a.flag().map(|v| d.job.latency_target.run = v))),
    ("steadystate", Set(|d, a| d.job.steady.with(a).map(|v| d.job.steady = v))),
    ("steadystate_duration", Set(|d, a| a.time(BareTime::Seconds).map(|v| d.job.steady.duration = v))),
    ("steadystate_ramp_time", Set(|d, a| a.time(BareTime::Seconds).map(|v| d.job.steady.ramp = v))),
    ("flow", Set(|d, a| a.int32(0, FLOW_MAX).map(|v| d.job.flow.weight = v))),
    ("flow_id", Set(|d, a| a.int32(0, u32::MAX).map(|v| d.job.flow.id = v))),
    ("flow_sleep", Set(|d, a| a.time(BareTime::Micros).map(|v| d.job.flow.sleep = v))),
    ("wait_for", Set(|d, a| text(d.job.wait_for.get_or_insert_default(), a))),
    ("exit_what", Set(|d, a| a.word(EXIT_WHAT).map(|v| d.job.exit_what = v))),
    (
        "io_submit_mode",
        Set(|d, a| a.word(&[("inline", false), ("offload", true)]).map(|v| d.job.offload = v)),
    ),
    ("cmdprio_percentage", Set(|d, a| d.cmdprio.set(a))),
    ("cmdprio_bssplit", Set(|d, a| d.cmdprio.set(a))),
    ("cmdprio_class", Set(|d, a| d.cmdprio.set(a))),
    ("cmdprio", Set(|d, a| d.cmdprio.set(a))),
    ("stonewall", Switch(|d, v| d.stonewall = v)),
    ("exitall", Switch(|d, v| d.job.exitall = v)),
    // Groups and processes.
    ("new_group", Switch(|d, v| d.new_group = v)),
    ("group_reporting", Switch(|d, v| d.job.group_reporting = v)),
    ("prio", Set(|d, a| a.int(0, 7).map(|v| d.prio_level = u8::try_from(v).ok()))),
    ("prioclass", Set(|d, a| a.prio_class().map(|v| d.prio_class = v))),
    ("cgroup", Set(|d, a| text(d.job.cgroup.get_or_insert_default(), a))),
    (
        "cgroup_weight",
        Groups(|_, d, a, line| a.weight().map(|w| set_own(&mut d.own, Setting::Weight(w), line))),
    ),
    ("cgroup_nodelete", Set(|d, a| a.flag().map(|v| d.cgroup_nodelete = v))),
    ("randseed", Set(|d, a| a.int(0, u64::MAX).map(|v| d.job.randseed = Some(v)))),
    ("randrepeat", Set(|d, a| a.flag().map(|v| d.job.randrepeat = v))),
    ("kb_base", Set(|d, a| a.word(&[("1024", 1024), ("1000", 1000)]).map(|v| d.kb_base = Some(v)))),
    // What is written of it.
    ("write_bw_log", Name(|d, name| d.job.logs.bandwidth = Some(name))),
    ("write_lat_log", Name(|d, name| d.job.logs.latency = Some(name))),
    ("write_iops_log", Name(|d, name| d.job.logs.iops = Some(name))),
    ("log_avg_msec", Set(|d, a| a.int(0, LOG_MS_MAX).map(|ms| d.job.logs.interval = Duration::from_ms(ms)))),
    ("log_offset", Set(|d, a| a.flag().map(|v| d.job.logs.offset = v))),
    ("write_hist_log", Name(|d, name| d.job.logs.histogram = Some(name))),
    (
        "log_hist_msec",
        Set(|d, a| a.int(0, LOG_MS_MAX).map(|ms| d.job.logs.hist_interval = Duration::from_ms(ms))),
    ),
    ("log_hist_coarseness", Set(|d, a| a.int32(0, COARSENESS_MAX).map(|v| d.job.logs.coarseness = v))),
    ("log_max_value", Set(|d, a| a.flag().map(|v| d.job.logs.maxima = v))),
    ("log_unix_epoch", Set(|d, a| a.flag().map(|v| d.job.logs.of_clock = v))),
    ("per_job_logs", Set(|d, a| a.flag().map(|v| d.job.logs.shared = !v))),
    ("percentile_list", Set(|d, a| a.percentile_list().map(|v| d.job.percentiles.list = Some(v)))),
    ("clat_percentiles", Set(|d, a| a.flag().map(|v| d.job.percentiles.of_completion = v))),
    ("lat_percentiles", Set(|d, a| a.flag().map(|v| d.job.percentiles.of_all = v))),
    ("unified_rw_reporting", Set(|d, a| a.word(UNIFIED).map(|v| d.job.unified = v))),
    // Fairhead's own.
    ("fh_workload", Set(|d, a| a.program().map(|v| d.job.program = Some(v)))),
    ("fh_startup_trace", Set(|d, a| text(d.startup_trace.get_or_insert_default(), a))),
    ("read_iolog", Set(|d, a| text(d.iolog.get_or_insert_default(), a))),
    (
        "replay_no_stall",
        Set(|d, a| a.flag().map(|v| d.replay.mode = if v { Mode::NoStall } else { Mode::Open })),
    ),
    ("replay_time_scale", Set(|d, a| a.int32(1, SPEED_MAX).map(|v| d.replay.speed_pct = v))),
    ("replay_scale", Set(|d, a| a.int32(1, u32::MAX).map(|v| d.replay.scale = v))),
    ("replay_align", Set(|d, a| a.sectors_of_two().map(|v| d.replay.align = v))),
    ("replay_redirect", Set(|d, a| a.file_names().map(|_| d.replay.redirect = true))),
    ("replay_skip", Set(|d, a| a.skip().map(|v| d.replay.skip = v))),
    ("fh_replay", Set(|d, a| a.word(MODES).map(|v| d.replay.mode = v))),
    ("fh_replay_fit", Set(|d, a| a.word(FITS).map(|v| d.replay.fit = v))),
    ("fh_replay_devices", Set(|d, a| a.names().map(|v| d.replay.devices = v))),
    ("fh_replay_clients", Set(|d, a| a.int32(1, super::CLIENTS_MAX).map(|v| d.replay.clients_max = v))),
    ("fh_iterations", Set(|d, a| a.int32(1, ITERATIONS_MAX).map(|v| d.job.iterations = v))),
    ("fh_pause", Set(|d, a| a.time(BareTime::Refused).map(|v| d.job.iteration_pause = v))),
    ("fh_timeout", Set(|d, a| a.some_time().map(|v| d.job.timeout = v))),
    ("fh_startdelay", Set(|d, a| a.time(BareTime::Refused).map(|v| d.job.wave_delay = v))),
    ("fh_think", Set(|d, a| a.time(BareTime::Refused).map(|v| d.job.think = Some(v)))),
    ("fh_cpu", Set(|d, a| a.time(BareTime::Refused).map(|v| d.job.cpu_per_4k = v))),
    ("fh_cpus", Set(|d, a| a.int32(1, CPUS_MAX).map(|v| d.cpus = Some(v)))),
    ("fh_query", Set(|d, a| a.int32(1, QUERY_MAX).map(|v| d.job.query_calls = v))),
    ("fh_disk", Set(|d, a| super::disks::value(a).map(|v| d.disks = v))),
    ("fh_layout", Set(|d, a| a.layout().map(|v| d.job.layout = v))),
    ("fh_start", Set(|d, a| a.placement().map(|v| d.job.placement = Some(v)))),
    (
        "fh_metadata",
        Set(|d, a| {
            a.word(&[("cached", Metadata::Cached), ("cold", Metadata::Cold)]).map(|v| d.job.metadata = v)
        }),
    ),
    ("fh_cgroup", Groups(|g, d, a, line| g.statement(a, line, &mut d.own))),
    ("fh_at", Groups(|g, _, a, line| g.change(a, line))),
    ("fh_cgroup_writeback", Set(|d, a| a.flag().map(|v| d.job.cgroup_writeback = Some(v)))),
    ("fh_kind", Set(|d, a| a.word(Kind::WORDS).map(|v| d.job.kind = Some(v)))),
    ("fh_direct_write_sync", Set(|d, a| a.flag().map(|v| d.job.direct_write_sync = Some(v)))),
];

/// Options about fio itself, its memory, threads, clocks, logs and reports: a simulated disk cannot tell.
const IGNORED: &str = "
    allow_file_create allow_mounted_write allrandrepeat block_error_percentiles buffer_compress_chunk
    buffer_compress_percentage buffer_pattern bwavgtime clocksource continue_on_error cpumask
    create_fsync create_on_open create_serialize dedupe_global dedupe_mode dedupe_percentage
    dedupe_working_set_percentage directory disable_bw_measurement disable_clat disable_lat disable_slat
    disk_util error_dump exec_postrun exec_prerun exitall_on_error experimental_verify fixedbufs force_async gid
    gtod_cpu gtod_reduce hipri_percentage hugepage-size ignore_error iomem_align iopsavgtime ioscheduler
    iothread lockfile lockmem log_alternate_epoch log_alternate_epoch_clock_id log_compression
    log_compression_cpus log_entries log_prio log_store_compressed mem nice nonvectored
    numa_cpu_nodes numa_mem_policy opendir random_generator read_iolog_chunked refill_buffers
    registerfiles scramble_buffers significant_figures slat_percentiles softrandommap sqthread_poll
    sqthread_poll_cpu stats thp thread uid uncached unique_filename unit_base unlink unlink_each_loop
    userspace_reap verify_async verify_async_cpus verify_dump verify_fatal verify_interval verify_offset
    verify_state_load verify_state_save verifysort verifysort_nr write_hint write_iolog zero_buffers write_barrier";

/// Options that change what the disk sees, and that are not simulated.
const REFUSED: &str = "
    atomic bs_unaligned ignore_zone_limits iodepth_low
    job_max_open_zones max_open_zones merge_blktrace_file merge_blktrace_iters merge_blktrace_scalars
    nowait profile rate_ignore_thinktime read_beyond_wp sync_file_range
    thinktime_blocks_type thinktime_iotime trim_backlog trim_backlog_batch trim_percentage
    trim_verify_zero verify_only zone_reset_frequency zone_reset_threshold zonecapacity";

/// Calls in flight per client: four times the deepest device queue of docs/reference/devices.md#3-presets.
const IODEPTH_MAX: u32 = 4096;
/// Processors of a host.
pub(super) const CPUS_MAX: u32 = 1024;
/// Calls measured as one: a query of a million reads is a scan.
const QUERY_MAX: u32 = 1_000_000;
/// An interval of a log: a day.
const LOG_MS_MAX: u64 = 86_400_000;
/// The longest `rate_cycle`: a day.
const CYCLE_MS_MAX: u64 = 86_400_000;
/// fio's largest weight of a flow.
const FLOW_MAX: u32 = 1000;
/// Files per client.
const NRFILES_MAX: u32 = 4096;
/// Entries in a `filename` list.
const FILENAMES_MAX: usize = 256;
/// Calls per client: more than a year at a million a second.
const COUNT_MAX: u64 = 1 << 45;
/// How large a piece concurrent writers leave when none is given (docs/reference/hosts.md#file-layout).
const PIECE_BYTES: u32 = 32 * 1024;

/// The coarsest of fio's histograms in logs.
const COARSENESS_MAX: u32 = 6;
const UNIFIED: &[(&str, Unified)] = &[
    ("0", Unified::Apart),
    ("none", Unified::Apart),
    ("1", Unified::Mixed),
    ("mixed", Unified::Mixed),
    ("2", Unified::Both),
    ("both", Unified::Both),
];

const SEQUENCERS: &[(&str, Sequencer)] =
    &[("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)];

const EXIT_WHAT: &[(&str, ExitWhat)] =
    &[("group", ExitWhat::Group), ("stonewall", ExitWhat::Stonewall), ("all", ExitWhat::All)];

const SYNC: &[(&str, SyncMode)] = &[
    ("0", SyncMode::None),
    ("none", SyncMode::None),
    ("1", SyncMode::Sync),
    ("sync", SyncMode::Sync),
    ("dsync", SyncMode::Dsync),
];

const FALLOCATE: &[(&str, bool)] = &[
    ("none", false),
    ("native", true),
    ("posix", true),
    ("keep", true),
    ("truncate", false),
    ("0", false),
    ("1", true),
];

const FADVISE: &[(&str, bool)] = &[("0", false), ("none", false), ("1", true)];

/// A film's bits per second: what a 720p trailer has, and the limits.
//= docs/reference/benchmarks.md#5-video: 2-8 Mbit/s
const BIT_RATE: u64 = 4 << 20;
const BIT_RATE_MIN: u64 = 128 << 10;
const BIT_RATE_MAX: u64 = 1 << 30;
/// Start-ups of an application in one run: a day of the longest.
const ITERATIONS_MAX: u32 = 1000;

/// How much faster than recorded a trace may be replayed, in percent: a day in a second.
const SPEED_MAX: u32 = 8_640_000;
/// The most that `replay_align` aligns to.
const ALIGN_BYTES_MAX: u64 = 1 << 40;

const MODES: &[(&str, Mode)] = &[("open", Mode::Open), ("closed", Mode::Closed), ("no-stall", Mode::NoStall)];

const FITS: &[(&str, Fit)] = &[("scale", Fit::Scale), ("wrap", Fit::Wrap)];

const PROGRAMS: &[(&str, Program)] = &[("fsck", Program::Fsck), ("dbscan", Program::DbScan)];

const APPLICATIONS: &[(&str, Application)] = &[
    ("xterm", Application::Xterm),
    ("gnome-terminal", Application::GnomeTerminal),
    ("lowriter", Application::LoWriter),
    ("oowriter", Application::OoWriter),
    ("konsole", Application::Konsole),
    ("bash", Application::Bash),
];

const PATTERNS: &[(&str, Pattern)] = &[
    ("read", Pattern { direction: Direction::Read, random: false }),
    ("write", Pattern { direction: Direction::Write, random: false }),
    ("randread", Pattern { direction: Direction::Read, random: true }),
    ("randwrite", Pattern { direction: Direction::Write, random: true }),
    ("rw", Pattern { direction: Direction::Mixed, random: false }),
    ("readwrite", Pattern { direction: Direction::Mixed, random: false }),
    ("randrw", Pattern { direction: Direction::Mixed, random: true }),
    ("trim", Pattern { direction: Direction::Trim, random: false }),
    ("randtrim", Pattern { direction: Direction::Trim, random: true }),
    ("trimwrite", Pattern { direction: Direction::Trim, random: false }),
    ("randtrimwrite", Pattern { direction: Direction::Trim, random: true }),
];

fn text(field: &mut String, a: &Arg<'_>) -> Result<(), String> {
    a.value.clone_into(field);
    Ok(())
}

fn some_if_not_0<T: Default + PartialEq>(v: T) -> Option<T> {
    (v != T::default()).then_some(v)
}

/// The kinds of value that only one option has.
impl Arg<'_> {
    /// The pattern, the hop between sequential calls, and how many calls a random place is for.
    fn pattern(&self) -> Result<(Pattern, i64, u32), String> {
        if let Some((word, behind)) = self.value.split_once(':')
            && PATTERNS.iter().any(|(known, _)| *known == word)
        {
            let in_whole = |message: String| format!("'{}': {message}", self.show());
            let rw = self.with(word).word(PATTERNS)?;
            if rw.random {
                return Ok((rw, 0, self.with(behind).int32(1, u32::MAX).map_err(in_whole)?));
            }
            let (bytes, sign) = behind.strip_prefix('-').map_or((behind, 1), |bytes| (bytes, -1));
            let hop = i64::try_from(self.with(bytes).bytes().map_err(in_whole)?).unwrap_or(i64::MAX);
            return Ok((rw, sign * hop, 1));
        }
        Ok((self.word(PATTERNS)?, 0, 1))
    }

    /// Milliseconds, as fio counts them, over which a rate is counted.
    fn cycle(&self) -> Result<Duration, String> {
        self.int(1, CYCLE_MS_MAX).map(Duration::from_ms)
    }

    /// Numbers of processors: a list of numbers and ranges, such as `0-3,8`.
    fn cpus(&self) -> Result<Vec<u32>, String> {
        let mut all = Vec::new();
        for part in self.value.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) =
                (self.with(first).int32(0, CPUS_MAX - 1)?, self.with(last).int32(0, CPUS_MAX - 1)?);
            if last < first {
                return Err(format!("'{}': the range {first}-{last} is from large to small", self.show()));
            }
            all.extend(first..=last);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    pub(super) fn percentile(&self) -> Result<f64, String> {
        let value = self.value.parse::<f64>().ok().filter(|v| (0.0..=100.0).contains(v));
        value.ok_or_else(|| format!("'{}' is out of range; 0 to 100, such as 99.9", self.show()))
    }

    fn engine(&self) -> Result<Engine, String> {
        if let Some((_, engine)) = ENGINES.iter().find(|(name, _)| *name == self.value) {
            return Ok(*engine);
        }
        Err(engines::refusal(self.value).unwrap_or_else(|| self.unknown(engines::all())))
    }

    /// A colon-separated list, in which `\:` is a colon.
    fn names(&self) -> Result<Vec<String>, String> {
        let (mut names, mut name) = (Vec::new(), String::new());
        let mut chars = self.value.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '\\' if chars.next_if_eq(&':').is_some() => name.push(':'),
                ':' => names.push(std::mem::take(&mut name)),
                c => name.push(c),
            }
        }
        names.push(name);
        names.retain(|n| !n.is_empty());
        if names.is_empty() {
            return Err(format!("'{}' names no file", self.show()));
        }
        if names.len() > FILENAMES_MAX {
            return Err(format!("'{}' names {} files; at most {FILENAMES_MAX}", self.key, names.len()));
        }
        Ok(names)
    }

    fn file_names(&self) -> Result<Vec<String>, String> {
        let names = self.names()?;
        let raw = names.iter().filter(|n| n.starts_with("/dev/")).count();
        if raw > 0 && raw < names.len() {
            return Err(format!(
                "'{}' mixes disks with files; give the files a job of their own",
                self.show()
            ));
        }
        Ok(names)
    }

    /// What a replay leaves out.
    //= fio-3.33 HOWTO "replay_skip"
    fn skip(&self) -> Result<Skip, String> {
        let mut skip = Skip::default();
        for word in self.value.split(':') {
            let kind = self.with(word).word(&[("read", 0), ("write", 1), ("trim", 2), ("sync", 3)])?;
            *[&mut skip.reads, &mut skip.writes, &mut skip.trims, &mut skip.syncs][kind] = true;
        }
        Ok(skip)
    }

    /// A power of two of bytes, in sectors.
    fn sectors_of_two(&self) -> Result<u64, String> {
        match self.bytes_in(512, ALIGN_BYTES_MAX)? {
            b if b.is_power_of_two() => Ok(b / 512),
            _ => Err(format!("'{}' is not a power of two", self.show())),
        }
    }

    fn start_delay(&self) -> Result<Duration, String> {
        if let Some((low, _)) = self.value.split_once('-')
            && !low.is_empty()
        {
            return Err(format!("'{}' is a range, which is not simulated; write one time", self.show()));
        }
        self.time(BareTime::Seconds)
    }

    /// fio's numbers are those of `ioprio_set`: 1 real time, 2 best effort, 3 idle, 0 none.
    fn prio_class(&self) -> Result<Option<Class>, String> {
        self.int(0, 3).map(|v| match v {
            1 => Some(Class::RealTime),
            2 => Some(Class::BestEffort),
            3 => Some(Class::Idle),
            _ => None,
        })
    }

    /// fio's `zbd` is about zoned disks.
    fn zone_mode(&self) -> Result<bool, String> {
        match self.word(&[("none", Some(false)), ("strided", Some(true)), ("zbd", None)])? {
            Some(strided) => Ok(strided),
            None => Err(format!(
                "'{}' is about zoned disks, and none of the disk models has zones; zonemode=strided has gaps without",
                self.show()
            )),
        }
    }

    fn zone_bytes(&self) -> Result<u64, String> {
        if self.value.ends_with('z') {
            return Err(format!("'{}' counts zones of a zoned disk, which is not simulated", self.show()));
        }
        match self.bytes()? {
            b if b % 512 == 0 => Ok(b),
            _ => Err(format!("'{}' is not a multiple of 512 bytes", self.show())),
        }
    }

    /// `fsck`, `startup:xterm`, `player:4m`.
    fn program(&self) -> Result<Program, String> {
        match self.value.split_once(':') {
            Some(("player", rate)) => {
                let bits_per_s = self.with(rate).bytes_in(BIT_RATE_MIN, BIT_RATE_MAX)?;
                Ok(Program::Player { bits_per_s })
            }
            None if self.value == "player" => Ok(Program::Player { bits_per_s: BIT_RATE }),
            Some(("startup", application)) => self.with(application).word(APPLICATIONS).map(Program::StartUp),
            None if self.value == "startup" => {
                Err(format!("'{}' names no application; write one such as startup:xterm", self.show()))
            }
            _ => {
                let known = PROGRAMS.iter().map(|p| p.0).chain(["startup", "player"]);
                let name = self.value.split_once(':').map_or(self.value, |p| p.0);
                self.word(PROGRAMS).map_err(|_| self.with(name).unknown(known))
            }
        }
    }

    /// A time other than none.
    fn some_time(&self) -> Result<Duration, String> {
        match self.time(BareTime::Refused)? {
            Duration::ZERO => {
                Err(format!("'{}' leaves no time; write one such as {}=60s", self.show(), self.key))
            }
            time => Ok(time),
        }
    }

    fn layout(&self) -> Result<Layout, String> {
        let (name, piece) = self.value.split_once(':').map_or((self.value, None), |(n, p)| (n, Some(p)));
        if let (name, Some(piece)) = (name, piece) {
            if name != "interleaved" {
                return Err(format!(
                    "'{}': only interleaved has a piece size, as in interleaved:32k",
                    self.show()
                ));
            }
            let piece_bytes = self.with(piece).block()?;
            if piece_bytes % 512 != 0 {
                return Err(format!("'{}': a piece is a multiple of 512 bytes", self.show()));
            }
            return Ok(Layout::Interleaved { piece_bytes });
        }
        self.word(&[
            ("contiguous", Layout::Contiguous),
            ("interleaved", Layout::Interleaved { piece_bytes: PIECE_BYTES }),
            ("ext2", Layout::Ext2),
            ("scattered", Layout::Scattered),
        ])
    }

    /// `20000sectors`, `10g`, `80%`; a bare number could be any of them.
    fn placement(&self) -> Result<Placement, String> {
        if self.value.ends_with('%') {
            return self.percent().map(Placement::Percent);
        }
        if let Some(n) = self.value.strip_suffix("sectors") {
            return self.with(n).int(0, COUNT_MAX).map(|n| Placement::At(Sector(n)));
        }
        if self.value.ends_with(|c: char| c.is_ascii_digit()) {
            let v = clean(self.value);
            return Err(format!(
                "'{}' has no unit; write {key}={v}sectors, {key}=10g or {key}=80%",
                self.show(),
                key = self.key
            ));
        }
        match self.bytes()? {
            b if b % 512 == 0 => Ok(Placement::At(Sector(b / 512))),
            _ => Err(format!("'{}' is not a multiple of 512 bytes", self.show())),
        }
    }
}
