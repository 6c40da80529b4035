//! Columns, and how other programs take them without a copy.
//!
//! A [`Table`] owns its columns. pandas, polars, pyarrow and DuckDB read them where they are, through the
//! Arrow PyCapsule interface (`__arrow_c_stream__`): `arrow.rs`.

use std::ffi::CString;
use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::arrow;

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
    fn name(&self) -> &str {
        self.name.to_str().unwrap_or_default()
    }

    fn value<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
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

/// Columns of equal length: whole numbers with their unit in the name (`_ns`, `_bytes`), and texts.
///
/// pandas (`pandas.DataFrame.from_arrow(t)`), polars (`polars.DataFrame(t)`) and pyarrow (`pyarrow.table(t)`)
/// read numbers where they are, without a copy.
#[pyclass(frozen, module = "fairhead")]
pub(crate) struct Table(Arc<Columns>);

impl From<Columns> for Table {
    fn from(columns: Columns) -> Self {
        Self(Arc::new(columns))
    }
}

impl Table {
    fn column(&self, name: &str) -> PyResult<&Column> {
        self.0.all.iter().find(|c| c.name() == name).ok_or_else(|| {
            let names: Vec<&str> = self.0.all.iter().map(Column::name).collect();
            PyKeyError::new_err(format!("no column '{name}'; there are {}", names.join(", ")))
        })
    }

    fn list<'py>(&self, py: Python<'py>, column: &Column) -> PyResult<Bound<'py, PyList>> {
        let all = (0..self.0.rows).map(|row| column.value(py, row)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, all)
    }

    fn text(&self, py: Python<'_>, rows: usize) -> PyResult<Vec<Vec<String>>> {
        let mut lines = vec![self.column_names().into_iter().map(str::to_owned).collect()];
        for row in 0..self.0.rows.min(rows) {
            let cell = |c: &Column| Ok(c.value(py, row)?.str()?.to_string());
            lines.push(self.0.all.iter().map(cell).collect::<PyResult<Vec<_>>>()?);
        }
        Ok(lines)
    }
}

/// How many rows are shown.
const SHOWN: usize = 20;

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.0.all.iter().map(Column::name).collect()
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.rows
    }

    /// A column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        self.list(py, self.column(name)?)
    }

    /// All columns as lists, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        self.0.all.iter().try_for_each(|c| dict.set_item(c.name(), self.list(py, c)?))?;
        Ok(dict)
    }

    /// All rows, each as a dictionary.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |row| {
            let dict = PyDict::new(py);
            self.0.all.iter().try_for_each(|c| dict.set_item(c.name(), c.value(py, row)?))?;
            Ok(dict)
        };
        (0..self.0.rows).map(row).collect()
    }

    /// The columns for other libraries, without a copy: the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request for other types need not be followed.
        drop(requested_schema);
        arrow::stream(py, &self.0)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let lines = self.text(py, SHOWN)?;
        let widths: Vec<usize> = (0..self.0.all.len())
            .map(|i| lines.iter().map(|line| line[i].chars().count()).max().unwrap_or(0))
            .collect();
        let line = |line: &Vec<String>| {
            let cells: Vec<String> = line.iter().zip(&widths).map(|(c, &w)| format!("{c:>w$}")).collect();
            cells.join("  ")
        };
        let mut text = lines.iter().map(line).collect::<Vec<_>>().join("\n");
        if self.0.rows > SHOWN {
            text += &format!("\n… {} rows", self.0.rows);
        }
        Ok(text)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let lines = self.text(py, SHOWN)?;
        let line = |(i, line): (usize, &Vec<String>)| {
            let tag = if i == 0 { "th" } else { "td" };
            let cells: String = line.iter().map(|c| format!("<{tag}>{}</{tag}>", escaped(c))).collect();
            format!("<tr>{cells}</tr>")
        };
        let body: String = lines.iter().enumerate().map(line).collect();
        let more = if self.0.rows > SHOWN { format!("<p>{} rows</p>", self.0.rows) } else { String::new() };
        Ok(format!("<table>{body}</table>{more}"))
    }
}

/// Text in a page.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
