//! The ranges of a disk's settings, and whether the kernel took a value.
//!
//! ```text
//! slice_idle=99999999999 ─► range: 0 to 4294 ─► refused, and nothing is written
//! read_expire=501        ─► the kernel's file reads 504, the next tick ─► taken
//! nr_requests=64         ─► the kernel's file reads 32                 ─► not taken: put back, and an error
//! ```
//!
//! The kernel reads a value into a variable of its own size. Some values that do not fit are refused by it,
//! others are changed to the nearest that fits, and `slice_idle`, which is kept as 32 bits of nanoseconds,
//! wraps: 4295 becomes 0. The ranges here are those in which a value reads back as it was written, measured
//! on Linux 6.18 by writing the ends of each range and the values beyond them. A test measures them again on
//! the kernel that runs.
//!
//! What this does not do: know what a disk allows, such as the largest `nr_requests`. The kernel refuses
//! that, or changes the value, which [`taken`] notices.

/// The largest value of a signed number of 32 bits.
const INT_MAX: i128 = i32::MAX as i128;

/// The largest number of milliseconds that stays below [`INT_MAX`] when the kernel has rounded it to a tick,
/// whether a second has 100, 250, 300 or 1000 of them.
const TICKS_MAX: i128 = 2_147_483_640;

/// The least and the largest value of a file below `queue/`, in the unit of the file. `iosched/` is left out
/// of a tunable's name.
const RANGES: [(&str, i128, i128); 29] = [
    // mq-deadline
    ("read_expire", 0, TICKS_MAX),
    ("write_expire", 0, TICKS_MAX),
    ("prio_aging_expire", 0, TICKS_MAX),
    ("writes_starved", -INT_MAX - 1, INT_MAX),
    ("front_merges", 0, 1),
    ("async_depth", 1, INT_MAX),
    ("fifo_batch", 0, INT_MAX),
    // bfq
    ("back_seek_max", 0, INT_MAX),
    ("back_seek_penalty", 1, INT_MAX),
    ("fifo_expire_async", 1, INT_MAX),
    ("fifo_expire_sync", 1, INT_MAX),
    ("low_latency", 0, 1),
    ("max_budget", 0, INT_MAX),
    // 2^32 ns.
    ("slice_idle", 0, 4294),
    ("slice_idle_us", 0, 4_294_967),
    ("strict_guarantees", 0, 1),
    ("timeout_sync", 1, TICKS_MAX),
    // kyber
    ("read_lat_nsec", 0, u64::MAX as i128),
    ("write_lat_nsec", 0, u64::MAX as i128),
    // Of the queue.
    ("nr_requests", 4, u32::MAX as i128),
    // Whole pages, of 64 KiB at most.
    ("read_ahead_kb", 0, u32::MAX as i128 - 63),
    // -1 is the default. Microseconds, of which a signed number of 64 bits has the nanoseconds.
    ("wbt_lat_usec", -1, (i64::MAX / 1000) as i128),
    // 0 is the default.
    ("max_sectors_kb", 0, u32::MAX as i128),
    ("nomerges", 0, 2),
    ("rq_affinity", 0, 2),
    ("rotational", 0, 1),
    ("iostats", 0, 1),
    ("add_random", 0, 1),
    // A tunable that is not known here.
    ("", i64::MIN as i128, u64::MAX as i128),
];

/// The largest number of milliseconds by which a time may be rounded: a tick of the slowest clock.
const TICK_MS: i128 = 10;

/// The largest page, in KiB.
const PAGE_KB: i128 = 64;

/// The least and the largest value of a setting, in the unit of its file. A path below `queue/`, or the name
/// of a tunable alone.
pub(crate) fn range(name: &str) -> (i128, i128) {
    let name = name.strip_prefix("iosched/").unwrap_or(name);
    let known = RANGES.iter().find(|(n, ..)| *n == name).unwrap_or(&RANGES[RANGES.len() - 1]);
    (known.1, known.2)
}

/// Refuses a number that the kernel would refuse or change. `text` is what was written for it.
pub(crate) fn check(name: &str, text: &str, value: i128) -> Result<(), String> {
    let (least, most) = range(name);
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let unit = unit(name);
    Err(format!("{name}={text}: out of range; the kernel takes {least} to {most}{unit}"))
}

/// The unit of a setting's file, after a blank; empty if it has none.
fn unit(name: &str) -> &'static str {
    match name {
        n if n.ends_with("_us") || n.ends_with("_usec") => " us",
        n if n.ends_with("_nsec") => " ns",
        n if n.ends_with("_kb") || n == "back_seek_max" => " KiB",
        "max_budget" => " sectors",
        "slice_idle" | "timeout_sync" => " ms",
        n if n.contains("_expire") => " ms",
        _ => "",
    }
}

