//! The names in a client's certificate: the common name of its subject, and its alternative names.
//!
//! An export that is for some clients names them by one of these. The authority decides which client may have
//! which name, so only certificates that were verified count.
//!
//= RFC 5280 4.1.2.6, 4.2.1.6

use crate::der::{Value, Values};
use std::fmt;
use std::sync::Arc;

/// The names of a client, from the certificate with which it proved who it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Certificate(Arc<[String]>);

/// The most bytes of a name that are kept.
const NAME_MAX: usize = 256;
const NAMES_MAX: usize = 16;

const COMMON_NAME: [u8; 3] = [0x55, 4, 3];
const ALTERNATIVE_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 6;
const OCTETS: u8 = 4;
/// UTF8String, PrintableString, T61String and IA5String: all are taken if they are UTF-8.
const TEXTS: [u8; 4] = [0x0c, 0x13, 0x14, 0x16];
/// The optional parts of a certificate: its version, and its extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Kinds of alternative names: mail address, DNS name, URI.
const KINDS: [u8; 3] = [0x81, 0x82, 0x86];

impl Certificate {
    /// Reads a certificate that was verified. The first name is that of the subject, if it has one.
    pub(crate) fn parse(certificate: &[u8]) -> Self {
        let mut names = Vec::new();
        if let Some(body) = Values(certificate).next().and_then(|all| all.inner().next()) {
            let mut parts = body.inner().filter(|part| part.tag != VERSION);
            // The serial number, the signature's algorithm, the issuer, the time.
            let subject = parts.nth(4);
            names.extend(subject.into_iter().flat_map(common_names));
            let extensions = parts.filter(|part| part.tag == EXTENSIONS).flat_map(Value::inner);
            names.extend(extensions.flat_map(Value::inner).flat_map(alternative_names));
        }
        names.retain(|name| !name.is_empty() && name.len() <= NAME_MAX);
        names.truncate(NAMES_MAX);
        Self(names.into())
    }

    /// Whether it has this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.0.iter().any(|own| own == name)
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            Some(name) => write!(f, "{}", name.escape_debug()),
            None => f.write_str("a certificate without a name"),
        }
    }
}

/// The common names of a subject, which is a sequence of sets of pairs of kind and value.
fn common_names(subject: Value<'_>) -> Vec<String> {
    let pairs = subject.inner().flat_map(Value::inner);
    pairs.filter_map(|pair| named(pair, &COMMON_NAME)).filter_map(text).collect()
}

/// The names in an extension, if it is that of alternative names.
fn alternative_names(extension: Value<'_>) -> Vec<String> {
    let Some(octets) = named(extension, &ALTERNATIVE_NAME).filter(|v| v.tag == OCTETS) else {
        return Vec::new();
    };
    let all = Values(octets.bytes).filter(|all| all.tag == SEQUENCE).flat_map(Value::inner);
    let texts = all.filter(|name| KINDS.contains(&name.tag));
    texts.filter_map(|name| String::from_utf8(name.bytes.to_vec()).ok()).collect()
}

/// The last value behind an identifier, if the identifier is this one: an extension may say in between that
/// it is critical.
fn named<'a>(pair: Value<'a>, id: &[u8]) -> Option<Value<'a>> {
    let mut parts = pair.inner();
    let first = parts.next()?;
    if first.tag != OBJECT_ID || first.bytes != id { None } else { parts.last() }
}

fn text(value: Value<'_>) -> Option<String> {
    TEXTS.contains(&value.tag).then(|| String::from_utf8(value.bytes.to_vec()).ok()).flatten()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn value(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let bytes = parts.concat();
        let len = bytes.len();
        let head =
            if len < 128 { vec![tag, len as u8] } else { vec![tag, 0x82, (len >> 8) as u8, len as u8] };
        [head, bytes].concat()
    }

    /// A certificate with these names, as far as names are concerned.
    pub(crate) fn certificate(common: &str, alternative: &[(u8, &str)]) -> Vec<u8> {
        let id = value(OBJECT_ID, &[&COMMON_NAME]);
        let pair = value(SEQUENCE, &[&id, &value(0x0c, &[common.as_bytes()])]);
        let country = value(SEQUENCE, &[&value(OBJECT_ID, &[&[0x55, 4, 6]]), &value(0x13, &[b"DE"])]);
        let subject = value(SEQUENCE, &[&value(0x31, &[&country]), &value(0x31, &[&pair])]);
        let names: Vec<Vec<u8>> = alternative.iter().map(|(tag, n)| value(*tag, &[n.as_bytes()])).collect();
        let octets = value(OCTETS, &[&value(SEQUENCE, &names.iter().map(Vec::as_slice).collect::<Vec<_>>())]);
        let critical = value(1, &[&[0xff]]);
        let extension = value(SEQUENCE, &[&value(OBJECT_ID, &[&ALTERNATIVE_NAME]), &critical, &octets]);
        let extensions = value(EXTENSIONS, &[&value(SEQUENCE, &[&extension])]);
        let (version, any) = (value(VERSION, &[&value(2, &[&[2]])]), value(SEQUENCE, &[]));
        let serial = value(2, &[&[1]]);
        let body = value(SEQUENCE, &[&version, &serial, &any, &any, &any, &subject, &any, &extensions]);
        value(SEQUENCE, &[&body, &any])
    }

    #[test]
    fn a_certificate_has_the_name_of_its_subject_and_others() {
        let all = certificate("alice", &[(0x82, "vm1.example"), (0x81, "a@b.c"), (0x87, "\x7f\0\0\x01")]);
        let names = Certificate::parse(&all);
        assert!(names.is("alice") && names.is("vm1.example") && names.is("a@b.c"));
        assert!(!names.is("DE") && !names.is("") && !names.is("bob") && !names.is("alice\0"));
        assert_eq!(names.to_string(), "alice");
        assert_eq!(Certificate::parse(&certificate("", &[])).to_string(), "a certificate without a name");
    }

    #[test]
    fn one_that_is_cut_off_anywhere_is_read_without_a_panic() {
        let all = certificate("alice", &[(0x82, &"a".repeat(200))]);
        for len in 0..all.len() {
            let _ = Certificate::parse(&all[..len]);
        }
        let long = certificate(&"a".repeat(300), &[]);
        assert!(!Certificate::parse(&long).is(&"a".repeat(300)));
    }
}
