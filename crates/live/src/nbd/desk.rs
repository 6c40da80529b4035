//! Exports that come and go while the server runs: the part that may take long, in the caller's thread.
//!
//! ```text
//!   control socket ─► Exports: opens, locks, truncates ─Order─► front, in the engine's thread: ExportTable
//! ```
//!
//! One change is made at a time; a list waits for none. Each is made completely or not at all.
//!
//! **Removal** hides the export from new clients at once. Clients that have it keep it, unless the removal is
//! forced; the image stays open and locked until the last one has gone.
//!
//! **Another size** is for new connections: the protocol has no message that tells the others. Those keep the
//! size that they know. If the image was made longer, they do not reach what is new. If it was made shorter,
//! their reads behind its end return zeros, as reads of a file that was cut from outside do, and writes there
//! fail with `ENOSPC`, since they would make the image longer again. Before the image is cut, writes that
//! reach behind the new end are awaited, five seconds at most.
//!
//! What it does not do: serve other users than those that the socket was opened for. A block device keeps its
//! size; it is exported anew when that has changed.

use super::export::{Export, allowed, check_certificates, check_name, facts, lock, look, served};
use super::export_table::{ExportTable, Row, Served};
use super::front::{NbdFront, Order};
use super::session::Facts;
use super::tls::TlsOptions;
use crate::confine;
use crate::counters::{Books, ExportStats};
use crate::disk::{DiskOptions, Shared};
use crate::engine::{Context, Message};
use crate::error::{Error, ErrorKind};
use crate::store::{FileTable, Identity, identity};
use crate::vhost::overlap;
use fairhead_core::units::Sector;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// How often to look whether writes that reach behind the new end of an image are done, before it is not cut
/// because of them, and how long to wait in between: five seconds in all.
const LOOKS: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(5);

/// A server's exports: to look at them and to change them, from any thread.
#[derive(Clone, Debug)]
pub struct Exports(pub(super) Arc<Desk>);

/// What is needed to open another export.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) engine: Arc<Shared>,
    pub(super) orders: mpsc::Sender<Order>,
    /// Held during a change.
    pub(super) changes: Mutex<()>,
    pub(super) disk: DiskOptions,
    pub(super) files: Arc<FileTable>,
    pub(super) books: Books,
    /// The names and groups of the devices of virtual machines.
    pub(super) devices: Vec<(String, String)>,
    pub(super) force_share: bool,
    /// Whether other users than the server's can open its sockets.
    pub(super) is_shared: bool,
    /// Whether an export names its clients: others are then for the server's own user.
    pub(super) is_selective: bool,
    pub(super) tls: TlsOptions,
    pub(super) is_rotational: bool,
}

impl Exports {
    /// Returns the name and the statistics of each export, in the order in which they came.
    #[must_use]
    pub fn look(&self) -> Vec<(String, ExportStats)> {
        self.0.books.look()
    }

    /// Serves another file. If there are settings for its group, the group must be new, and `tell` makes
    /// them.
    pub(crate) fn add_with(
        &self,
        export: &Export,
        has_settings: bool,
        tell: impl FnOnce(&mut Context) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let _change = self.begin();
        check_name(export)?;
        check_certificates(export, &self.0.tls)?;
        if export.names_users() && !self.0.is_shared {
            let why = "no other user can open the server's sockets, since no export named one at the start";
            return Err(Error::new(ErrorKind::Setting, format!("export {}: {why}", export.name)));
        }
        self.0.devices.iter().try_for_each(|device| apart_from(export, device))?;
        let rows = self.0.ask(|front, _| front.exports().rows())?;
        if rows.iter().any(|row| !row.is_closing && row.name == export.name) {
            return Err(Error::new(
                ErrorKind::Setting,
                format!("export {}: there is one of that name", export.name),
            ));
        }
        if confine::status().is_some_and(|confined| !confined.opens_files) {
            let why =
                "a confined server opens no more files; --export-dir DIR at its start names where it may";
            return Err(Error::new(ErrorKind::Confinement, format!("{}: {why}", export.file.display())));
        }
        let looked = look(&export.file, export.read_only)?;
        if let Some(row) = rows.iter().find(|row| row.identity.is_some() && row.identity == looked.identity) {
            return Err(Error::new(
                ErrorKind::File,
                format!("{}: {}", export.file.display(), served_as(row)),
            ));
        }
        if !self.0.force_share {
            lock(&looked.lock, &export.file, !export.read_only)?;
        }
        let (file, size, cached) = self.0.disk.open_file(&export.file, export.read_only)?;
        if identity(&file) != looked.identity {
            let why = format!("{}: its name has become that of another file", export.file.display());
            return Err(Error::new(ErrorKind::File, why));
        }
        let id = self.0.files.add_with(file.into(), cached);
        let allowed = allowed(std::slice::from_ref(export), self.0.is_selective).remove(0);
        let facts = facts(export, &looked, size, self.0.is_rotational);
        let served = served(export, looked, (id, Sector(0)), allowed, Arc::default());
        let added = self.0.ask(move |front, context| add(front, context, facts, served, has_settings, tell));
        let added = added.and_then(|added| added);
        if added.is_err() {
            self.0.files.remove(id);
        }
        added
    }

