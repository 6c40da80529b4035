//! `fairhead list`: what can be named.

use fairhead_core::sched::any::{PRESETS, shown};
use fairhead_device::{DeviceParams, preset_names};

use crate::args::Listed;
use crate::error::CliError;
use crate::out;
use crate::workloads::{self, PROGRAMS};
use fairhead_lab::schedulers::catalogue;

pub(crate) fn list(what: Listed) -> Result<(), CliError> {
    out::print(&match what {
        Listed::Schedulers => {
            let presets = PRESETS.iter().map(|p| (shown(p.name), p.about.to_owned()));
            let outside = catalogue().outside();
            columns(presets.chain(outside.map(|o| (o.name, format!("{} (not of this lineage)", o.about)))))
        }
        Listed::Disks => columns(preset_names().iter().map(|name| (*name, about_disk(name)))),
        Listed::Workloads => columns(
            workloads::all()
                .map(|w| (w.name, w.about))
                .chain(PROGRAMS.iter().copied())
                .map(|(n, a)| (n, a.to_owned())),
        ),
    })
}

/// What a preset says about itself.
fn about_disk(name: &str) -> String {
    // A built-in preset that is wrong is found by the device crate's tests.
    DeviceParams::preset(name).map(|p| p.about().to_owned()).unwrap_or_default()
}

/// Two columns, the first as wide as it needs to be.
fn columns(rows: impl Iterator<Item = (&'static str, String)>) -> String {
    let rows: Vec<_> = rows.collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, about)| format!("{name:width$}  {about}").trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_not_padded_at_the_end() {
        let text = columns([("a", "one".to_owned()), ("long", String::new())].into_iter());
        assert_eq!(text, "a     one\nlong\n");
    }
}
