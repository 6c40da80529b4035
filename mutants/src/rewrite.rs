//! Many changes in one text, each behind a condition.
//!
//! ```text
//! if a + 1 < b { … }    with changes 3 (`<` → `>`) and 4 (without + 1) becomes
//!
//! if (if !on(3) { (if !on(4) { a + 1 } else { a }) < b } else { (a + 1) > (b) }) { … }
//! ```
//!
//! One change is active in a process, so the changed branch has the original text in it, and changes inside
//! of each other need no second build.

use crate::find::{Change, Edit};
use std::ops::Range;

/// A text with changes, and where each of them is.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) text: String,
    /// Number of the change; what was written for it, in bytes of the new text.
    pub(crate) written: Vec<(u32, Range<usize>)>,
    /// Numbers of the changes of one place; the whole of it, with the original.
    pub(crate) places: Vec<(Vec<u32>, Range<usize>)>,
}

impl Rewritten {
    /// The changes that are to blame for an error between two bytes: those whose text it is in, else those of
    /// the smallest place around it.
    pub(crate) fn to_blame(&self, error: &Range<usize>) -> Vec<u32> {
        let meets = |text: &Range<usize>| text.start < error.end && error.start < text.end;
        let around = |text: &Range<usize>| text.start <= error.start && error.end <= text.end;
        let written = self.written.iter().filter(|(_, text)| around(text));
        // Changed branches do not lie in each other, but the whole of a place may lie in one.
        let inside: Vec<u32> = written.map(|(n, _)| *n).collect();
        if !inside.is_empty() {
            return inside;
        }
        let place = self.places.iter().filter(|(_, text)| around(text)).min_by_key(|(_, text)| text.len());
        let some: Vec<u32> = self.written.iter().filter(|(_, text)| meets(text)).map(|(n, _)| *n).collect();
        place.map_or(some, |(all, _)| all.clone())
    }
}

/// Writes the changes, which have numbers and are of one file, into its text.
pub(crate) fn rewrite(text: &str, changes: &[(u32, &Change)]) -> Rewritten {
    let mut places: Vec<Place<'_>> = Vec::new();
    for (number, change) in changes {
        let span = change.edit.span();
        match places.iter_mut().find(|place| place.span == span) {
            Some(place) => place.changes.push((*number, &change.edit)),
            None => places.push(Place { span, changes: vec![(*number, &change.edit)] }),
        }
    }
    // Of two that begin together, one without a length comes first, then the outer one.
    places.sort_by_key(|place| (place.span.start, !place.span.is_empty(), usize::MAX - place.span.end));
    let rewritten = Rewritten { text: String::new(), written: Vec::new(), places: Vec::new() };
    let mut writer = Writer { original: text, out: rewritten };
    writer.copy(0..text.len(), &places);
    writer.out
}

impl Edit {
    fn span(&self) -> Range<usize> {
        match self {
            Self::Instead(span, _) => span.clone(),
            Self::Return(at, _) | Self::NoArm(at) => *at..*at,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Instead(_, text) | Self::Return(_, text) => text,
            Self::NoArm(_) => "",
        }
    }
}

/// A place with its changes.
struct Place<'a> {
    span: Range<usize>,
    changes: Vec<(u32, &'a Edit)>,
}

struct Writer<'a> {
    original: &'a str,
    out: Rewritten,
}

