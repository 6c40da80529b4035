//! The control socket: what can be seen and changed through it.

#![allow(clippy::disallowed_methods, reason = "sockets and their time-outs are real")]

use crate::control_place::{Place, SIZE, done, group, say, stats};
use fairhead_live::control::{Caller, ControlOptions, ControlServer};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::Duration;

#[test]
fn books_tell_what_clients_got() {
    let place = Place::new();
    let disk = place.disk("noop");
    let _control = place.control(&disk);
    let mode = place.socket().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let client = disk.client("a/b").unwrap();
    for i in 0..10 {
        client.read(0, i * 8192, 4096).wait().unwrap();
    }
    client.write(0, 0, disk.buffer(65536)).wait().unwrap();
    client.flush(0).wait().unwrap();
    client.read(0, SIZE, 4096).wait().unwrap_err();
    let all = stats(&mut place.caller());
    assert_eq!((&all["ok"], &all["scheduler"], &all["depth"]), (&true.into(), &"noop".into(), &4.into()));
    assert_eq!((all["in_flight"].as_u64(), all["given_up"].as_u64()), (Some(0), Some(0)));
    assert!(all["lateness"].is_null() && all["now_ns"].as_u64().unwrap() > 0);
    let got = group(&all, "a/b");
    assert_eq!(got["io_service_bytes"]["Read"], 40_960);
    assert_eq!((&got["io_serviced"]["Read"], &got["io_serviced"]["Write"]), (&10.into(), &1.into()));
    let (reads, writes) = (&got["read_latency"], &got["write_latency"]);
    assert_eq!((&reads["count"], &reads["errors"], &writes["count"]), (&10.into(), &0.into(), &1.into()));
    let ns = |name: &str| reads[name].as_u64().unwrap();
    assert!(0 < ns("p50_ns") && ns("p50_ns") <= ns("p99_ns") && ns("p99_ns") <= ns("max_ns"), "{reads}");
    assert!(ns("sum_ns") <= 10 * ns("max_ns"));
    let steps = reads["steps_ns"].as_array().unwrap();
    assert_eq!(steps.iter().map(|s| s[1].as_u64().unwrap()).sum::<u64>(), 10);
    assert!(group(&all, "a")["read_latency"].is_null(), "its own, not those of the groups in it");
    assert!(group(&all, "")["weight"].is_null(), "the root has none");
}

#[test]
fn groups_and_what_they_are_told() {
    let place = Place::new();
    let disk = place.disk("bfq");
    let _control = place.control(&disk);
    let mut c = place.caller();
    done(
        &mut c,
        "make vm/web weight=300 class=rt rbps=50m wiops=100 burst=1s min_iops=20 leaf_weight=7 latency=5ms",
    );
    let all = stats(&mut c);
    let web = group(&all, "vm/web");
    assert_eq!((&web["weight"], &web["leaf_weight"], &web["class"]), (&300.into(), &7.into(), &"rt".into()));
    assert_eq!(web["max"]["rbps"], 50 << 20);
    assert_eq!((&web["max"]["wbps"], &web["max"]["wiops"]), (&"max".into(), &100.into()));
    assert_eq!((&web["max"]["burst_ns"], &web["min_iops"]), (&1_000_000_000.into(), &20.into()));
    assert_eq!(web["latency_target_ns"], 5_000_000);
    assert_eq!(group(&all, "vm")["weight"], 100, "made on the way");
    assert!(group(&all, "vm")["latency_target_ns"].is_null());
    done(&mut c, "set vm/web weight=400 rbps=max latency=max");
    assert!(group(&stats(&mut c), "vm/web")["latency_target_ns"].is_null());
    let all = stats(&mut c);
    assert_eq!(
        (&group(&all, "vm/web")["weight"], &group(&all, "vm/web")["class"]),
        (&400.into(), &"rt".into())
    );
    assert_eq!(group(&all, "vm/web")["max"]["rbps"], "max");
    done(&mut c, "set / leaf_weight=50");
    assert_eq!(group(&stats(&mut c), "")["leaf_weight"], 50);
    // Both at once, each of which would contradict what the other was.
    done(&mut c, "set vm/web wiops=10 min_iops=5");
    done(&mut c, "set vm/web wiops=1000 min_iops=500");
    for (words, why) in [
        ("set vm/wbe weight=3", "unknown group 'vm/wbe'; did you mean 'vm/web'?"),
        ("make vm/web", "group vm/web: there is one; set changes it"),
        ("make /", "group /: there is one; set changes it"),
        ("remove vm", "group vm: group"),
        ("remove /", "the root group can be neither changed nor removed"),
        ("set / latency=1ms", "group /: the root group can be neither changed nor removed"),
        ("set / weight=3", "group /: the root group can be neither changed nor removed"),
    ] {
        let e = say(&mut c, words).unwrap_err();
        assert!(e.starts_with(why), "{words}: {e}");
    }
    done(&mut c, "remove vm/web");
    done(&mut c, "remove vm");
    assert_eq!(stats(&mut c)["groups"].as_array().unwrap().len(), 1);
    assert_eq!(say(&mut c, "remove vm").unwrap_err(), "no group 'vm': there is none but the root, /");
}

