//! Where a matrix is measured: a server with two tenants, and the ways to it.

use crate::calls::call_of;
use crate::cell::Cell;
use crate::cgroup::Cgroup;
use crate::floods;
use crate::honest::{Client, Kept, read_file};
use crate::messages::{Work, of_guests};
use crate::processes::Player;
use fairhead_live::vhost::REQUESTS;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// The ways to a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Front {
    Nbd,
    Guest,
    Control,
    Mount,
}

pub(crate) const FRONTS: &[Front] = &[Front::Nbd, Front::Guest, Front::Control, Front::Mount];

/// The bytes of an image.
const SIZE: usize = 32 << 20;

/// The connections of a flood: those that read, and those that never do.
const FEW: usize = 8;
const MANY: usize = 200;

impl Front {
    /// All messages of this front, by name, and what they have the disk do.
    fn messages(self) -> Vec<(String, Work)> {
        match self {
            Self::Nbd => floods::nbd().into_iter().map(|m| (m.name, m.work)).collect(),
            Self::Guest => of_guests(REQUESTS).into_iter().map(|r| (r.name, r.work)).collect(),
            Self::Control => floods::control().into_iter().map(|(name, _)| (name, Work::None)).collect(),
            Self::Mount => {
                let all = fairhead_live::OPCODES.iter();
                all.filter_map(|(name, _)| Some(((*name).to_owned(), call_of(name)?.1))).collect()
            }
        }
    }

    /// All cells of this front.
    pub(crate) fn cells(self, image: &'static str, limited: bool) -> Vec<Cell> {
        let crowds: &[(usize, bool)] = match self {
            // A guest has no replies but those that its ring has room for.
            Self::Guest => &[(FEW, true)],
            // A program that waits for its call reads the answer.
            Self::Mount => &[(FEW, true), (MANY, true)],
            Self::Nbd | Self::Control => &[(FEW, true), (MANY, false)],
        };
        let all = self.messages().into_iter().flat_map(|(message, work)| {
            crowds.iter().map(move |&(connections, reads)| {
                let message = message.clone();
                Cell { front: self, message, work, connections, reads, image, limited }
            })
        });
        all.collect()
    }
}

/// The honest tenant's way.
enum Way {
    Client(Client),
    /// A file of the mount, and the cgroups of the two tenants.
    File(PathBuf, Cgroup, Cgroup),
}

/// See the [module](self). Fields go in this order: the server ends before its folder does.
pub(crate) struct Place {
    front: Front,
    way: Way,
    pub(crate) server: Player,
    /// The longest flush of the disk while nothing else is asked.
    pub(crate) flush_time: Duration,
    dir: TempDir,
}

impl Place {
    /// # Errors
    /// Why this cannot be measured here.
    pub(crate) fn new(front: Front, image: &str, limited: bool) -> Result<Self, String> {
        let dir = tempfile::tempdir_in("/dev/shm").map_err(|e| format!("/dev/shm: {e}"))?;
        let limits = if limited { "limited" } else { "free" };
        let at = dir.path().to_str().expect("a plain name");
        if front == Front::Mount {
            return Self::mounted(dir, image, limits);
        }
        for name in ["good", "evil", "third"] {
            fill(&dir.path().join(name)).map_err(|e| e.to_string())?;
        }
        let mut server = Player::server(&["serve", at, image, limits]);
        ready(&mut server)?;
        let mut client = Client::new(&dir.path().join("socket"), "good");
        let flush_time = client.flush_time();
        Ok(Self { front, way: Way::Client(client), server, flush_time, dir })
    }

    fn mounted(dir: TempDir, image: &str, limits: &str) -> Result<Self, String> {
        let cgroups = [Cgroup::new("good"), Cgroup::new("evil")];
        let [Some(good), Some(evil)] = cgroups else { return Err("no cgroup can be made".to_owned()) };
        let at = dir.path();
        for folder in ["source", "mnt", "source/evil"] {
            fs::create_dir(at.join(folder)).map_err(|e| e.to_string())?;
        }
        fill(&at.join("source/good")).map_err(|e| e.to_string())?;
        let name = at.to_str().expect("a plain name");
        let mut server = Player::server(&["mount", name, image, limits, &evil.name]);
        ready(&mut server)?;
        let file = at.join("mnt/good");
        let open = File::options().write(true).open(&file).map_err(|e| e.to_string())?;
        let time = |_| {
            let began = std::time::Instant::now();
            let _ = open.sync_all();
            began.elapsed()
        };
        let flush_time = (0..20).map(time).max().unwrap_or_default();
        Ok(Self { front: Front::Mount, way: Way::File(file, good, evil), server, flush_time, dir })
    }

    /// The honest tenant, for this time.
    pub(crate) fn honest(&mut self, time: Duration) -> Kept {
        match &mut self.way {
            Way::Client(client) => client.run(time),
            Way::File(file, good, _) => {
                let role = ["honest", file.to_str().expect("a plain name"), &time.as_millis().to_string()];
                let mut player = Player::begin(&mut in_cgroup(good, &role));
                heard(&player.line(), time)
            }
        }
    }

    /// A neighbour that floods.
    pub(crate) fn flood(&self, cell: &Cell) -> Player {
        let front = format!("{:?}", self.front);
        let at = self.dir.path().to_str().expect("a plain name");
        let count = cell.connections.to_string();
        let reads = if cell.reads { "reads" } else { "never" };
        let role = ["flood", &front, at, &cell.message, &count, reads];
        match &self.way {
            Way::Client(_) => Player::start(&role),
            Way::File(_, _, evil) => Player::begin(&mut in_cgroup(evil, &role)),
        }
    }
}

/// Plays a role in a cgroup.
pub(crate) fn in_cgroup(cgroup: &Cgroup, role: &[&str]) -> Command {
    let this = std::env::current_exe().expect("this program");
    let words: Vec<String> = role.iter().map(|word| format!("'{word}'")).collect();
    cgroup.command(&format!("{} role {}", this.display(), words.join(" ")))
}

/// What a role that says nothing else is printed by.
pub(crate) fn tell(kept: Kept) {
    println!("{} {} {}", kept.reads, kept.p99.as_micros(), kept.longest.as_micros());
    let _ = std::io::stdout().flush();
}

/// What such a line says; one that is none is of a role that got nothing in this time.
pub(crate) fn heard(line: &str, time: Duration) -> Kept {
    let numbers: Vec<u64> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
    let [reads, p99, longest] = numbers[..] else { return Kept { reads: 0, p99: time, longest: time } };
    let us = Duration::from_micros;
    Kept { reads: reads as usize, p99: us(p99), longest: us(longest) }
}

/// The honest tenant's role in a mount.
pub(crate) fn honest_role(file: &str, ms: &str) {
    tell(read_file(file.as_ref(), Duration::from_millis(ms.parse().unwrap_or(500))));
}

pub(crate) fn ready(server: &mut Player) -> Result<(), String> {
    let line = server.line();
    if line == "ready" { Ok(()) } else { Err(if line.is_empty() { "no server".to_owned() } else { line }) }
}

/// An image without holes: a read of a hole costs less.
pub(crate) fn fill(path: &std::path::Path) -> std::io::Result<()> {
    fs::write(path, vec![0x5a; SIZE])
}
