//! What one neighbour can do to the others, in time: each message of each front, in floods, beside an honest
//! tenant; and a soak of tenants that think and reconnect.
//!
//! ```text
//!   cargo bench -p fairhead-live --bench neighbours                    the matrix, half an hour
//!   cargo bench -p fairhead-live --bench neighbours -- FLUSH 'x 8'     its cells with both words
//!   cargo bench -p fairhead-live --bench neighbours -- soak 60         the soak, in seconds
//!   cargo bench -p fairhead-live --bench neighbours -- journal 5       a neighbour that calls fsync
//! ```
//!
//! **A cell** is a message (`../../tests/messages`, `calls.rs`: made from the tables of the protocols'
//! numbers) × 8 connections that read what they get, or 200 that never do × a neighbour without limits or
//! with `weight=1,riops=10,wiops=10` × an image in memory or on an emulated `sata_ssd`. The server, the flood
//! and what it is compared with are processes of their own. The honest tenant reads 4 KiB at random, one
//! request at a time, for [`TIME`]: beside the flood, and beside a program that burns as much processor time
//! as the flood did. What it keeps is judged by [`Cell::misses`]. A cell that misses is measured again, and
//! has missed if it does so [`TRIES`] times in a row.
//!
//! The last line says how many cells missed; then the exit code is 1.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

#[path = "../../tests/cgroup/mod.rs"]
mod cgroup;
#[path = "../../tests/messages/mod.rs"]
mod messages;
#[path = "../../tests/nbd_client/mod.rs"]
mod nbd_client;
#[path = "../../tests/vhost_guest/mod.rs"]
mod vhost_guest;

mod calls;
mod cell;
mod floods;
mod honest;
mod journal;
mod place;
mod processes;
mod roles;
mod soak;

use cell::Cell;
use place::Place;
use std::process::ExitCode;
use std::time::Duration;

/// How long the honest tenant is measured, each time.
const TIME: Duration = Duration::from_millis(500);

/// How often a cell that misses is measured.
const TRIES: u32 = 3;

fn main() -> ExitCode {
    // Cargo says `--bench`, too.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("role") => {
            roles::play(&args[1..]);
            ExitCode::SUCCESS
        }
        Some("soak") => match seconds(&args, 60) {
            Some(time) => soak::run(time),
            None => usage("soak SECONDS"),
        },
        Some("journal") => match seconds(&args, 5) {
            Some(time) => journal::run(time),
            None => usage("journal SECONDS"),
        },
        _ => matrix(&args),
    }
}

/// The time that the second argument says.
fn seconds(args: &[String], usual: u64) -> Option<Duration> {
    args.get(1).map_or(Ok(usual), |text| text.parse()).ok().map(Duration::from_secs)
}

fn usage(right: &str) -> ExitCode {
    eprintln!("neighbours: write {right}");
    ExitCode::FAILURE
}

/// All cells whose names have all of these words.
fn matrix(words: &[String]) -> ExitCode {
    let (mut cells, mut missed) = (0, Vec::new());
    println!("{}", cell::HEAD);
    for (image, limited) in [("memory", false), ("memory", true), ("sata_ssd", false), ("sata_ssd", true)] {
        for front in place::FRONTS {
            let wanted: Vec<Cell> =
                front.cells(image, limited).into_iter().filter(|c| c.has(words)).collect();
            if wanted.is_empty() {
                continue;
            }
            let mut place = match Place::new(*front, image, limited) {
                Ok(place) => place,
                Err(why) => {
                    println!("skipped: {front:?} on {image}: {why}");
                    continue;
                }
            };
            for cell in wanted {
                let found = (1..=TRIES).find_map(|last| {
                    let found = cell.measure(&mut place);
                    (found.misses.is_empty() || last == TRIES).then_some(found)
                });
                let found = found.expect("it is tried at least once");
                println!("{found}");
                cells += 1;
                missed.extend((!found.misses.is_empty()).then(|| found.to_string()));
            }
        }
    }
    missed.iter().for_each(|row| println!("missed: {row}"));
    println!("{cells} cells, {} missed", missed.len());
    ExitCode::from(u8::from(!missed.is_empty() || cells == 0))
}
