//! The published figures of the prototype, reproduced with a small closed-loop host: `n` clients, one request each, served
//! in turn. Rates are integers of KiB/s.
//= Fairhead device notes 3.5, 8.1 to 8.3 type=test

mod host;

use fairhead_device::DiskParams;
use host::{Host, Load, disk};

/// `n` sequential readers of 4 KiB on files of 1 GiB.
fn readers(p: &DiskParams, n: u64) -> u64 {
    Host::new(p).run(&Load::sequential_reads(n), 20).kib_per_s
}

#[test]
fn print_figures() {
    let p = disk("ide2004");
    println!("readers {:?}", [1, 2, 4, 8].map(|n| readers(&p, n)));
    for (what, p) in [
        ("keep 1", DiskParams { ra_keep: 1, ..p.clone() }),
        ("keep 16", DiskParams { ra_keep: 16, ..p.clone() }),
        ("abort 0", DiskParams { ra_abort: Some(fairhead_core::units::Duration::ZERO), ..p.clone() }),
        ("nseg 3", DiskParams { nseg: 3, ..p.clone() }),
        ("no ra", DiskParams { ra_max: fairhead_core::units::Sectors(0), ..p.clone() }),
    ] {
        println!("{what} {:?}", [2, 4, 8].map(|n| readers(&p, n)));
    }
    println!(
        "writers {:?}",
        [1, 2, 4, 8].map(|n| Host::new(&p).run(&Load::sequential_writes(n), 20).kib_per_s)
    );
    for name in ["ide2004", "sata2009", "nas2020"] {
        let mut p = disk(name);
        p.queue_depth = 32;
        println!("{name} {:?}", [1, 4, 32].map(|n| Host::new(&p).run(&Load::random_reads(n), 20).iops));
    }
}
