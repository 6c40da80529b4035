//! Named columns of numbers and texts, in the layout that Arrow has.

use std::ffi::CString;

use pyo3::prelude::*;

/// The values of a column.
pub(crate) enum Values {
    /// Whole numbers. `valid` has a bit for each, the lowest first; empty if none is missing.
    Numbers { data: Vec<u64>, valid: Vec<u8>, missing: usize },
    /// Numbers with a fraction; NaN where one is missing.
    Reals(Vec<f64>),
    /// Texts, one behind the other, and where each begins; the last place is the end.
    Texts { bytes: Vec<u8>, ends: Vec<i32> },
}

/// A named column.
pub(crate) struct Column {
    pub(crate) name: CString,
    pub(crate) values: Values,
}

/// What a table owns.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) rows: usize,
    pub(crate) all: Vec<Column>,
}

impl Columns {
    /// Columns of this many rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows, all: Vec::new() }
    }

    fn push(&mut self, name: &str, values: Values) {
        let name = CString::new(name).expect("names of columns have no zeros");
        self.all.push(Column { name, values });
    }

    /// Adds a column of numbers, of which some may be missing.
    pub(crate) fn numbers(&mut self, name: &str, numbers: impl Iterator<Item = Option<u64>>) {
        let (mut data, mut valid, mut missing) = (Vec::with_capacity(self.rows), Vec::new(), 0);
        for (i, number) in numbers.enumerate() {
            if i % 8 == 0 {
                valid.push(0);
            }
            match number {
                Some(_) => valid[i / 8] |= 1 << (i % 8),
                None => missing += 1,
            }
            data.push(number.unwrap_or(0));
        }
        assert_eq!(data.len(), self.rows, "{name}");
        if missing == 0 {
            valid.clear();
        }
        self.push(name, Values::Numbers { data, valid, missing });
    }

    /// Adds a column of numbers, all of which are there.
    pub(crate) fn counts(&mut self, name: &str, numbers: impl Iterator<Item = u64>) {
        self.numbers(name, numbers.map(Some));
    }

    /// Adds a column of numbers with a fraction.
    pub(crate) fn reals(&mut self, name: &str, numbers: impl Iterator<Item = f64>) {
        let data: Vec<f64> = numbers.collect();
        assert_eq!(data.len(), self.rows, "{name}");
        self.push(name, Values::Reals(data));
    }

    /// Adds a column of texts.
    ///
    /// # Panics
    /// If they have 2 GiB or more.
    pub(crate) fn texts<T: AsRef<str>>(&mut self, name: &str, texts: impl Iterator<Item = T>) {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for text in texts {
            bytes.extend_from_slice(text.as_ref().as_bytes());
            ends.push(i32::try_from(bytes.len()).expect("a column has less than 2 GiB of text"));
        }
        assert_eq!(ends.len(), self.rows + 1, "{name}");
        self.push(name, Values::Texts { bytes, ends });
    }
}

impl Column {
    pub(crate) fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    pub(crate) fn value<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        match &self.values {
            Values::Numbers { data, valid, .. } => {
                let is_there = valid.get(row / 8).is_none_or(|bits| bits >> (row % 8) & 1 == 1);
                Ok(is_there.then_some(data[row]).into_pyobject(py)?.into_any())
            }
            Values::Reals(data) => Ok(data[row].into_pyobject(py)?.into_any()),
            Values::Texts { bytes, ends } => {
                let place = |i: usize| usize::try_from(ends[i]).unwrap_or(0);
                let text = std::str::from_utf8(&bytes[place(row)..place(row + 1)]).unwrap_or_default();
                Ok(text.into_pyobject(py)?.into_any())
            }
        }
    }
}
