//! What can be asked of a server's exports: parsing only, without I/O and without the server.
//!
//! ```text
//!   {"do":"exports"}
//!   {"do":"export add","name":"vm3","file":"/srv/vm3.img","weight":300,"allow_uid":[1000,1001]}
//!   {"do":"export remove","name":"vm3","force":true}
//!   {"do":"export resize","name":"vm3","size":"20g"}
//! ```
//!
//! As words: `export add vm3=vm3.img,weight=300`, as behind `--export` of `serve`.

use super::change::{Change, text};
use super::value::{bytes, clean, count, unknown};
use crate::nbd::{EXPORT_KEYS, Export};
use serde_json::{Map, Value, json};
use std::path::{Path, absolute};

/// A request about exports.
#[derive(Clone, PartialEq, Debug)]
pub enum ExportRequest {
    /// What there is.
    List,
    /// Another file is served; its group is made with these settings.
    Add(Box<Export>, Change),
    /// No new clients; with `force`, no old ones either.
    Remove {
        /// The export's name.
        name: String,
        /// Whether connections are ended.
        force: bool,
    },
    /// The image gets another size.
    Resize {
        /// The export's name.
        name: String,
        /// In bytes.
        size: u64,
    },
}

/// What to do.
pub(super) const EXPORT_WORDS: [&str; 4] = ["exports", "export add", "export remove", "export resize"];

const ACTIONS: [&str; 3] = ["add", "remove", "resize"];

impl ExportRequest {
    /// Takes a request with one of [`EXPORT_WORDS`] out of an object; what is left there is unknown.
    pub(super) fn take(word: &str, map: &mut Map<String, Value>) -> Result<Self, String> {
        if word == "exports" {
            return Ok(Self::List);
        }
        let mut needed = |key: &str| match map.remove(key) {
            Some(value) => text(key, value),
            None => Err(format!("{word}: which {key}?")),
        };
        let name = needed("name")?;
        if name.chars().any(char::is_control) {
            return Err(format!("export '{}': control characters are for terminals", clean(&name)));
        }
        match word {
            "export add" => {
                let file = needed("file")?;
                if !Path::new(&file).is_absolute() {
                    return Err(format!("file {}: not an absolute path, such as /srv/vm1.img", clean(&file)));
                }
                let mut export = Export::new(name, file);
                for key in EXPORT_KEYS {
                    let Some(value) = map.remove(key) else { continue };
                    settings(&mut export, key, value)?;
                }
                Ok(Self::Add(Box::new(export), Change::take(map)?))
            }
            "export remove" => match map.remove("force") {
                None => Ok(Self::Remove { name, force: false }),
                Some(Value::Bool(force)) => Ok(Self::Remove { name, force }),
                Some(_) => Err("force: true or false".to_owned()),
            },
            _ => {
                let size = map.remove("size").ok_or("export resize: which size?")?;
                let is_number = size.is_number();
                let size = text("size", size)?;
                let size = match is_number {
                    true => count("size", &size, "a number of bytes")?,
                    false => bytes("size", size.trim())?,
                };
                Ok(Self::Resize { name, size })
            }
        }
    }

    /// The object that words on a command line are, behind `export`. A path begins at the caller's folder.
    pub(super) fn of_words<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Value, String> {
        let action = words.next().ok_or("export: add, remove or resize?")?;
        if !ACTIONS.contains(&action) {
            return Err(format!("export: {}", unknown("action", action, ACTIONS)));
        }
        let word = format!("export {action}");
        let what = words.next().ok_or_else(|| match action {
            "add" => {
                "export add: write NAME=FILE[,KEY=VALUE…], such as vm1=/srv/vm1.img,weight=300".to_owned()
            }
            _ => format!("{word}: which name?"),
        })?;
        let mut request = json!({ "do": word });
        match action {
            "add" => added(&mut request, what)?,
            "remove" => {
                request["name"] = what.into();
                if let Some(force) = words.next() {
                    if !matches!(force, "force" | "--force") {
                        return Err(format!("{word}: '{}'; the only word is --force", clean(force)));
                    }
                    request["force"] = true.into();
                }
            }
            _ => {
                request["name"] = what.into();
                request["size"] = words.next().ok_or("export resize: which size?")?.into();
            }
        }
        match words.next() {
            None => Ok(request),
            Some(more) => Err(format!("{word} takes nothing more, such as '{}'", clean(more))),
        }
    }
}

/// `NAME=FILE,KEY=VALUE…` as members of an object.
fn added(request: &mut Value, text: &str) -> Result<(), String> {
    let mut parts = text.split(',');
    let first = parts.next().unwrap_or_default();
    let Some((name, file)) = first.split_once('=').filter(|(_, file)| !file.is_empty()) else {
        return Err(format!("export add {}: write NAME=FILE, such as vm1=/srv/vm1.img", clean(text)));
    };
    let file = absolute(file).map_err(|e| format!("{}: {e}", clean(file)))?;
    request["name"] = name.into();
    request["file"] = file.to_str().ok_or("a path is UTF-8 here")?.into();
    for part in parts {
        let (key, value) = part.split_once('=').map_or((part, Value::Bool(true)), |(k, v)| (k, v.into()));
        match &mut request[key] {
            one @ Value::Null => *one = value,
            Value::Array(all) if REPEATED.contains(&key) => all.push(value),
            first if REPEATED.contains(&key) => *first = json!([first.take(), value]),
            _ => return Err(format!("export add: {} is said twice", clean(key))),
        }
    }
    Ok(())
}

/// The keys that may have several values.
const REPEATED: [&str; 3] = ["allow_uid", "allow_gid", "allow_tls"];

fn settings(export: &mut Export, key: &str, value: Value) -> Result<(), String> {
    match value {
        Value::Bool(false) if key == "readonly" => Ok(()),
        Value::Bool(true) => export.set(key, None),
        Value::Array(all) if REPEATED.contains(&key) => {
            all.into_iter().try_for_each(|one| export.set(key, Some(&text(key, one)?)))
        }
        one => export.set(key, Some(&text(key, one)?)),
    }
}