    /// Refuses new connections to an export; with `force`, ends those that there are. Returns how many there
    /// were. The image is closed, and the group removed, when the last one has gone.
    ///
    /// # Errors
    /// If there is no such export, or the engine has stopped.
    pub fn remove(&self, name: &str, force: bool) -> Result<usize, Error> {
        let _change = self.begin();
        let wanted = name.to_owned();
        self.0.ask(move |front, context| {
            let number = find(front, &wanted)?;
            let numbers = front.exports().remove(number);
            let connections = front.exports().connections(&numbers);
            if force {
                numbers.into_iter().for_each(|number| front.end_all_of(context, number));
            }
            Ok(connections)
        })?
    }

    /// Makes the image of an export as long as this, in bytes. New connections see the new size. The others
    /// keep the old one: behind the end of a shorter image they read zeros, and their writes there fail.
    ///
    /// # Errors
    /// If there is no such export, it is read-only or a block device, the file system refuses, clients are
    /// still writing behind the new end after five seconds, or the engine has stopped.
    pub fn resize(&self, name: &str, size: u64) -> Result<(), Error> {
        let _change = self.begin();
        let wanted = name.to_owned();
        let found = self.0.ask(move |front, _| {
            let number = find(front, &wanted)?;
            let facts = &front.exports().facts()[number];
            let (before, read_only) = (facts.size, facts.read_only);
            let served = &front.exports()[number];
            let image = (Arc::clone(&served.lock), served.path.clone());
            Ok((image, before, read_only, Those { number, identity: served.identity }))
        })?;
        let ((image, path), before, read_only, those) = found?;
        let refused = |why: &str| Err(Error::new(ErrorKind::File, format!("{}: {why}", path.display())));
        if read_only {
            return refused("the export is read-only");
        }
        if !image.metadata().is_ok_and(|facts| facts.is_file()) {
            return refused("only files can be resized");
        }
        if i64::try_from(size).is_err() {
            return refused("no file is that long");
        }
        if size < before {
            self.bound(those, size, before)?;
        }
        let cut = image.set_len(size).and_then(|()| image.sync_all());
        if let Err(why) = cut {
            let end = image.metadata().map_or(before, |facts| facts.len());
            self.0.ask(move |front, _| those.bound(front.exports(), end))?;
            return refused(&why.to_string());
        }
        self.0.ask(move |front, _| those.resize(front.exports(), size))
    }

    /// Refuses writes behind `end`, and waits for those that have begun.
    fn bound(&self, those: Those, end: u64, before: u64) -> Result<(), Error> {
        for _ in 0..LOOKS {
            let changes = self.0.ask(move |front, context| {
                let numbers = those.bound(front.exports(), end);
                front.changes_behind(context, &numbers, end)
            })?;
            if !changes {
                return Ok(());
            }
            thread::sleep(PAUSE);
        }
        self.0.ask(move |front, _| those.bound(front.exports(), before))?;
        Err(Error::new(ErrorKind::File, "clients are still writing behind the new end"))
    }

    /// Returns a list of the exports, also of those that were removed and have connections, as JSON.
    ///
    /// # Errors
    /// If the engine has stopped.
    pub(crate) fn list(&self) -> Result<Value, Error> {
        // A change may wait for a file.
        let rows = self.0.ask(|front, _| {
            let mut rows = front.exports().rows();
            rows.iter_mut()
                .for_each(|row| row.peers = row.number.map(|n| front.peers_of(n)).unwrap_or_default());
            rows
        })?;
        Ok(rows.iter().filter(|row| !(row.is_closing && row.connections == 0)).map(shown).collect())
    }

