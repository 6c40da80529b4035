//! What goes wrong, as Python sees it: `fairhead.Error` with one line, or the exception of a scheduler.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use fairhead_sim::SimError;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    fairhead,
    Error,
    PyValueError,
    "What is wrong with a question, and what would be right. One line."
);

/// An error of the lab.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn of_lab(e: fairhead_lab::Error) -> PyErr {
    Error::new_err(e.to_string())
}

/// An error of a run.
#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn of_run(e: SimError) -> PyErr {
    Error::new_err(e.to_string())
}

/// An exception on its way through a run, which knows no exceptions.
struct Raised(PyErr);

/// Ends the run of this thread with an exception. [`caught`] returns it.
pub(crate) fn raise(e: PyErr) -> ! {
    resume_unwind(Box::new(Raised(e)))
}

/// Does something that may [`raise`]. What it has changed by then must not be looked at.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(of_panic)
}

fn of_panic(payload: Box<dyn Any + Send>) -> PyErr {
    let payload = match payload.downcast::<Raised>() {
        Ok(raised) => return raised.0,
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    PyRuntimeError::new_err(format!("a fault of Fairhead, or of a scheduler that was given to it: {text}"))
}
