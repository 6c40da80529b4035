//! Values that say how large calls are, where they land, and which file they go to.
//!
//! ```text
//! bssplit=4k/60:16k/40        random_distribution=zipf:1.2:0.5        file_service_type=random:4
//! bsrange=4k-64k              random_distribution=zoned:60/10:40/     filesize=16k-64k
//! ```
//
//= fio-3.33 HOWTO "bssplit", "random_distribution", "file_service_type", "filesize"

use super::error::clean;
use super::load::{BlockSize, Distribution, FileService, RandomZone, Size};
use super::value::{Arg, in_units};

/// fio's own limit of entries in a `bssplit`.
const SPLIT_ENTRIES_MAX: usize = 64;
/// Parts of a zoned distribution, as many as fio takes.
const RANDOM_ZONES_MAX: usize = 64;
/// fio's most entries in a `percentile_list`.
const PERCENTILES_MAX: usize = 20;

/// The methods that fio has to tell whether data are right.
const VERIFY: &[(&str, bool)] = &[
    ("0", false),
    ("none", false),
    ("1", true),
    ("md5", true),
    ("crc64", true),
    ("crc32", true),
    ("crc32c", true),
    ("crc32c-intel", true),
    ("crc16", true),
    ("crc7", true),
    ("sha1", true),
    ("sha256", true),
    ("sha512", true),
    ("sha3-224", true),
    ("sha3-256", true),
    ("sha3-384", true),
    ("sha3-512", true),
    ("xxhash", true),
    ("meta", true),
    ("pattern", true),
    ("pattern_hdr", true),
    ("null", true),
];

const FILE_SERVICE: &[(&str, FileService)] = &[
    ("roundrobin", FileService::RoundRobin),
    ("sequential", FileService::Sequential),
    ("random", FileService::Random),
];

/// Percentages that add up to 100: from the smallest to the largest, each gets what it asks for as far as
/// there is something left, and the last one gets the rest.
fn shares_of_100(wanted: &[u8]) -> Vec<u8> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&i| wanted[i]);
    let (mut left, mut shares) = (100_u8, vec![0; wanted.len()]);
    for &i in &order {
        shares[i] = wanted[i].min(left);
        left -= shares[i];
    }
    if let Some(&last) = order.last() {
        shares[last] += left;
    }
    shares
}

