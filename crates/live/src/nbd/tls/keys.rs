//! Private keys as certtool writes them.
//!
//! GnuTLS' certtool writes the number of an elliptic curve's key as a signed one: of 32 bytes, half of all
//! keys have a zero in front, and some have fewer bytes. The standard asks for the length of the curve's
//! field, and the library for TLS takes nothing else. So such a number is written anew here.
//!
//= RFC 5915 3

use crate::der::Values;
use rustls::pki_types::{PrivateKeyDer, PrivateSec1KeyDer};

const OCTETS: u8 = 4;
const BITS: u8 = 3;
/// The public key in a private one.
const PUBLIC: u8 = 0xa1;

/// Returns the key with a number of the length that it should have. One of another kind stays as it is.
pub(super) fn of_usual_length(key: PrivateKeyDer<'static>) -> PrivateKeyDer<'static> {
    let PrivateKeyDer::Sec1(old) = &key else { return key };
    rewritten(old.secret_sec1_der()).map_or(key, |new| PrivateKeyDer::Sec1(PrivateSec1KeyDer::from(new)))
}

fn rewritten(key: &[u8]) -> Option<Vec<u8>> {
    let all: Vec<_> = Values(key).next()?.inner().collect();
    let public = all.iter().find(|v| v.tag == PUBLIC)?.inner().next().filter(|v| v.tag == BITS)?;
    // A byte that says how many bits are unused, one for the kind of point, and two coordinates.
    let len = public.bytes.len().checked_sub(2)? / 2;
    let mut new = Vec::new();
    for value in &all {
        let bytes = if value.tag == OCTETS { with_length(value.bytes, len)? } else { value.bytes.to_vec() };
        put(&mut new, value.tag, &bytes)?;
    }
    let mut whole = Vec::new();
    put(&mut whole, 0x30, &new)?;
    Some(whole)
}

fn with_length(number: &[u8], len: usize) -> Option<Vec<u8>> {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(number.len());
    let digits = &number[start..];
    Some([&vec![0; len.checked_sub(digits.len())?][..], digits].concat())
}

fn put(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) -> Option<()> {
    out.push(tag);
    let len = u8::try_from(bytes.len()).ok()?;
    if len >= 0x80 {
        out.push(0x81);
    }
    out.push(len);
    out.extend(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of a curve whose field has two bytes.
    fn key(number: &[u8]) -> Vec<u8> {
        let (mut inner, mut whole) = (Vec::new(), Vec::new());
        put(&mut inner, 2, &[1]).unwrap();
        put(&mut inner, OCTETS, number).unwrap();
        put(&mut inner, PUBLIC, &[BITS, 6, 0, 4, 1, 2, 3, 4]).unwrap();
        put(&mut whole, 0x30, &inner).unwrap();
        whole
    }

    #[test]
    fn a_number_has_the_length_of_its_curve() {
        for (number, usual) in [(&[0, 0x80, 1][..], [0x80, 1]), (&[7], [0, 7]), (&[0x70, 1], [0x70, 1])] {
            assert_eq!(rewritten(&key(number)).unwrap(), key(&usual), "{number:?}");
        }
        assert_eq!(rewritten(&key(&[1, 2, 3])), None, "it is no key of this curve");
        assert_eq!(rewritten(&key(&[1, 2])[..9]), None, "it is cut off");
    }
}
