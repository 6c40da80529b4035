//! The settings of an export as people write them: `allow_uid=1000` behind `--export` and in `ctl export
//! add`.

use super::export::Export;

/// The settings of an export other than those of its group.
pub const EXPORT_KEYS: [&str; 7] =
    ["group", "readonly", "description", "allow_uid", "allow_gid", "allow_tls", "connections"];

impl Export {
    /// Sets what a word says, as on a command line: `allow_uid=1000`, or `readonly`.
    ///
    /// # Errors
    /// What is wrong with the value, and what would be right, in one line. The key must be one of
    /// [`EXPORT_KEYS`].
    pub fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        if key == "readonly" {
            self.read_only = true;
            return value.map_or(Ok(()), |v| Err(format!("readonly={v}: it has no value")));
        }
        let value = value.filter(|v| !v.is_empty()).ok_or_else(|| format!("{key} has no value"))?;
        match key {
            "group" => value.clone_into(&mut self.group),
            "description" => value.clone_into(&mut self.description),
            "allow_uid" => self.allow_uids.push(number(key, value)?),
            "allow_gid" => self.allow_gids.push(number(key, value)?),
            "allow_tls" => self.allow_names.push(value.to_owned()),
            "connections" => match number(key, value)? {
                0 => return Err("connections=0: at least 1".to_owned()),
                n => self.connections_max = Some(n as usize),
            },
            _ => return Err(format!("unknown key '{key}'; there are {}", EXPORT_KEYS.join(", "))),
        }
        Ok(())
    }
}

fn number(key: &str, value: &str) -> Result<u32, String> {
    value.parse().map_err(|_| format!("{key}={value}: not a number, such as {key}=1000"))
}
