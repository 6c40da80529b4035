//! The rows of a sweep as a Parquet file, for pandas, Polars, DuckDB or R.
//!
//! The columns are those of the CSV: three of text, then numbers, satisfactions with a fraction and all
//! others unsigned, where a figure that a row does not have is null. There is one row group, without
//! compression.
//!
//! Source: the Parquet format's logical types (`LogicalTypes.md`).

use std::fs::File;
use std::io;
use std::sync::Arc;

use fairhead_core::sched::any::shown;
use fairhead_lab::output::columns::{self, Column, Value};
use fairhead_sim::sweep::{COLUMNS, Figures, Row, Sweep, Swept};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

/// The columns of text that say which point a row is of.
const NAMES: [&str; 3] = ["disk", "scheduler", "set"];

/// A row of the file.
struct Line<'a> {
    /// The name of the disk.
    disk: &'a str,
    /// The number of the point.
    point: usize,
    /// The point's row; none for one of several disks.
    row: Option<&'a Row>,
    figures: &'a Figures,
}

/// Writes the rows that there are.
pub(crate) fn write(sweep: &Sweep, swept: &Swept, file: File) -> io::Result<()> {
    let jobs = swept.bases.first().map_or_else(Vec::new, |base| columns::of(&base.load));
    let write = || {
        let mut writer = SerializedFileWriter::new(file, schema(&jobs)?, Arc::default())?;
        let mut group = writer.next_row_group()?;
        let lines = lines(sweep, &swept.rows);
        write_points(&mut group, sweep, &lines)?;
        write_jobs(&mut group, sweep, swept, (&jobs, &lines))?;
        write_figures(&mut group, &lines)?;
        group.close()?;
        writer.close()
    };
    write().map(drop).map_err(|e: ParquetError| match e {
        ParquetError::External(inner) => io::Error::other(inner),
        e => io::Error::other(e),
    })
}

/// One for each point that there is, and one more for each of its disks.
fn lines<'a>(sweep: &'a Sweep, rows: &'a [Option<Row>]) -> Vec<Line<'a>> {
    let of_point = |(i, row): (usize, &'a Option<Row>)| {
        let row = row.as_ref()?;
        let disk = sweep.settings[sweep.point(i).setting].name.as_str();
        let whole = Line { disk, point: i, row: Some(row), figures: row.figures() };
        let disks = sweep.jobs.disks.iter().zip(row.disks());
        let of_disk = move |(d, figures): (&'a fairhead_sim::job::Disk, _)| Line {
            disk: d.label.as_str(),
            point: i,
            row: None,
            figures,
        };
        Some(std::iter::once(whole).chain(disks.map(of_disk)))
    };
    rows.iter().enumerate().filter_map(of_point).flatten().collect()
}

fn schema(jobs: &[Column]) -> Result<TypePtr, ParquetError> {
    let text = |name: &&str| {
        let text = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
        text.with_repetition(Repetition::REQUIRED).with_logical_type(Some(LogicalType::String)).build()
    };
    let number = |name: &str, repetition| {
        let unsigned = LogicalType::integer(64, false);
        let number = Type::primitive_type_builder(name, Physical::INT64);
        number.with_repetition(repetition).with_logical_type(Some(unsigned)).build()
    };
    let mut fields: Vec<_> = NAMES.iter().map(text).collect::<Result<_, _>>()?;
    fields.push(number("seed", Repetition::REQUIRED)?);
    for column in jobs {
        fields.push(if column.is_real() {
            let real = Type::primitive_type_builder(&column.name, Physical::DOUBLE);
            real.with_repetition(Repetition::OPTIONAL).build()?
        } else {
            number(&column.name, Repetition::OPTIONAL)?
        });
    }
    for name in COLUMNS {
        fields.push(number(name, Repetition::OPTIONAL)?);
    }
    let fields = fields.into_iter().map(Arc::new).collect();
    Type::group_type_builder("points").with_fields(fields).build().map(Arc::new)
}