impl Arg<'_> {
    pub(super) fn block_range(&self) -> Result<BlockSize, String> {
        let Some((low, high)) = self.value.split_once(['-', ':']) else {
            return Err(format!("'{}' is not a range; write one such as 4k-64k", self.show()));
        };
        let (min, max) = (self.with(low).block()?, self.with(high).block()?);
        match min.cmp(&max) {
            std::cmp::Ordering::Less => Ok(BlockSize::Range { min, max }),
            std::cmp::Ordering::Equal => Ok(BlockSize::Fixed(min)),
            std::cmp::Ordering::Greater => Err(format!(
                "'{}' is a range from large to small; write {}-{}",
                self.show(),
                in_units(max.into()),
                in_units(min.into())
            )),
        }
    }

    /// `4k/60:16k/40`: sizes and percentages.
    ///
    /// What the percentages lack is shared by entries without one. They need not add up to 100: fio draws
    /// from the smallest percentage up, so the largest gets what is left, or is cut. `12k-16k` is 12k.
    //= fio-3.33: shares of 100 MiB of calls, seen in its logs of offsets
    pub(super) fn block_split(&self) -> Result<BlockSize, String> {
        let entries: Vec<&str> = self.value.split(':').filter(|e| !e.trim().is_empty()).collect();
        if entries.len() > SPLIT_ENTRIES_MAX {
            return Err(format!(
                "'{}' has {} entries; at most {SPLIT_ENTRIES_MAX}",
                self.show(),
                entries.len()
            ));
        }
        let mut parts: Vec<(u32, Option<u8>)> = Vec::new();
        for entry in entries {
            let (size, pct) = entry.split_once('/').unwrap_or((entry, ""));
            let size = size.split_once('-').map_or(size, |(low, _)| low);
            let digits = pct.trim().trim_end_matches('%');
            // Percentages above 100 count as 100, and 0 as none.
            let is_large =
                digits.bytes().all(|b| b.is_ascii_digit()) && digits.trim_start_matches('0').len() > 2;
            let pct = match self.with(pct) {
                _ if digits.is_empty() => None,
                _ if is_large => Some(100),
                pct => Some(pct.percent()?).filter(|p| *p > 0),
            };
            parts.push((self.with(size).block()?, pct));
        }
        if parts.is_empty() {
            return Err(format!("'{}' has no entry; write one such as 4k/60:16k/40", self.show()));
        }
        let total: u32 = parts.iter().filter_map(|p| p.1).map(u32::from).sum();
        let open = u32::try_from(parts.iter().filter(|p| p.1.is_none()).count()).unwrap_or(u32::MAX);
        if total > 100 && open > 1 {
            return Err(format!(
                "the percentages of '{}' add up to {total}, and leave nothing for {open} entries without one",
                self.show()
            ));
        }
        // With more than 100 percent, a single entry without a percentage gets all.
        let share = if total > 100 { 255 } else { u8::try_from((100 - total) / open.max(1)).unwrap_or(100) };
        let wanted: Vec<u8> = parts.iter().map(|p| p.1.unwrap_or(share)).collect();
        let sizes: Vec<u32> = parts.iter().map(|p| p.0).collect();
        if share == 255 && open == 1 {
            let all = |p: &(u32, Option<u8>)| (p.0, if p.1.is_none() { 100 } else { 0 });
            return Ok(BlockSize::Split(parts.iter().map(all).collect()));
        }
        Ok(BlockSize::Split(sizes.into_iter().zip(shares_of_100(&wanted)).collect()))
    }

    /// `50:99:99.99`: percentiles of latencies in reports, in order.
    pub(super) fn percentile_list(&self) -> Result<Vec<f64>, String> {
        let list: Result<Vec<f64>, String> =
            self.value.split(':').map(|entry| self.with(entry).percentile()).collect();
        let mut list = list?;
        if list.len() > PERCENTILES_MAX {
            return Err(format!("'{}' has {} entries; at most {PERCENTILES_MAX}", self.show(), list.len()));
        }
        list.sort_by(f64::total_cmp);
        list.dedup();
        // fio takes 0 for the end of the list.
        list.retain(|p| *p > 0.0);
        Ok(list)
    }

    /// `random:4`: how the next file is chosen, and for how many calls.
    pub(super) fn file_service(&self) -> Result<(FileService, u32), String> {
        let (word, calls) = self.value.split_once(':').map_or((self.value, None), |(w, n)| (w, Some(n)));
        if matches!(word, "zipf" | "pareto" | "normal" | "gauss") {
            return Err(format!(
                "'{}' prefers some files to others, which is not simulated; use random, or random_distribution=",
                self.show()
            ));
        }
        let service = self.with(word).word(FILE_SERVICE)?;
        let calls = calls.map_or(Ok(1), |n| self.with(n).int32(1, u32::MAX))?;
        Ok((service, if service == FileService::Sequential { 1 } else { calls }))
    }

    /// A size or a share; or the least and the most of a range of sizes.
    //= fio-3.33: `16k-64k`, `16k:64k` and `16k,64k` seen to be the same
    pub(super) fn file_size(&self) -> Result<(Size, Option<u64>), String> {
        let Some((low, high)) = self.value.split_once(['-', ':', ',']) else {
            return self.size().map(|size| (size, None));
        };
        if low.trim().is_empty() {
            return self.size().map(|size| (size, None));
        }
        let (low, high) = (self.with(low).bytes()?, self.with(high).bytes()?);
        match low.cmp(&high) {
            std::cmp::Ordering::Less => Ok((Size::Bytes(low), Some(high))),
            std::cmp::Ordering::Equal => Ok((Size::Bytes(low), None)),
            std::cmp::Ordering::Greater => Err(format!(
                "'{}' is a range from large to small; write {}-{}",
                self.show(),
                in_units(high),
                in_units(low)
            )),
        }
    }

    /// Where something begins: a size, or a share of the target, which may be none of it.
    pub(super) fn place(&self) -> Result<Size, String> {
        match self.value.strip_suffix('%') {
            Some(p) if p.trim().bytes().all(|b| b == b'0') && !p.trim().is_empty() => Ok(Size::Bytes(0)),
            _ => self.size(),
        }
    }

    /// Whether what is written is read again. Which method compares it makes no difference to a disk.
    pub(super) fn verify(&self) -> Result<bool, String> {
        self.word(VERIFY)
    }

    /// `zipf:1.2`, `pareto:0.2`, `normal:50`, `random`.
    ///
    /// Behind a second colon stands where in the range the most popular place is, from 0 to 1.
    pub(super) fn distribution(&self) -> Result<(Distribution, Option<f64>), String> {
        let (name, parameter) =
            self.value.split_once(':').map_or((self.value, None), |(n, p)| (n, Some(p.trim())));
        let (parameter, center) = match parameter.and_then(|p| p.split_once(':')) {
            Some((p, center)) if !name.starts_with("zoned") => (Some(p), Some(center.trim())),
            _ => (parameter, None),
        };
        let center = center.map(|c| self.center(c)).transpose()?.flatten();
        self.distribution_of(name, parameter).map(|d| (d, center))
    }

    /// From 0 to 1; -1 is fio's word for none.
    fn center(&self, text: &str) -> Result<Option<f64>, String> {
        match text
            .parse::<f64>()
            .ok()
            .filter(|c| (0.0..=1.0).contains(c) || c.to_bits() == (-1.0_f64).to_bits())
        {
            Some(c) => Ok((c >= 0.0).then_some(c)),
            None => Err(format!(
                "'{}': the center '{}' is out of range; a number from 0 to 1, such as 0.5",
                self.show(),
                clean(text)
            )),
        }
    }

    fn distribution_of(&self, name: &str, parameter: Option<&str>) -> Result<Distribution, String> {
        // What fio takes when nothing is said.
        let parameter = parameter.or(match name {
            "zipf" => Some("1.1"),
            "pareto" => Some("0.2"),
            _ => None,
        });
        let (low, high, example) = match name {
            "random" if parameter.is_none() => return Ok(Distribution::Uniform),
            "zipf" => (0.0, 10.0, "zipf:1.2"),
            "pareto" => (0.0, 1.0, "pareto:0.2"),
            "normal" => (0.0, 100.0, "normal:20"),
            "zoned" | "zoned_abs" => {
                return self.random_zones(parameter.unwrap_or(""), name == "zoned").map(Distribution::Zoned);
            }
            _ => {
                let known = ["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
                return Err(self.with(name).unknown(known.into_iter()));
            }
        };
        let Some(parameter) = parameter else {
            return Err(format!("'{}' has no parameter; write {}={example}", self.show(), self.key));
        };
        let value = parameter.parse::<f64>().ok().filter(|v| v.is_finite() && *v > low && *v <= high);
        match (name, value) {
            ("zipf", Some(v)) if v.to_bits() == 1.0_f64.to_bits() => {
                Err(format!("'{}' does not exist; theta is anything but 1: zipf:1.01", self.show()))
            }
            ("zipf", Some(v)) => Ok(Distribution::Zipf(v)),
            ("pareto", Some(v)) if v < 1.0 => Ok(Distribution::Pareto(v)),
            ("normal", Some(v)) => Ok(Distribution::Normal(v)),
            _ => Err(format!(
                "'{}' is out of range; {name} takes a number above {low} and up to {high}, such as {example}",
                self.show()
            )),
        }
    }

    /// `60/10:40/90`: percent of the calls, and percent of the range or bytes. The last may be the rest:
    /// `40/`.
    fn random_zones(&self, list: &str, in_percent: bool) -> Result<Vec<RandomZone>, String> {
        let wrong = |why: &str| format!("'{}': {why}, such as zoned:60/10:40/90", self.show());
        let entries: Vec<&str> = list.split(':').collect();
        if entries.len() > RANDOM_ZONES_MAX {
            return Err(wrong(&format!("at most {RANDOM_ZONES_MAX} parts")));
        }
        let mut zones = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            let Some((percent, size)) = entry.split_once('/') else {
                return Err(wrong("a part is a share of the calls and a size"));
            };
            let percent = self.with(percent).percent()?;
            let size = match size.trim() {
                "" if i + 1 == entries.len() => None,
                "" => return Err(wrong("only the last part may be the rest of the range")),
                size if in_percent => Some(Size::Percent(self.with(size).percent()?)),
                size => Some(Size::Bytes(self.with(size).bytes()?)),
            };
            zones.push((percent, size));
        }
        let shares: u32 = zones.iter().map(|z| u32::from(z.0)).sum();
        if shares != 100 {
            return Err(wrong(&format!("the shares of the calls add up to {shares}, not 100")));
        }
        let percent = |size| if let Some(Size::Percent(p)) = size { u32::from(p) } else { 0 };
        let taken: u32 = zones.iter().map(|z| percent(z.1)).sum();
        if taken > 100 || (taken == 100 && zones.iter().any(|z| z.1.is_none())) {
            return Err(wrong(&format!("the sizes add up to {taken} percent and leave no room")));
        }
        // The rest of sizes in bytes is as long as the range, and cut off at its end.
        let rest = Size::Percent(100 - u8::try_from(taken).unwrap_or(100));
        let zone = |(percent, size): (u8, Option<Size>)| RandomZone { percent, size: size.unwrap_or(rest) };
        Ok(zones.into_iter().map(zone).collect())
    }
}
