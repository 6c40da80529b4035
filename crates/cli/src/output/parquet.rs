//! The rows of a sweep as a Parquet file, for pandas, Polars, DuckDB or R.
//!
//! The columns are those of the CSV: three of text, then unsigned numbers, where a figure that a row does not
//! have is null. There is one row group, without compression.
//!
//! Source: the Parquet format's logical types (`LogicalTypes.md`).

use std::fs::File;
use std::io;
use std::sync::Arc;

use fairhead_core::sched::any::shown;
use fairhead_sim::sweep::{COLUMNS, Figures, Row, Sweep};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

/// The columns of text that say which point a row is of.
const NAMES: [&str; 3] = ["disk", "scheduler", "set"];

/// A row of the file: the disk, the point's number, and the figures.
type Line<'a> = (&'a str, usize, &'a Figures);

/// Writes the rows that there are.
pub(crate) fn write(sweep: &Sweep, rows: &[Option<Row>], file: File) -> io::Result<()> {
    let write = || {
        let mut writer = SerializedFileWriter::new(file, schema()?, Arc::default())?;
        let mut group = writer.next_row_group()?;
        columns(&mut group, sweep, &lines(sweep, rows))?;
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
        let whole = (sweep.settings[sweep.point(i).setting].name.as_str(), i, row.figures());
        let disks = sweep.jobs.disks.iter().zip(row.disks());
        Some(std::iter::once(whole).chain(disks.map(move |(d, figures)| (d.label.as_str(), i, figures))))
    };
    rows.iter().enumerate().filter_map(of_point).flatten().collect()
}

fn schema() -> Result<TypePtr, ParquetError> {
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
    for name in COLUMNS {
        fields.push(number(name, Repetition::OPTIONAL)?);
    }
    let fields = fields.into_iter().map(Arc::new).collect();
    Type::group_type_builder("points").with_fields(fields).build().map(Arc::new)
}

fn columns(
    group: &mut SerializedRowGroupWriter<'_, File>,
    sweep: &Sweep,
    lines: &[Line<'_>],
) -> Result<(), ParquetError> {
    let tuned = |line: &Line<'_>| &sweep.tuned[sweep.point(line.1).tuned];
    let texts: [Vec<ByteArray>; NAMES.len()] = [
        lines.iter().map(|line| line.0.into()).collect(),
        lines.iter().map(|line| shown(tuned(line).scheduler).into()).collect(),
        lines.iter().map(|line| tuned(line).set.as_str().into()).collect(),
    ];
    for values in texts {
        let mut column = group.next_column()?.expect("the schema has it");
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    let seeds: Vec<i64> = lines.iter().map(|line| sweep.point(line.1).seed.cast_signed()).collect();
    let mut column = group.next_column()?.expect("the schema has it");
    column.typed::<Int64Type>().write_batch(&seeds, None, None)?;
    column.close()?;
    for i in 0..COLUMNS.len() {
        let values: Vec<i64> = lines.iter().filter_map(|line| line.2[i].map(u64::cast_signed)).collect();
        let there: Vec<i16> = lines.iter().map(|line| line.2[i].is_some().into()).collect();
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
        let rows = sweep.run(Part { number: 2, of: 2 }, 1, &(), &|_| {}).unwrap();
        let file = tempfile::tempfile().unwrap();
        write(&sweep, &rows, file.try_clone().unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let read: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 2);
        for (line, (i, scheduler)) in read.iter().zip([(1, "none"), (3, "cfq")]) {
            let row = rows[i].as_ref().unwrap();
            let text = |i| line.get_string(i).unwrap().as_str();
            assert_eq!([text(0), text(1), text(2)], ["nas2020", scheduler, "a=1"]);
            assert_eq!(line.get_ulong(3).unwrap(), 0, "the seed after the largest");
            for (i, figure) in row.figures().iter().enumerate() {
                assert_eq!(line.get_ulong(4 + i).ok(), *figure, "{}", COLUMNS[i]);
            }
        }
    }
}