/// Which points the rows are of.
fn write_points(
    group: &mut SerializedRowGroupWriter<'_, File>,
    sweep: &Sweep,
    lines: &[Line<'_>],
) -> Result<(), ParquetError> {
    let tuned = |line: &Line<'_>| &sweep.tuned[sweep.point(line.point).tuned];
    let texts: [Vec<ByteArray>; NAMES.len()] = [
        lines.iter().map(|line| line.disk.into()).collect(),
        lines.iter().map(|line| shown(tuned(line).scheduler).into()).collect(),
        lines.iter().map(|line| tuned(line).set.as_str().into()).collect(),
    ];
    for values in texts {
        let mut column = group.next_column()?.expect("the schema has it");
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    let seeds: Vec<i64> = lines.iter().map(|line| sweep.point(line.point).seed.cast_signed()).collect();
    let mut column = group.next_column()?.expect("the schema has it");
    column.typed::<Int64Type>().write_batch(&seeds, None, None)?;
    column.close().map(drop)
}

/// What the jobs got.
fn write_jobs(
    group: &mut SerializedRowGroupWriter<'_, File>,
    sweep: &Sweep,
    swept: &Swept,
    (jobs, lines): (&[Column], &[Line<'_>]),
) -> Result<(), ParquetError> {
    let there: Vec<i16> = lines.iter().map(|line| line.row.is_some().into()).collect();
    for job in jobs {
        let (mut reals, mut wholes) = (Vec::new(), Vec::new());
        for (line, row) in lines.iter().filter_map(|line| Some((line, line.row?))) {
            match job.value(&swept.bases[sweep.point(line.point).setting], row) {
                Value::Real(value) => reals.push(value),
                Value::Whole(value) => wholes.push(value.cast_signed()),
            }
        }
        let mut column = group.next_column()?.expect("the schema has it");
        if job.is_real() {
            column.typed::<DoubleType>().write_batch(&reals, Some(&there), None)?;
        } else {
            column.typed::<Int64Type>().write_batch(&wholes, Some(&there), None)?;
        }
        column.close()?;
    }
    Ok(())
}

/// The figures of disk and calls.
fn write_figures(
    group: &mut SerializedRowGroupWriter<'_, File>,
    lines: &[Line<'_>],
) -> Result<(), ParquetError> {
    for i in 0..COLUMNS.len() {
        let values: Vec<i64> =
            lines.iter().filter_map(|line| line.figures[i].map(u64::cast_signed)).collect();
        let there: Vec<i16> = lines.iter().map(|line| line.figures[i].is_some().into()).collect();
        let mut column = group.next_column()?.expect("the schema has it");
        column.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_core::sched::any::preset;
    use fairhead_device::DeviceParams;
    use fairhead_sim::sweep::{Part, Setting, Tuned};
    use fairhead_sim::{Host, job};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn a_reader_finds_every_figure_and_what_is_missing() {
        let disk = DeviceParams::preset("nas2020").unwrap();
        let setting = Setting { name: "nas2020".to_owned(), disk, host: Host::named("2020").unwrap() };
        let tuned = |scheduler| Tuned {
            scheduler,
            set: "a=1".to_owned(),
            config: (preset(scheduler).unwrap().config)(),
        };
        let sweep = Sweep {
            jobs: job::parse("[a]\nrw=randread\nsize=16k\n", "a.fio").unwrap(),
            settings: vec![setting],
            tuned: vec![tuned("noop"), tuned("cfq")],
            seed: u64::MAX,
            seeds: 2,
        };
        let swept = sweep.run(Part { number: 2, of: 2 }, 1, &(), &|_| {}).unwrap();
        let file = tempfile::tempfile().unwrap();
        write(&sweep, &swept, file.try_clone().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let read: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 2);
        for (line, (i, scheduler)) in read.iter().zip([(1, "none"), (3, "cfq")]) {
            let row = swept.rows[i].as_ref().unwrap();
            let text = |i| line.get_string(i).unwrap().as_str();
            assert_eq!([text(0), text(1), text(2)], ["nas2020", scheduler, "a=1"]);
            assert_eq!(line.get_ulong(3).unwrap(), 0, "the seed after the largest");
            let satisfaction = row.satisfaction(&swept.bases[0]);
            assert!((line.get_double(4).unwrap() - satisfaction).abs() < 1e-5, "{satisfaction}");
            assert_eq!(line.get_ulong(6).unwrap(), row.run().jobs[0].amount.round() as u64, "bytes a second");
            for (i, figure) in row.figures().iter().enumerate() {
                assert_eq!(line.get_ulong(8 + i).ok(), *figure, "{}", COLUMNS[i]);
            }
        }
    }
}
