//! What the pages for newcomers say holds: commands need no clone, and numbers are those of the program.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Runs the program where there is no clone.
fn fairhead(args: &[&str]) -> Output {
    let place = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).current_dir(place.path()).output().unwrap()
}

/// The commands of a page that are to be typed: the lines of its `sh` blocks.
fn commands(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && line.starts_with("fairhead ") {
            found.push(line.split(" #").next().unwrap_or(line).trim_end());
        }
    }
    found
}

#[test]
fn commands_for_newcomers_need_no_clone() {
    let questions = std::fs::read_dir(root().join("docs/questions")).unwrap();
    let questions = questions.map(|e| format!("docs/questions/{}", e.unwrap().file_name().display()));
    let mut count = 0;
    for name in questions.chain(["README.md".to_owned(), "docs/nvme.md".to_owned()]) {
        for command in commands(&page(&name)) {
            assert!(!command.contains("examples/"), "{name}: {command}");
            count += 1;
        }
    }
    assert!(count > 10, "only {count} commands found: has the fence changed?");
    for command in commands(&page("docs/nvme.md")) {
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let out = fairhead(&args);
        assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    }
    assert!(page("README.md").contains("[NVMe](docs/nvme.md)"));
}

/// The object of a control group, wherever it is.
fn group<'a>(json: &'a Value, name: &str) -> Option<&'a Value> {
    match json {
        Value::Object(map) if map.get("cgroup").is_some_and(|g| g == name) => Some(json),
        Value::Object(map) => map.values().find_map(|v| group(v, name)),
        Value::Array(all) => all.iter().find_map(|v| group(v, name)),
        _ => None,
    }
}

/// docs/questions/container-host.md: a container of twice the weight gets twice the disk under bfq, and the
/// same as the other one under mq-deadline.
#[test]
fn twice_the_weight_is_twice_the_disk() {
    let text = page("docs/questions/container-host.md");
    assert!(text.contains("--blkio-weight 200") && text.contains("io.bfq.weight"));
    for (scheduler, ratio) in [("bfq", 2.0), ("mq-deadline", 1.0)] {
        let run =
            ["run", "two-containers", "--disk", "sata_ssd", "--output-format", "json", "--sched", scheduler];
        let json: Value = serde_json::from_slice(&fairhead(&run).stdout).unwrap();
        let read = |name: &str| group(&json, name).unwrap()["io_service_bytes"]["Read"].as_f64().unwrap();
        let is = read("a") / read("b");
        assert!((is / ratio - 1.0).abs() < 0.05, "{scheduler}: {is}");
    }
}

/// docs/questions/vm-host.md: what systemd makes of two weights, as `doctor` says it.
#[test]
fn systemd_squeezes_weights_as_the_page_says() {
    let machine = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = machine.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("sys/block/sda/size", "3907029168");
    write("sys/block/sda/dev", "8:0");
    write("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]");
    write("sys/fs/cgroup/cgroup.controllers", "cpu io memory");
    write("sys/fs/cgroup/cgroup.subtree_control", "cpu io memory");
    write("etc/systemd/system/customers.service", "[Service]\nIOWeight=400\n");
    write("etc/systemd/system/batch.service", "[Service]\nIOWeight=200\n");
    let out = fairhead(&["doctor", "--quick", "--root", machine.path().to_str().unwrap()]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("weight-squeezed") && said.contains("as 109 and 127"), "{said}");
    let words = page("docs/questions/vm-host.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("`IOWeight=400` becomes 127 and `IOWeight=200` becomes 109"), "{words}");
}