    fn begin(&self) -> Guard<'_> {
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Guard<'a> = MutexGuard<'a, ()>;

/// The exports of one image, or one export whose image is not known by others. Those that are closing go when
/// their last connection has ended, so they are looked for anew in each turn of the engine.
#[derive(Clone, Copy)]
struct Those {
    number: usize,
    identity: Option<Identity>,
}

impl Those {
    fn numbers(self, exports: &ExportTable) -> Vec<usize> {
        self.identity.map_or_else(|| vec![self.number], |identity| exports.of_image(identity))
    }

    fn bound(self, exports: &mut ExportTable, end: u64) -> Vec<usize> {
        let numbers = self.numbers(exports);
        exports.bound(&numbers, end);
        numbers
    }

    fn resize(self, exports: &mut ExportTable, size: u64) {
        let numbers = self.numbers(exports);
        exports.resize(&numbers, size);
    }
}

impl Desk {
    /// Has the front do something in the engine's thread, and waits for what comes of it.
    fn ask<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut NbdFront, &mut Context) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let stopped = || Error::new(ErrorKind::Stopped, "the engine has stopped");
        let (answer, answered) = mpsc::channel();
        let order: Order = Box::new(move |front, context| {
            let _ = answer.send(f(front, context));
        });
        self.orders.send(order).map_err(|_| stopped())?;
        // It wakes the engine, whose front looks at its orders in each turn.
        self.engine.tell(Message::Call(Box::new(|_| ()))).map_err(|_| stopped())?;
        answered.recv().map_err(|_| stopped())
    }
}

fn find(front: &mut NbdFront, name: &str) -> Result<usize, Error> {
    if let Some(number) = front.exports().find(name) {
        return Ok(number);
    }
    let rows = front.exports().rows();
    let names: Vec<&str> = rows.iter().filter(|r| !r.is_closing).map(|r| r.name.as_str()).collect();
    let hint = match fairhead_device::nearest_word(name, names.iter().copied()) {
        Some(near) => format!("; did you mean '{near}'?"),
        None if names.is_empty() => "; there is none".to_owned(),
        None => format!("; there are {}", names[..names.len().min(16)].join(", ")),
    };
    Err(Error::new(ErrorKind::Setting, format!("unknown export '{}'{hint}", name.escape_debug())))
}

fn add(
    front: &mut NbdFront,
    context: &mut Context,
    facts: Facts,
    served: Served,
    has_settings: bool,
    tell: impl FnOnce(&mut Context) -> Result<(), Error>,
) -> Result<(), Error> {
    let group = served.group.clone();
    if has_settings && context.groups.find(&group).is_some() {
        let why = "there is one; change it with set";
        return Err(Error::new(ErrorKind::Group, format!("group {group}: {why}")));
    }
    let name = facts.name.clone();
    front.exports().add(context, facts, served)?;
    let told = if has_settings { tell(context) } else { Ok(()) };
    if told.is_err()
        && let Some(number) = front.exports().find(&name)
    {
        front.exports().remove(number);
        front.exports().let_go(context);
    }
    told
}

/// Refuses an export that has the name of a device, or is in its group: a guest may be real-time there, as
/// long as the device is alone in the group.
fn apart_from(export: &Export, (name, group): &(String, String)) -> Result<(), Error> {
    let wrong = |why: &str| Err(Error::new(ErrorKind::Setting, format!("export {}: {why}", export.name)));
    if export.name == *name {
        return wrong("there is a vhost-user device of that name");
    }
    if overlap(&export.group, group) {
        return wrong(&format!("its group {} is that of the vhost-user device {name}", export.group));
    }
    Ok(())
}

fn served_as(row: &Row) -> String {
    match (row.is_closing, row.name.as_str()) {
        (false, name) => format!("it is exported as '{name}' already"),
        (true, "") => "the disk still has requests of an export of it that was removed".to_owned(),
        (true, name) => format!("clients of the removed export '{name}' still use it"),
    }
}

fn shown(row: &Row) -> Value {
    json!({
        "export": row.name,
        "file": row.file.to_string_lossy(),
        "size": row.size,
        "group": row.group,
        "readonly": row.read_only,
        "connections": row.connections,
        "peers": row.peers,
        "state": if row.is_closing { "closing" } else { "open" },
    })
}
