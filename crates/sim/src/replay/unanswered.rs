//! Which requests of a trace have no completion, and why.

use fairhead_trace::{DeviceId, Format, Names, Record};

/// How many devices are named.
const NAMED: usize = 3;

/// Counts the requests and completions of each device.
#[derive(Default)]
pub(super) struct Unanswered {
    /// By device: how many requests it has, and how many of them have a completion.
    devices: Vec<(u64, u64)>,
}

impl Unanswered {
    pub(super) fn add(&mut self, r: &Record) {
        let device = r.device.0 as usize;
        if self.devices.len() <= device {
            self.devices.resize(device + 1, (0, 0));
        }
        self.devices[device].0 += 1;
        self.devices[device].1 += u64::from(r.completed.is_some());
    }

    /// Returns how many requests have a completion.
    pub(super) fn answered(&self) -> u64 {
        self.devices.iter().map(|(_, answered)| answered).sum()
    }

    /// Returns how many requests have no completion, of how many, and why: "3 of 40 requests have no
    /// completion, because …". `lost` is the number of events that the recording reports as lost.
    pub(super) fn describe(&self, format: Format, names: &Names, lost: u64) -> String {
        let requests: u64 = self.devices.iter().map(|(requests, _)| requests).sum();
        let without = requests - self.answered();
        let why = self.reasons(format, names, lost).join(" and ");
        format!("{without} of {requests} requests have no completion, because {why}")
    }

    fn reasons(&self, format: Format, names: &Names, lost: u64) -> Vec<String> {
        if !format.has_completions() {
            return vec![format!("{format} has no completion times")];
        }
        let mut reasons = Vec::new();
        if lost > 0 {
            reasons.push(format!("the recording lost {lost} events"));
        }
        if self.answered() == 0 {
            reasons.push("none was recorded (of a kernel's events: block_rq_complete, C)".to_owned());
            return reasons;
        }
        let silent: Vec<(usize, u64)> =
            (0..).zip(&self.devices).filter(|(_, (_, done))| *done == 0).map(|(i, (n, _))| (i, *n)).collect();
        let silent: Vec<(usize, u64)> = silent.into_iter().filter(|(_, n)| *n > 0).collect();
        for (device, requests) in silent.iter().take(NAMED) {
            let name = names.device(DeviceId(u32::try_from(*device).unwrap_or(u32::MAX)));
            reasons.push(format!("device {name} has none for its {requests}"));
        }
        if silent.len() > NAMED {
            reasons.push(format!("{} more devices have none", silent.len() - NAMED));
        }
        let others: u64 = self.devices.iter().filter(|(_, done)| *done > 0).map(|(n, done)| n - done).sum();
        if others > 0 && lost == 0 {
            reasons.push(format!(
                "{others} had not completed when the recording ended, or their end is missing"
            ));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::{Duration, Sector};
    use fairhead_trace::Op;

    /// The description of devices with these numbers of requests and completions.
    fn described(format: Format, lost: u64, devices: &[(u64, u64)]) -> String {
        let (mut all, mut names) = (Unanswered::default(), Names::default());
        for (minor, (requests, answered)) in (0..).zip(devices) {
            let device = names.add_device(&format!("8,{minor}")).unwrap();
            for i in 0..*requests {
                let mut r = Record::new(Duration::ZERO, Op::Read, Sector(0), 8);
                r.completed = (i < *answered).then_some(Duration::ZERO);
                all.add(&Record { device, ..r });
            }
        }
        all.describe(format, &names, lost)
    }

    #[test]
    fn the_reason_is_the_formats_the_recordings_or_the_devices() {
        let none = "4 of 4 requests have no completion, because ";
        assert_eq!(
            described(Format::Alibaba, 0, &[(4, 0)]),
            format!("{none}Alibaba CSV has no completion times")
        );
        assert_eq!(
            described(Format::Blktrace, 0, &[(4, 0)]),
            format!("{none}none was recorded (of a kernel's events: block_rq_complete, C)")
        );
        assert_eq!(
            described(Format::Blktrace, 25, &[(4, 1)]),
            "3 of 4 requests have no completion, because the recording lost 25 events"
        );
        assert_eq!(
            described(Format::Ftrace, 0, &[(4, 4), (3, 0), (9, 8)]),
            "4 of 16 requests have no completion, because device 8,1 has none for its 3 and \
             1 had not completed when the recording ended, or their end is missing"
        );
        assert!(
            described(Format::Ftrace, 0, &[(1, 0), (1, 0), (1, 0), (1, 0), (9, 9)])
                .contains("1 more devices")
        );
    }
}
