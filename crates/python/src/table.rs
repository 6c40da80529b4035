//! Columns, and how other programs take them without a copy.
//!
//! A [`Table`] owns its columns. pandas, polars, pyarrow and DuckDB read them where they are, through the
//! Arrow PyCapsule interface (`__arrow_c_stream__`): `arrow.rs`.

use std::sync::Arc;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::arrow;
use crate::columns::{Column, Columns};

/// Columns of equal length: whole numbers with their unit in the name (`_ns`, `_bytes`), and texts.
///
/// pandas (`pandas.DataFrame.from_arrow(t)`), polars (`polars.DataFrame(t)`) and pyarrow (`pyarrow.table(t)`)
/// read numbers where they are, without a copy.
#[pyclass(frozen, subclass, module = "fairhead")]
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
