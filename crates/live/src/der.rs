//! Values of ASN.1 in their distinguished encoding (DER), one after the other: as much of it as is needed to
//! find names in a certificate that was verified already.
//!
//! What it does not do: tags above 30 and lengths above four bytes, which certificates do not have.
//!
//= ITU-T X.690 8.1

/// The values that lie in these bytes. It ends where they cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'a>(pub(super) &'a [u8]);

/// A value: its tag with class and form, and what is in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Value<'a> {
    pub(crate) tag: u8,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Value<'a> {
    /// The values in it, if it is of those that have some.
    pub(crate) const fn inner(self) -> Values<'a> {
        Values(if self.tag & 0x20 == 0 { &[] } else { self.bytes })
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (number, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (number.iter().fold(0, |all, byte| all << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (bytes, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(Value { tag, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_each_other_and_lie_in_each_other() {
        let bytes = [0x30, 5, 2, 1, 7, 5, 0, 4, 0x81, 2, 8, 9];
        let all: Vec<Value<'_>> = Values(&bytes).collect();
        assert_eq!(all.len(), 2);
        let inner: Vec<Value<'_>> = all[0].inner().collect();
        assert_eq!(inner, [Value { tag: 2, bytes: &[7] }, Value { tag: 5, bytes: &[] }]);
        assert_eq!((all[1].tag, all[1].bytes, all[1].inner().count()), (4, &[8, 9][..], 0));
    }

    #[test]
    fn what_is_cut_off_or_unusual_ends_it() {
        let wrong: [&[u8]; 6] =
            [&[], &[2], &[2, 2, 1], &[2, 0x80, 0, 0], &[2, 0x82, 1], &[2, 0x84, 0xff, 0xff, 0xff, 0xff, 0]];
        for bytes in wrong {
            assert_eq!(Values(bytes).next(), None, "{bytes:?}");
        }
    }
}
