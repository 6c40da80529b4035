//! MQSim's traces of disks, as the simulator of SSDs reads them.
//!
//! ```text
//! arrival  device  sector  sectors  type
//! 4711300  1       520000  16       0
//! ```
//!
//! Units: time in nanoseconds (`Time_Unit` NANOSECOND, as in MQSim's own workloads; if a trace counts in
//! another unit, `--replay-time-scale` corrects it), sectors of 512 bytes; type 0 writes, 1 reads. A device
//! is its number. Tasks and completions are not recorded.
//
//= CMU-SAFARI/MQSim README "Defining a Trace-based Workload"

use super::{LineParser, words};
use crate::error::quote;
use crate::fields::{in_sectors, number, ticks};
use crate::record::{Names, Notes, Op, Record};

/// The parser of the format.
pub(crate) struct MqSim;

impl LineParser for MqSim {
    type Item = Record;

    fn line(&mut self, line: &str, names: &mut Names, _: &mut Notes) -> Result<Option<Record>, String> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let [time, device, sector, sectors, op] =
            words(line, "arrival time in ns, device, sector, sectors, type")?;
        let op = match op {
            "0" => Op::Write,
            "1" => Op::Read,
            _ => return Err(format!("type {}: expected 0 for a write or 1 for a read", quote(op))),
        };
        let at = ticks("arrival time", time, 1)?;
        let mut record =
            in_sectors(at, op, number("sector", sector)?, number("number of sectors", sectors)?)?;
        let device: u32 = number("device", device)?;
        record.device = names.add_device(&device.to_string())?;
        Ok(Some(record))
    }
}
