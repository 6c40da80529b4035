//! `fairhead apply` refuses what the kernel would wrap, and does not keep what the kernel makes of a value.

use crate::loop_device::LoopDevice;
use crate::process::fairhead;
use std::process::Command;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A machine of files: nothing needs root.
#[test]
fn a_value_out_of_range_is_refused_in_a_line() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("sys/block/sda/size", "3907029168");
    write("sys/block/sda/dev", "8:0");
    write("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq");
    write("sys/block/sda/queue/nr_requests", "256");
    write("sys/block/sda/queue/rq_affinity", "1");
    write("run/udev/data/b8:0", "E:ID_SERIAL=WDC_WD20_1234\n");
    for (words, line) in [
        (
            &["bfq", "slice_idle=99999999999"][..],
            "slice_idle=99999999999: out of range; the kernel takes 0 to 4294 ms",
        ),
        (&["bfq", "slice_idle=5s"], "slice_idle=5s: out of range; the kernel takes 0 to 4294 ms"),
        (&["nr_requests=0"], "nr_requests=0: out of range; the kernel takes 4 to 4294967295"),
        (&["rq_affinity=3"], "rq_affinity=3: out of range; the kernel takes 0 to 2"),
        (&["read_expire=-1"], "read_expire=-1: out of range; the kernel takes 0 to 2147483640 ms"),
        (
            &["bfq", "back_seek_max=99999999999999999999"],
            "back_seek_max=99999999999999999999: out of range; the kernel takes 0 to 2147483647 KiB",
        ),
    ] {
        let mut command = fairhead();
        let command = command.args(["apply", "sda"]).args(words).arg("--yes").arg("--root").arg(root.path());
        let out = command.output().unwrap();
        let said = (out.status.code(), text(&out.stderr));
        assert_eq!(said, (Some(2), format!("fairhead: {line}\n")), "{words:?}");
    }
    assert!(!root.path().join("etc").exists(), "no rule is written");
}

/// A value that is in range, and of which this kernel makes another one for this disk, or refuses it.
#[test]
fn what_the_kernel_makes_of_a_value_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let Some(disk) = LoopDevice::attach(&image) else { return };
    if !disk.has("none") {
        return;
    }
    let before = disk.all();
    let (program, name) = (env!("CARGO_BIN_EXE_fairhead"), disk.0.as_str());
    let script = format!(
        "mkdir -p /etc/udev/rules.d && mount -t tmpfs none /etc/udev/rules.d && mount -t tmpfs none /run && \
         {program} apply {name} none max_sectors_kb=4000000000 --yes; echo ended with $?; ls /etc/udev/rules.d"
    );
    let Ok(out) = Command::new("unshare").args(["-m", "sh", "-c", &script]).output() else {
        return println!("skipped: no unshare");
    };
    let (said, wrong) = (text(&out.stdout), text(&out.stderr));
    assert!(said.ends_with("ended with 1\n"), "and no rule: {said}{wrong}");
    assert!(
        wrong.contains("max_sectors_kb=4000000000: the kernel makes ") || wrong.contains("Invalid argument"),
        "{wrong}"
    );
    assert_eq!(disk.all(), before, "all values are as before");
    // A trial does not measure under another value than it was asked for.
    let mut command = fairhead();
    let out = command.args(["try", name, "none", "max_sectors_kb=4000000000", "-t", "8s", "--turn", "2s"]);
    let out = out.output().unwrap();
    let wrong = text(&out.stderr);
    if wrong.contains("tracefs") {
        return println!("skipped: {wrong}");
    }
    assert_eq!(out.status.code(), Some(1), "{wrong}");
    assert!(
        wrong.contains("max_sectors_kb=4000000000: the kernel makes ") || wrong.contains("Invalid argument"),
        "{wrong}"
    );
    assert_eq!(disk.all(), before, "all values are as before, after the trial, too");
}
