//! A change that lasts, on a disk made of files: the number of requests comes with the scheduler.

use fairhead_machine::{Machine, Plan, Queue, Tree, wanted};
use std::fs;
use std::path::{Path, PathBuf};

const QUEUE: &str = "sys/block/sdc/queue";

/// A USB disk under mq-deadline: its driver has one tag, and so it has 2 requests.
fn usb_disk(root: &Path) {
    let files = [
        ("sys/block/sdc/size", "1000"),
        ("sys/block/sdc/dev", "8:32"),
        ("sys/block/sdc/mq/0/nr_tags", "1"),
        ("sys/block/sdc/queue/scheduler", "none [mq-deadline] bfq"),
        ("sys/block/sdc/queue/nr_requests", "2"),
        ("sys/block/sdc/queue/rotational", "1"),
        ("run/udev/data/b8:32", "E:ID_SERIAL=Ultra_Fit_1\n"),
    ];
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        usb_disk(root.path());
        Self(root)
    }

    fn place(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn requests(&self) -> String {
        fs::read_to_string(self.place(QUEUE).join("nr_requests")).unwrap()
    }

    fn scheduler(&self) -> String {
        fs::read_to_string(self.place(QUEUE).join("scheduler")).unwrap()
    }

    /// Plans what the words say, or the undoing of it, and carries it out. Returns what becomes of the rule.
    fn change(&self, words: Option<&str>) -> String {
        let tree = Tree::new(self.0.path());
        let machine = Machine::read(&tree);
        let disk = &machine.disks[0];
        let plan = match words {
            Some(words) => {
                let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
                Plan::apply(&tree, &machine, disk, wanted(disk, &words).unwrap()).unwrap()
            }
            None => Plan::undo(&tree, disk).unwrap(),
        };
        let queue = Queue::at("sdc", &self.place(QUEUE)).unwrap();
        plan.carry_out(&tree, Some(&queue)).unwrap();
        // The kernel puts the brackets.
        let chosen = self.scheduler();
        let offered = "none mq-deadline bfq".replace(&chosen, &format!("[{chosen}]"));
        fs::write(self.place(QUEUE).join("scheduler"), offered).unwrap();
        plan.difference()
    }
}

#[test]
fn a_scheduler_is_applied_with_enough_requests_and_both_are_undone() {
    let disk = Disk::new();
    let rule = disk.change(Some("bfq"));
    // The scheduler first: choosing one gives the disk its default number of requests.
    assert!(rule.contains("ATTR{queue/scheduler}=\"bfq\", ATTR{queue/nr_requests}=\"64\"\n"), "{rule}");
    assert!(rule.contains("# before: scheduler=mq-deadline nr_requests=2\n"), "{rule}");
    assert_eq!(disk.requests(), "64");
    disk.change(None);
    assert_eq!(disk.requests(), "2");
    assert_eq!(disk.scheduler(), "none [mq-deadline] bfq");
    assert_eq!(fs::read_dir(disk.place("etc/udev/rules.d")).unwrap().count(), 0);
}

#[test]
fn a_number_that_was_asked_for_stays() {
    let disk = Disk::new();
    let rule = disk.change(Some("bfq nr_requests=8"));
    assert!(rule.contains("ATTR{queue/nr_requests}=\"8\"\n"), "{rule}");
    assert_eq!(disk.requests(), "8");
    // A second change that chooses the scheduler alone brings enough again.
    disk.change(Some("bfq"));
    assert_eq!(disk.requests(), "64");
}
