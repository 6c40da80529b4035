//! As much of JSON as the lab's own output has.
//!
//! What it does not do: numbers beyond floating point, and escapes of characters by their number.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Nothing,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut at = Reader { rest: text };
        let value = at.value()?;
        at.blank();
        if at.rest.is_empty() { Ok(value) } else { Err(format!("behind the value: {:.20}", at.rest)) }
    }

    /// A member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(all) = self else { return None };
        all.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// A list's values; none of anything else.
    pub(crate) fn list(&self) -> &[Self] {
        if let Self::List(all) = self { all } else { &[] }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        if let Self::Number(n) = self { Some(*n) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(t) = self { Some(t) } else { None }
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Whether this comes next; then it is passed.
    fn takes(&mut self, word: &str) -> bool {
        self.blank();
        let rest = self.rest.strip_prefix(word);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Result<Json, String> {
        for (word, value) in
            [("null", Json::Nothing), ("true", Json::Flag(true)), ("false", Json::Flag(false))]
        {
            if self.takes(word) {
                return Ok(value);
            }
        }
        if self.takes("[") {
            return self.all("]", Self::value).map(Json::List);
        }
        if self.takes("{") {
            let member = |r: &mut Self| {
                let name = if r.takes("\"") { r.string()? } else { return Err("no name".to_owned()) };
                if r.takes(":") { Ok((name, r.value()?)) } else { Err(format!("no : behind {name}")) }
            };
            return self.all("}", member).map(Json::Object);
        }
        if self.takes("\"") {
            return self.string().map(Json::Text);
        }
        let end = self.rest.find(|c: char| !"+-.eE0123456789".contains(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        number.parse().map(Json::Number).map_err(|_| format!("no value: {number}{:.20}", self.rest))
    }

    /// Values with commas between them, up to the end.
    fn all<T>(
        &mut self,
        end: &str,
        mut one: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut all = Vec::new();
        while !self.takes(end) {
            if !all.is_empty() && !self.takes(",") {
                return Err(format!("no , before {:.20}", self.rest));
            }
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// The rest of a text, its first quotation mark passed.
    fn string(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[i + 1..];
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\\' | '/'))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    other => return Err(format!("an escape that is not known: {other:?}")),
                },
                c => text.push(c),
            }
        }
        Err("a text without end".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_mistakes_named() {
        let v =
            Json::read("{ \"a\": [1, -2.5e3, null, true],\n \"b\": {\"c\": \"x \\\"y\\\"\"}, \"d\": [] }")
                .unwrap();
        let a: Vec<Option<f64>> = v.get("a").unwrap().list().iter().map(Json::number).collect();
        assert_eq!(a, [Some(1.0), Some(-2500.0), None, None]);
        assert_eq!(v.get("b").and_then(|b| b.get("c")).and_then(Json::text), Some("x \"y\""));
        assert!(v.get("d").unwrap().list().is_empty() && v.get("e").is_none());
        for wrong in ["{\"a\" 1}", "[1 2]", "\"x", "[1] 2", "hm"] {
            assert!(Json::read(wrong).is_err(), "{wrong}");
        }
    }
}