#[test]
fn another_scheduler_has_the_groups_as_they_are() {
    let place = Place::new();
    let disk = place.disk("bfq");
    let _control = place.control(&disk);
    let mut c = place.caller();
    for words in [
        "make a/b/c weight=300 leaf_weight=5 class=idle rbps=1m riops=10 burst=1s min_iops=3 latency=7ms",
        "make d leaf_weight=9",
        "make e/f weight=2",
        "remove e/f",
        "remove e",
        "set / leaf_weight=77",
        "set a class=rt wbps=2m",
    ] {
        done(&mut c, words);
    }
    let told = |mut all: Value| {
        let groups = all["groups"].as_array_mut().unwrap();
        let keys = ["group", "weight", "leaf_weight", "class", "max", "min_iops", "latency_target_ns"];
        groups
            .iter_mut()
            .for_each(|g| g.as_object_mut().unwrap().retain(|key, _| keys.contains(&key.as_str())));
        Value::from(groups.clone())
    };
    let before = told(stats(&mut c));
    for scheduler in ["cfq+groups", "noop", "bfq", "cfq"] {
        done(&mut c, &format!("sched {scheduler}"));
        assert_eq!(told(stats(&mut c)), before, "{scheduler}");
    }
    // And where they are: what is in a guaranteed group counts for the limits around it.
    let e = say(&mut c, "set a riops=2").unwrap_err();
    assert_eq!(e, "group a: reservations of 3 requests/s are above the group's limit of 2");
    done(&mut c, "make e/f");
}

#[test]
fn the_depth_is_set_and_let_go() {
    let place = Place::new();
    let disk = place.disk("noop");
    let _control = place.control(&disk);
    let mut c = place.caller();
    let depth = |c: &mut Caller| {
        let all = stats(c);
        (all["depth"].as_u64().unwrap(), all["depth_adapts"].as_bool().unwrap())
    };
    assert_eq!(depth(&mut c), (4, false), "as it was opened");
    done(&mut c, "depth 7");
    assert_eq!(depth(&mut c), (7, false));
    assert_eq!(say(&mut c, "depth 0").unwrap_err(), "depth 0: 1 to 1024, or auto");
    assert_eq!(depth(&mut c), (7, false));
    done(&mut c, "depth auto");
    assert_eq!(depth(&mut c), (4, false));
    disk.set_depth(Some(1024)).unwrap();
    assert_eq!(depth(&mut c).0, 1024);
    disk.set_depth(Some(1025)).unwrap_err();
}

#[test]
fn what_is_refused_changes_nothing() {
    let place = Place::new();
    let disk = place.disk("bfq");
    let _control = place.control(&disk);
    let mut c = place.caller();
    done(&mut c, "make a weight=200 riops=100 min_iops=50");
    let before = group(&stats(&mut c), "a").clone();
    let e = say(&mut c, "set a weight=300 class=idle riops=10").unwrap_err();
    assert_eq!(e, "group a: reservations of 50 requests/s are above the group's limit of 10");
    let e = say(&mut c, "set a weight=300 riops=10 min_iops=20").unwrap_err();
    assert!(e.contains("reservations of 20"), "{e}");
    assert_eq!(*group(&stats(&mut c), "a"), before);
    let e = say(&mut c, "make b/c/d riops=10 min_iops=20").unwrap_err();
    assert!(e.starts_with("group b/c/d: reservations"), "{e}");
    assert_eq!(stats(&mut c)["groups"].as_array().unwrap().len(), 2, "nor are the groups around it there");
    // All numbers that there are; then not one of a path for which there are not enough.
    for i in 0..253 {
        done(&mut c, &format!("make g{i}"));
    }
    let e = say(&mut c, "make x/y").unwrap_err();
    assert!(e.contains("there can be 255 groups"), "{e}");
    assert_eq!(stats(&mut c)["groups"].as_array().unwrap().len(), 255);
    done(&mut c, "make x");
}

