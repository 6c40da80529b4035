//! What this program plays in processes of its own: the server, a flood, a program that burns processor time.

use crate::floods;
use crate::journal;
use crate::place::honest_role;
use fairhead_core::Max;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_live::control::{ControlOptions, ControlServer};
use fairhead_live::nbd::{Export, Listen, Options, Server};
use fairhead_live::vhost::Device;
use fairhead_live::{Disk, DiskOptions, Error, Mount};
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Plays a role until its standard input ends, or it is killed.
pub(crate) fn play(args: &[String]) {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["serve", dir, image, limits] => said(serve(dir.as_ref(), image, limits)),
        ["mount", dir, image, limits, evil] => said(mount(dir.as_ref(), image, limits, evil)),
        ["soak", dir, exports] => said(serve_many(dir.as_ref(), exports.parse().unwrap_or(1))),
        ["flood", front, dir, message, count, reads] => {
            be_nice();
            flood(front, dir.as_ref(), message, count.parse().unwrap_or(1), reads == "reads");
        }
        ["beside-journal", dir, image, setting] => said(mount_with(dir.as_ref(), image, setting)),
        ["journal", file] => journal::keep(file.as_ref()),
        ["honest", file, ms] => honest_role(file, ms),
        ["hog", part] => {
            be_nice();
            burn(part.parse().unwrap_or(1.0));
        }
        _ => eprintln!("neighbours: no role {args:?}"),
    }
}

fn said(result: Result<(), Error>) {
    if let Err(e) = result {
        println!("{e}");
    }
}

fn be_nice() {
    // SAFETY: it names no memory.
    unsafe { libc::nice(15) };
}

fn flood(front: &str, dir: &Path, message: &str, count: usize, reads: bool) {
    match front {
        "Nbd" => floods::flood_nbd(dir, message, count, reads),
        "Guest" => floods::flood_guest(dir, message, count),
        "Control" => floods::flood_control(dir, message, count, reads),
        _ => floods::flood_calls(dir, message, count),
    }
}

/// Burns this part of a processor's time.
fn burn(part: f64) -> ! {
    const STEP: Duration = Duration::from_millis(10);
    loop {
        let began = Instant::now();
        while began.elapsed() < STEP.mul_f64(part.clamp(0.0, 1.0)) {
            std::hint::spin_loop();
        }
        std::thread::sleep(STEP.saturating_sub(began.elapsed()));
    }
}

fn options(image: &str) -> Result<DiskOptions, Error> {
    let disk = DiskOptions::new::<PathBuf>([]).scheduler("bfq")?;
    Ok(match DeviceParams::preset(image) {
        Ok(params) => disk.emulate(params),
        // In memory.
        Err(_) => disk,
    })
}

fn limit(disk: &Disk, limits: &str, group: &str) -> Result<(), Error> {
    let ten = NonZeroU64::new(10);
    match limits {
        "limited" => {
            disk.set_weight(group, 1)?;
            disk.set_max(group, Max { riops: ten, wiops: ten, ..Max::default() })
        }
        _ => disk.set_weight(group, 100),
    }
}

fn serve(dir: &Path, image: &str, limits: &str) -> Result<(), Error> {
    let exports = ["good", "evil"].map(|name| Export::new(name, dir.join(name)));
    let listen = [Listen::Unix(dir.join("socket"))];
    let devices = [Device {
        group: "evil".into(),
        queues: 8,
        ..Device::new("third", dir.join("guest"), dir.join("third"))
    }];
    let server =
        Server::start_with_devices(options(image)?, &exports, &listen, &devices, Options::default())?;
    limit(server.disk(), limits, "evil")?;
    let control = ControlOptions {
        socket: Some(dir.join("control")),
        exports: Some(server.exports()),
        ..ControlOptions::default()
    };
    let _control = ControlServer::start(server.disk(), &control)?;
    wait();
    Ok(())
}

fn mount(dir: &Path, image: &str, limits: &str, evil: &str) -> Result<(), Error> {
    // As the command does.
    fairhead_live::keep_heap_small();
    let mount = Mount::directory(options(image)?, &dir.join("source"), &dir.join("mnt"))?;
    limit(mount.disk(), limits, evil)?;
    wait();
    Ok(())
}

/// A mount with live BFQ's defaults, or without idling.
fn mount_with(dir: &Path, image: &str, setting: &str) -> Result<(), Error> {
    fairhead_live::keep_heap_small();
    let mut options = options(image)?;
    if setting == journal::NO_IDLING {
        let mut config = (preset("bfq").expect("a preset").config)().live();
        config.set("slice_idle", 0).expect("in range");
        options = options.config(config).idles_freely();
    }
    let _mount = Mount::directory(options, &dir.join("source"), &dir.join("mnt"))?;
    wait();
    Ok(())
}

/// Exports `e0`, `e1` and so on, of different weights, on the disk that the folder is on.
fn serve_many(dir: &Path, exports: usize) -> Result<(), Error> {
    let all: Vec<Export> =
        (0..exports).map(|i| Export::new(format!("e{i}"), dir.join(format!("e{i}")))).collect();
    let listen = [Listen::Unix(dir.join("socket"))];
    let server = Server::start(options("as it is")?, &all, &listen, Options::default())?;
    for i in 0..exports {
        server.disk().set_weight(&format!("e{i}"), [50, 100, 190, 250, 350, 430][i % 6])?;
    }
    wait();
    Ok(())
}

/// Says that all is there, and waits until the other side has gone.
fn wait() {
    println!("ready");
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read(&mut [0]);
}
