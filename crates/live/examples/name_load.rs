//! Creates, looks at and removes files, as fast as one or several processes can.
//!
//! `cargo run --release --example name_load -- FOLDER [PROCESSES [FILES]]`
//!
//! Each process has a folder of its own inside FOLDER, in which it makes FILES empty files, and closes them.
//! Then the kernel is made to forget all names that nothing uses, if that is permitted (as root): else it
//! would answer the next step itself. Then each file's attributes are read, and then each is removed. The
//! processes begin each step together. Prints the files per second of the three steps, of all processes
//! together, with spaces in between.

#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const STEPS: usize = 3;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(usual);
    let Some(folder) = args.first().map(Path::new) else {
        eprintln!("name_load FOLDER [PROCESSES [FILES]]");
        std::process::exit(2);
    };
    match args.get(3).map(String::as_str) {
        Some("worker") => work(folder, number(2, 1)),
        _ => lead(folder, number(1, 1), number(2, 5000)),
    }
}

/// Starts the processes, and has them do each step together.
fn lead(folder: &Path, processes: u64, files: u64) -> io::Result<()> {
    let own = |i: u64| folder.join(format!("names-{i}"));
    let mut children: Vec<Child> = (0..processes)
        .map(|i| {
            fs::create_dir(own(i))?;
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(own(i)).args(["1", &files.to_string(), "worker"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
        })
        .collect::<io::Result<_>>()?;
    let mut rates = Vec::new();
    for _ in 0..STEPS {
        // What cannot be forgotten is measured as it is.
        let _ = fs::write("/proc/sys/vm/drop_caches", "2");
        let began = Instant::now();
        for child in &mut children {
            child.stdin.as_mut().expect("piped").write_all(b"\n")?;
        }
        for child in &mut children {
            child.stdout.as_mut().expect("piped").read_exact(&mut [0])?;
        }
        rates.push(format!("{:.0}", (processes * files) as f64 / began.elapsed().as_secs_f64()));
    }
    for (i, child) in children.iter_mut().enumerate() {
        if !child.wait()?.success() {
            return Err(io::Error::other(format!("process {i} failed")));
        }
        fs::remove_dir(own(i as u64))?;
    }
    println!("{}", rates.join(" "));
    Ok(())
}

/// Does a step at each line that comes, and writes a byte after it.
fn work(folder: &Path, files: u64) -> io::Result<()> {
    let paths: Vec<PathBuf> = (0..files).map(|i| folder.join(format!("file-{i}"))).collect();
    let mut lines = BufReader::new(io::stdin()).lines();
    let steps: [fn(&PathBuf) -> io::Result<()>; STEPS] = [
        |path| OpenOptions::new().write(true).create_new(true).open(path).map(drop),
        |path| fs::metadata(path).map(drop),
        |path| fs::remove_file(path),
    ];
    for step in steps {
        lines.next().transpose()?;
        paths.iter().try_for_each(step)?;
        io::stdout().write_all(b"\n")?;
        io::stdout().flush()?;
    }
    Ok(())
}
