//! The schedulers that can be named on the command line: the built-in ones, and those from outside the
//! lineage.
//!
//! [`choose_scheduler`] is where every name of a scheduler is looked up. The schedulers
//! that are linked into the program are in `fairhead_outside::ALL`.

use fairhead_core::sched::any::shown;
use fairhead_core::sched::catalogue::{Catalogue, Named};
use fairhead_sim::job::nearest;

use crate::error::CliError;

/// All schedulers of the program.
pub(crate) fn catalogue() -> Catalogue {
    Catalogue::new(&fairhead_outside::ALL).expect("a test checks the names")
}

/// Returns a scheduler by its name; `none` and `noop` are the same.
pub(crate) fn choose_scheduler(name: &str) -> Result<Named, CliError> {
    catalogue().find(name).ok_or_else(|| {
        CliError::Misuse(match nearest(name, catalogue().names().map(shown)) {
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