/// Whether the kernel, whose file reads `read`, has taken the value `written`: as it is, rounded to its tick
/// or to whole pages, or as the word for the default.
pub(crate) fn taken(name: &str, written: &str, read: &str) -> bool {
    let name = name.strip_prefix("iosched/").unwrap_or(name);
    if written == read {
        return true;
    }
    let (Ok(written), Ok(read)) = (written.parse::<i128>(), read.parse::<i128>()) else { return false };
    let apart = (written - read).abs();
    match name {
        "wbt_lat_usec" => written == -1,
        "max_sectors_kb" => written == 0,
        "read_ahead_kb" => apart < PAGE_KB,
        "read_expire" | "write_expire" | "prio_aging_expire" | "timeout_sync" => apart < TICK_MS,
        _ => apart == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_would_wrap_or_change_is_refused() {
        let refused = |name, value: i128| check(name, &value.to_string(), value);
        assert_eq!(
            refused("slice_idle", 99_999_999_999).unwrap_err(),
            "slice_idle=99999999999: out of range; the kernel takes 0 to 4294 ms"
        );
        for (name, inside, outside) in [
            ("slice_idle", 4294, 4295),
            ("slice_idle_us", 4_294_967, 4_294_968),
            ("low_latency", 1, 2),
            ("back_seek_penalty", 1, 0),
            ("writes_starved", -1, -2_147_483_649),
            ("nr_requests", 4, 3),
            ("wbt_lat_usec", -1, -2),
            ("read_lat_nsec", 18_446_744_073_709_551_615, 18_446_744_073_709_551_616),
        ] {
            assert_eq!(refused(name, inside), Ok(()), "{name}");
            assert!(refused(name, outside).is_err(), "{name}");
        }
        assert_eq!(range("iosched/slice_idle"), range("slice_idle"));
    }

    /// A loop device on a file of 1 MiB, detached when it is dropped.
    struct Loop(String);

    impl Loop {
        /// `None`, and a line that says why, where it cannot be had.
        fn attach(file: &std::path::Path) -> Option<Self> {
            std::fs::File::create(file).and_then(|f| f.set_len(1 << 20)).unwrap();
            let out = std::process::Command::new("losetup").args(["-f", "--show"]).arg(file).output();
            let path = out.ok().filter(|o| o.status.success()).and_then(|o| String::from_utf8(o.stdout).ok());
            if path.is_none() {
                println!("skipped: no loop device for this user");
            }
            Some(Self(path?.trim().trim_start_matches("/dev/").to_owned()))
        }
    }

    impl Drop for Loop {
        fn drop(&mut self) {
            let _ = std::process::Command::new("losetup").arg("-d").arg(format!("/dev/{}", self.0)).status();
        }
    }

    /// The ends of each range read back as they were written on the kernel that runs, and the values beyond
    /// those that it wraps or changes do not.
    #[test]
    fn the_running_kernel_takes_the_ends_of_each_range() {
        let place = tempfile::tempdir().unwrap();
        let Some(disk) = Loop::attach(&place.path().join("image")) else { return };
        let queue = std::path::Path::new("/sys/block").join(&disk.0).join("queue");
        let read = |name: &str| std::fs::read_to_string(queue.join(name)).unwrap().trim().to_owned();
        let is_taken = |name: &str, value: i128| {
            let value = value.to_string();
            std::fs::write(queue.join(name), &value).is_ok() && taken(name, &value, &read(name))
        };
        for scheduler in ["mq-deadline", "bfq", "kyber"] {
            if std::fs::write(queue.join("scheduler"), scheduler).is_err() {
                println!("skipped: no {scheduler}");
                continue;
            }
            for entry in std::fs::read_dir(queue.join("iosched")).unwrap() {
                let entry = entry.unwrap();
                if entry.metadata().unwrap().permissions().readonly() {
                    continue;
                }
                let name = format!("iosched/{}", entry.file_name().into_string().unwrap());
                let (least, most) = range(&name);
                assert!(is_taken(&name, least) && is_taken(&name, most), "{scheduler}, {name}");
                let is_wide = most > INT_MAX || most == TICKS_MAX;
                assert!(is_wide || !is_taken(&name, most + 1), "{scheduler}, {name}: {most} and one");
                let is_time = most == TICKS_MAX;
                assert!(is_time || !is_taken(&name, least - 1), "{scheduler}, {name}: {least} less one");
            }
        }
        for name in ["nomerges", "rq_affinity", "iostats", "add_random", "rotational"] {
            let (least, most) = range(name);
            assert!(is_taken(name, least) && is_taken(name, most) && !is_taken(name, most + 1), "{name}");
        }
    }

    #[test]
    fn rounding_is_taken_and_another_value_is_not() {
        for (name, written, read, is) in [
            ("iosched/slice_idle", "8", "8", true),
            ("iosched/slice_idle", "4295", "0", false),
            ("iosched/read_expire", "501", "504", true),
            ("iosched/read_expire", "501", "601", false),
            ("read_ahead_kb", "130", "128", true),
            ("read_ahead_kb", "1024", "128", false),
            ("wbt_lat_usec", "-1", "75000", true),
            ("max_sectors_kb", "0", "1280", true),
            ("max_sectors_kb", "2048", "1280", false),
            ("nr_requests", "64", "32", false),
            ("nr_requests", "064", "64", true),
            ("iosched/future", "1", "on", false),
        ] {
            assert_eq!(taken(name, written, read), is, "{name}: {written}, {read}");
        }
    }
}