impl Writer<'_> {
    /// Copies a part of the original with the places in it.
    fn copy(&mut self, part: Range<usize>, mut places: &[Place<'_>]) {
        let mut at = part.start;
        while let [place, rest @ ..] = places {
            self.out.text += &self.original[at..place.span.start];
            let inside = rest.iter().take_while(|inner| inner.span.start < place.span.end).count();
            self.place(place, &rest[..inside]);
            at = place.span.end;
            places = &rest[inside..];
        }
        self.out.text += &self.original[at..part.end];
    }

    fn place(&mut self, place: &Place<'_>, inside: &[Place<'_>]) {
        let start = self.out.text.len();
        let (last, others) = place.changes.split_last().expect("a place has a change");
        if !place.span.is_empty() {
            // The original comes first: the compiler then compares the type of each other branch with its.
            let none: Vec<String> = place.changes.iter().map(|(n, _)| format!("!{}", is_on(*n))).collect();
            self.out.text += &format!("(if {} {{ ", none.join(" && "));
            self.copy(place.span.clone(), inside);
            self.out.text += " }";
            for (number, edit) in others {
                self.write(*number, &format!(" else if {} {{ {} }}", is_on(*number), edit.text()));
            }
            self.write(last.0, &format!(" else {{ {} }}", last.1.text()));
            self.out.text.push(')');
        } else {
            for (number, edit) in &place.changes {
                let text = match edit {
                    Edit::NoArm(_) => format!(" if !{}", is_on(*number)),
                    _ => format!(" if {} {{ return {}; }}", is_on(*number), edit.text()),
                };
                self.write(*number, &text);
            }
        }
        let numbers = place.changes.iter().map(|(number, _)| *number).collect();
        self.out.places.push((numbers, start..self.out.text.len()));
    }

    fn write(&mut self, number: u32, text: &str) {
        let start = self.out.text.len();
        self.out.text += text;
        self.out.written.push((number, start..self.out.text.len()));
    }
}

fn is_on(number: u32) -> String {
    format!("::mutant_runtime::on({number})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::changes;

    fn rewritten(text: &str, wanted: &[&str]) -> Rewritten {
        let found = changes("a.rs", text).unwrap().changes;
        let named = |what: &&str| found.iter().find(|change| change.name.contains(what)).unwrap();
        let numbered: Vec<_> = (3..).zip(wanted.iter().map(named)).collect();
        rewrite(text, &numbered)
    }

    #[test]
    fn changes_inside_of_each_other_are_written_once_each() {
        let out = rewritten("fn f(a: u8) -> bool { a + 1 < b }", &["< → >", "without + 1"]);
        let inner = "(if !::mutant_runtime::on(4) { a + 1 } else { a })";
        let outer = format!("(if !::mutant_runtime::on(3) {{ {inner} < b }} else {{ (a + 1) > (b) }})");
        assert_eq!(out.text, format!("fn f(a: u8) -> bool {{ {outer} }}"));
        syn::parse_file(&out.text).unwrap();
    }

    #[test]
    fn a_body_that_begins_with_a_changed_expression_returns_before_it() {
        let out = rewritten("fn f()->u8{a+b}", &["+ → -", "return 0"]);
        assert!(
            out.text.starts_with("fn f()->u8{ if ::mutant_runtime::on(4) { return 0; }(if !"),
            "{}",
            out.text
        );
        syn::parse_file(&out.text).unwrap();
    }

    #[test]
    fn changes_of_one_place_are_a_chain() {
        let out = rewritten("fn f() { a += 1; }", &["+= → -=", "+= → *="]);
        assert_eq!(
            out.text,
            "fn f() { (if !::mutant_runtime::on(3) && !::mutant_runtime::on(4) { a += 1 } \
             else if ::mutant_runtime::on(3) { (a) -= (1) } else { (a) *= (1) }); }"
        );
        syn::parse_file(&out.text).unwrap();
    }

    #[test]
    fn a_body_returns_at_once_and_an_arm_has_a_guard() {
        let text = "fn f() -> bool { match x { A | B => true, C if y => z, _ => false } }";
        let out = rewritten(text, &["return true", "without the arm A | B", "guard → false"]);
        assert_eq!(
            out.text,
            "fn f() -> bool { if ::mutant_runtime::on(3) { return true; } match x { \
             A | B if !::mutant_runtime::on(4) => true, \
             C if (if !::mutant_runtime::on(5) { y } else { false }) => z, _ => false } }"
        );
        syn::parse_file(&out.text).unwrap();
    }

    #[test]
    fn an_error_is_the_fault_of_the_text_that_it_is_in() {
        let out = rewritten("fn f() -> u8 { a * b }", &["* → +", "* → /", "return 0"]);
        let at = |part: &str| out.text.find(part).map(|start| start..start + part.len()).unwrap();
        assert_eq!(out.to_blame(&at("(a) + (b)")), [3]);
        assert_eq!(out.to_blame(&at("(a) / (b)")), [4]);
        assert_eq!(out.to_blame(&at("return 0")), [5]);
        // The original itself is as it was, so something around it is wrong: both changes of the place are.
        assert_eq!(out.to_blame(&at("a * b")), [3, 4]);
        assert_eq!(out.to_blame(&at("fn f")), [0; 0]);
    }
}