#[test]
fn a_new_group_has_nothing_of_the_one_whose_number_it_has() {
    let place = Place::new();
    let disk = place.disk("noop");
    let _control = place.control(&disk);
    let mut c = place.caller();
    let client = disk.client("old").unwrap();
    client.read(0, 0, 4096).wait().unwrap();
    drop(client);
    done(&mut c, "sched bfq");
    done(&mut c, "remove old");
    done(&mut c, "make new");
    let all = stats(&mut c);
    let new = group(&all, "new");
    assert!(new["read_latency"].is_null(), "{new}");
    assert_eq!(new["io_serviced"]["Total"], 0);
}

#[test]
fn metrics_are_what_prometheus_reads() {
    let place = Place::new();
    let disk = place.disk("noop");
    let metrics = Some("127.0.0.1:0".parse().unwrap());
    let options = ControlOptions { metrics, ..ControlOptions::default() };
    let control = ControlServer::start(&disk, &options).unwrap();
    let client = disk.client("a\"b").unwrap();
    (0..5).for_each(|i| drop(client.read(0, i * 65536, 4096).wait().unwrap()));
    let get = |request: &str| {
        let mut stream = TcpStream::connect(control.metrics().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    for line in [
        "fairhead_scheduler{scheduler=\"noop\"} 1",
        "fairhead_group_serviced_total{group=\"a\\\"b\",op=\"read\"} 5",
        "fairhead_group_service_bytes_total{group=\"a\\\"b\",op=\"read\"} 20480",
        "fairhead_group_latency_seconds_count{group=\"a\\\"b\",op=\"read\"} 5",
        "fairhead_group_latency_seconds_bucket{group=\"a\\\"b\",op=\"read\",le=\"+Inf\"} 5",
    ] {
        assert!(body.lines().any(|l| l == line), "no {line} in {body}");
    }
    // Every line is a comment, or a name, labels and a number; buckets only grow.
    let mut last = 0.0;
    for line in body.lines().filter(|l| !l.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        assert!(name.starts_with("fairhead_") && value >= 0.0, "{line}");
        if name.contains("_bucket{") {
            let is_first = name.contains("le=\"0.000016384\"");
            assert!(is_first || value >= last, "{line}");
            last = value;
        }
    }
    assert!(get("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(get(&"x".repeat(10_000)).starts_with("HTTP/1.1 404 "));
    let remote = ControlOptions { metrics: Some("0.0.0.0:0".parse().unwrap()), ..options };
    let e = ControlServer::start(&disk, &remote).unwrap_err();
    assert!(e.to_string().contains("can be reached from other machines"), "{e}");
}

#[test]
fn sockets_left_behind_are_replaced_and_others_are_not() {
    let place = Place::new();
    let disk = place.disk("noop");
    drop(UnixListener::bind(place.socket()).unwrap());
    let control = place.control(&disk);
    done(&mut place.caller(), "stats");
    let options = ControlOptions { socket: Some(place.socket()), ..ControlOptions::default() };
    let e = ControlServer::start(&disk, &options).unwrap_err();
    assert!(e.to_string().ends_with("another server listens there"), "{e}");
    drop(control);
    assert!(!place.socket().exists());
    std::fs::write(place.socket(), "mine").unwrap();
    let e = ControlServer::start(&disk, &options).unwrap_err();
    assert!(e.to_string().ends_with("there is a file of that name"), "{e}");
    assert_eq!(std::fs::read(place.socket()).unwrap(), b"mine");
    assert!(Caller::connect(&place.0.path().join("missing")).is_err());
}

#[test]
fn an_engine_that_has_stopped_is_told_of() {
    let place = Place::new();
    let disk = place.disk("noop");
    let _control = place.control(&disk);
    let mut c = place.caller();
    done(&mut c, "stats");
    drop(disk);
    assert_eq!(say(&mut c, "make a").unwrap_err(), "the engine has stopped");
}
