//! `fairhead doctor` as a user meets it: on this machine, and on one made of files.

use std::path::Path;
use std::process::{Command, Output};

fn doctor(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("doctor").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A machine with one rotating disk under `none`.
fn machine(folder: &Path) -> String {
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let disk = "sys/devices/pci0/ata1/block/sda";
    write(&format!("{disk}/size"), "3907029168");
    write(&format!("{disk}/device/model"), "WDC WD20\n");
    write(&format!("{disk}/queue/rotational"), "1");
    write(&format!("{disk}/queue/scheduler"), "[none] mq-deadline bfq");
    std::fs::create_dir_all(folder.join("sys/block")).unwrap();
    std::os::unix::fs::symlink("../devices/pci0/ata1/block/sda", folder.join("sys/block/sda")).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn a_finding_has_a_number_a_command_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let root = machine(folder.path());
    let out = doctor(&["--root", &root]);
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(1), ""));
    let said = text(&out.stdout);
    for part in [
        "sda   rotating disk  SATA  2.0 TB  WDC WD20",
        "1. sda is a rotating disk under none. [advice, scheduler-unfit-rotating]",
        "In the lab (disk nas2020, load doctor-start-beside-copy), an application that starts beside a copy takes",
        "Do:   echo bfq > /sys/block/sda/queue/scheduler",
        "Undo: echo none > /sys/block/sda/queue/scheduler",
        "0 faults, 1 of advice.",
    ] {
        assert!(said.contains(part), "no '{part}' in\n{said}");
    }
    // The number can be had again by the names that it gives.
    let again = Command::new(env!("CARGO_BIN_EXE_fairhead"))
        .args(["run", "doctor-start-beside-copy", "--disk", "nas2020", "--sched", "none,bfq"])
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[test]
fn json_has_the_same_and_quick_has_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let root = machine(folder.path());
    let out = doctor(&["--root", &root, "--json", "--quick"]);
    assert_eq!(out.status.code(), Some(1));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(value["disks"][0]["name"], "sda");
    assert_eq!(value["findings"][0]["check"], "scheduler-unfit-rotating");
    assert_eq!(value["findings"][0]["lab"], serde_json::Value::Null);
    assert_eq!(value["findings"][0]["do"], "echo bfq > /sys/block/sda/queue/scheduler");
}

/// An NVMe SSD under bfq has two figures, one for each side, and no command that is carried out unasked.
#[test]
fn both_sides_of_bfq_on_nvme_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("sys/devices/pci0/nvme/nvme0/block/nvme0n1");
    std::fs::create_dir_all(disk.join("queue")).unwrap();
    for (file, text) in
        [("size", "1953525168"), ("queue/rotational", "0"), ("queue/scheduler", "none kyber [bfq]")]
    {
        std::fs::write(disk.join(file), text).unwrap();
    }
    std::fs::create_dir_all(folder.path().join("sys/block")).unwrap();
    let link = folder.path().join("sys/block/nvme0n1");
    std::os::unix::fs::symlink("../devices/pci0/nvme/nvme0/block/nvme0n1", link).unwrap();
    let root = folder.path().to_str().unwrap();
    let said = text(&doctor(&["--root", root]).stdout);
    let lab = |load: &str| said.matches(&format!("In the lab (disk nvme, load {load})")).count();
    assert_eq!((lab("doctor-deep-readers"), lab("doctor-start-beside-readers")), (1, 1), "{said}");
    let place = "/sys/block/nvme0n1/queue/scheduler";
    assert!(said.contains(&format!("Do:   # if deep readers count more than starts: echo none > {place}\n")));
    let json = text(&doctor(&["--root", root, "--json"]).stdout);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let lab = value["findings"][0]["lab"].as_str().unwrap();
    assert_eq!(lab.matches("In the lab").count(), 2, "{lab}");
}

#[test]
fn wrong_names_are_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let root = machine(folder.path());
    let out = doctor(&["--root", &root, "/dev/sdz"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr), "fairhead: no disk 'sdz'; there are sda\n");
    let empty = tempfile::tempdir().unwrap();
    let out = doctor(&["--root", empty.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no disks in"), "{}", text(&out.stderr));
}

/// What another program reads from the same kernel.
#[test]
fn this_machine_is_as_lsblk_has_it() {
    let columns = "NAME,ROTA,SCHED,SIZE,RQ-SIZE,RA";
    let lsblk = Command::new("lsblk").args(["--json", "--bytes", "--nodeps", "-o", columns]).output();
    let Ok(lsblk) = lsblk else { return eprintln!("skipped: no lsblk") };
    let theirs: serde_json::Value = serde_json::from_slice(&lsblk.stdout).unwrap();
    let out = doctor(&["--json", "--quick"]);
    if out.status.code() == Some(2) {
        return eprintln!("skipped: {}", text(&out.stderr));
    }
    let ours: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for disk in ours["disks"].as_array().unwrap() {
        // A loop device of another test may be gone by now.
        let their = theirs["blockdevices"].as_array().unwrap().iter().find(|d| d["name"] == disk["name"]);
        let Some(their) = their else { continue };
        if disk["name"].as_str().unwrap().starts_with("loop") {
            continue;
        }
        assert_eq!(disk["rotational"], their["rota"], "{disk}");
        assert_eq!(disk["size_bytes"], their["size"], "{disk}");
        let number = |key: &str| disk["queue"][key].as_str().unwrap().parse::<i64>().unwrap();
        assert_eq!(number("nr_requests"), their["rq-size"].as_i64().unwrap());
        assert_eq!(number("read_ahead_kb"), their["ra"].as_i64().unwrap());
        if !disk["scheduler"].is_null() {
            assert_eq!(disk["scheduler"], their["sched"], "{disk}");
        }
    }
}
