//! The pictures of `docs/sweep.md`: one of each kind that `fairhead sweep --pictures` draws.
//!
//! ```text
//!   fairhead sweep … --pictures FOLDER ─► lines, heat map and bars as SVG ─► docs/pictures/sweep-*.svg
//! ```
//!
//! What this does not do: change what the program draws.

use crate::docs::root_file;
use crate::shell::{capture, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A sweep: what follows the job and the disk, and which pictures are kept under which names.
struct Sweep {
    settings: &'static str,
    kept: &'static [(&'static str, &'static str)],
}

/// The sweeps, as `docs/sweep.md` has them.
const SWEEPS: [Sweep; 2] = [
    Sweep {
        settings: "--sched cfq,bfq,none --set cfq.slice_idle=0,2ms,8ms,16ms \
                   --set bfq.slice_idle=0,2ms,8ms,16ms",
        kept: &[("of-all-jobs-slice-idle-nas2020", "sweep-lines"), ("best-nas2020", "sweep-best")],
    },
    Sweep {
        settings: "--sched mq-deadline --set mq-deadline.fifo_batch=1,4,16,64 \
                   --set mq-deadline.read_expire=50ms,500ms,5s",
        kept: &[("of-all-jobs-mq-deadline-fifo-batch-read-expire-nas2020", "sweep-map")],
    },
];

/// Makes the pictures.
pub(crate) fn make(program: &Path, files: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let folder = root().join("target/sweep-pictures");
    for Sweep { settings, kept } in SWEEPS {
        let mut sweep = Command::new(program);
        sweep
            .args(["sweep", "desktop", "--disk", "nas2020"])
            .args(settings.split_whitespace())
            .arg("--pictures")
            .arg(&folder);
        capture(sweep.current_dir(root()))?;
        for (made, name) in kept {
            let path = folder.join(format!("{made}.svg"));
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            files.insert(root_file(&format!("docs/pictures/{name}.svg")), text);
        }
    }
    Ok(())
}
