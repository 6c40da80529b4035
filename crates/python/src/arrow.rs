//! Columns for other libraries, where they are: the Arrow C stream interface in a Python capsule.
//!
//! ```text
//!   capsule "arrow_array_stream" ─► ArrowArrayStream ─► get_schema: a struct of the columns
//!                                                    └► get_next:   one batch, then the end
//!   batch ─► a struct array ─► a child for each column ─► buffers: pointers into the table's vectors
//! ```
//!
//! Each exported structure holds the table (`Arc<Columns>`) until its consumer calls its `release`, so the
//! vectors stay where they are. Nothing is copied, but for the structures themselves.
//!
//! It exports three types, `uint64` (`L`), `float64` (`g`) and `utf8` (`u`), and imports nothing.
//!
//! Source: the specifications "The Arrow C data interface", "The Arrow C stream interface" and "The Arrow
//! PyCapsule Interface" (arrow.apache.org/docs/format).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::columns::{Columns, Values};

#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

/// A value may be missing.
const NULLABLE: i64 = 2;

/// The name that the specification gives the capsule.
const STREAM: &CStr = c"arrow_array_stream";

/// What a schema owns: the table with the names, and the places of the children.
struct OfSchema {
    children: Vec<*mut ArrowSchema>,
    _columns: Arc<Columns>,
}

/// What an array owns: the table with the values, and the places of buffers and children.
struct OfArray {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    _columns: Arc<Columns>,
}

/// What a stream owns.
struct OfStream {
    columns: Arc<Columns>,
    is_at_end: bool,
}

fn schema(columns: &Arc<Columns>, column: Option<usize>) -> ArrowSchema {
    let (format, name, children): (&CStr, &CStr, Vec<_>) = match column {
        None => {
            let child = |i| Box::into_raw(Box::new(schema(columns, Some(i))));
            (c"+s", c"", (0..columns.all.len()).map(child).collect())
        }
        Some(i) => {
            let format = match columns.all[i].values {
                Values::Numbers { .. } => c"L",
                Values::Reals(_) => c"g",
                Values::Texts { .. } => c"u",
            };
            (format, &columns.all[i].name, Vec::new())
        }
    };
    let mut own = Box::new(OfSchema { children, _columns: Arc::clone(columns) });
    ArrowSchema {
        format: format.as_ptr(),
        name: name.as_ptr(),
        metadata: null(),
        flags: if column.is_some() { NULLABLE } else { 0 },
        n_children: own.children.len() as i64,
        children: own.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(own).cast(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the consumer releases what it got from here, once; a child that it has moved elsewhere is
    // marked as released, as the specification has it.
    unsafe {
        let own: Box<OfSchema> = Box::from_raw((*schema).private_data.cast());
        for &child in &own.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*schema).release = None;
    }
}

fn array(columns: &Arc<Columns>, column: Option<usize>) -> ArrowArray {
    let (buffers, children, missing): (Vec<*const c_void>, Vec<_>, usize) = match column {
        None => {
            let child = |i| Box::into_raw(Box::new(array(columns, Some(i))));
            (vec![null()], (0..columns.all.len()).map(child).collect(), 0)
        }
        Some(i) => match &columns.all[i].values {
            Values::Numbers { data, valid, missing } => {
                let bits = if valid.is_empty() { null() } else { valid.as_ptr().cast() };
                (vec![bits, data.as_ptr().cast()], Vec::new(), *missing)
            }
            Values::Reals(data) => (vec![null(), data.as_ptr().cast()], Vec::new(), 0),
            Values::Texts { bytes, ends } => {
                (vec![null(), ends.as_ptr().cast(), bytes.as_ptr().cast()], Vec::new(), 0)
            }
        },
    };
    let mut own = Box::new(OfArray { buffers, children, _columns: Arc::clone(columns) });
    ArrowArray {
        length: columns.rows as i64,
        null_count: missing as i64,
        offset: 0,
        n_buffers: own.buffers.len() as i64,
        n_children: own.children.len() as i64,
        buffers: own.buffers.as_mut_ptr(),
        children: own.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(own).cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`.
    unsafe {
        let own: Box<OfArray> = Box::from_raw((*array).private_data.cast());
        for &child in &own.children {
            if let Some(release) = (*child).release {
                release(child);
            }
            drop(Box::from_raw(child));
        }
        (*array).release = None;
    }
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: a consumer passes a stream from here that is not released, and a place to write to.
    unsafe {
        let own: &OfStream = &*(*stream).private_data.cast();
        out.write(schema(&own.columns, None));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: as in `get_schema`; a stream is used by one thread at a time. An array whose `release` is none
    // is the end.
    unsafe {
        let own: &mut OfStream = &mut *(*stream).private_data.cast();
        let mut next = array(&own.columns, None);
        if std::mem::replace(&mut own.is_at_end, true) {
            release_array(&raw mut next);
        }
        out.write(next);
    }
    0
}

unsafe extern "C" fn get_last_error(_stream: *mut ArrowArrayStream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: as in `release_schema`.
    unsafe {
        drop(Box::<OfStream>::from_raw((*stream).private_data.cast()));
        (*stream).release = None;
    }
}

/// Frees what is still in a capsule when Python deletes it.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once, with the capsule that `stream` made; a consumer that moved the stream
    // out has set its `release` to none.
    unsafe {
        let stream: *mut ArrowArrayStream = ffi::PyCapsule_GetPointer(capsule, STREAM.as_ptr()).cast();
        if let Some(release) = (*stream).release {
            release(stream);
        }
        drop(Box::from_raw(stream));
    }
}

/// A stream of the columns, for one consumer.
pub(crate) fn stream<'py>(py: Python<'py>, columns: &Arc<Columns>) -> PyResult<Bound<'py, PyCapsule>> {
    let own = Box::new(OfStream { columns: Arc::clone(columns), is_at_end: false });
    let stream = Box::new(ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(own).cast(),
    });
    let stream = std::ptr::NonNull::from(Box::leak(stream)).cast();
    // SAFETY: the pointer is of a box that `drop_capsule` frees; the destructor is for this name.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, stream, STREAM, Some(drop_capsule)) }
}
