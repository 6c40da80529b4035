//! The schedulers that a question can name: the built-in ones, and those from outside the lineage.
//!
//! [`choose_scheduler`] is where every name of a scheduler is looked up. The schedulers that are linked into
//! every program are in `fairhead_outside::ALL`; a program with more of them has a [`Catalogue`] of its own.

use fairhead_core::sched::any::shown;
use fairhead_core::sched::catalogue::{Catalogue, Named};
use fairhead_sim::job::nearest;

use crate::Error;

/// The built-in schedulers, and those of `fairhead_outside`.
///
/// # Panics
/// Never: a test checks the names.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue::new(&fairhead_outside::ALL).expect("a test checks the names")
}

/// Returns a scheduler of [`catalogue`] by its name; `none` and `noop` are the same.
///
/// # Errors
/// If there is none of that name.
pub fn choose_scheduler(name: &str) -> Result<Named, Error> {
    choose_among(&catalogue(), name)
}

/// Returns a scheduler of a catalogue by its name, as [`choose_scheduler`] does.
///
/// # Errors
/// If there is none of that name.
pub fn choose_among(catalogue: &Catalogue, name: &str) -> Result<Named, Error> {
    catalogue.find(name).ok_or_else(|| {
        Error::Misuse(match nearest(name, catalogue.names().map(shown)) {
            Some(word) => format!("unknown scheduler '{name}'; did you mean '{word}'?"),
            None => format!("unknown scheduler '{name}'; see fairhead list schedulers"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_different() {
        assert!(Catalogue::new(&fairhead_outside::ALL).is_ok());
        assert!(choose_scheduler("adios").is_ok());
    }
}
