"""Reads fio's json+ as typed fields: each key that fio 3.33 writes is there, and of fio's type."""
import json
import sys

LATENCY = {"min": int, "max": int, "mean": float, "stddev": float, "N": int}
WAY = {
    **dict.fromkeys(["io_bytes", "io_kbytes", "bw_bytes", "bw", "runtime", "total_ios", "short_ios"], int),
    **dict.fromkeys(["drop_ios", "bw_min", "bw_max", "bw_samples", "iops_min", "iops_max"], int),
    **dict.fromkeys(["iops", "bw_agg", "bw_mean", "bw_dev", "iops_mean", "iops_stddev"], float),
    "iops_samples": int,
    **dict.fromkeys(["slat_ns", "clat_ns", "lat_ns"], LATENCY),
}
JOB = {
    "jobname": str,
    **dict.fromkeys(["groupid", "error", "eta", "elapsed", "job_runtime", "ctx", "majf", "minf"], int),
    **dict.fromkeys(["latency_depth", "latency_target", "latency_window"], int),
    **dict.fromkeys(["usr_cpu", "sys_cpu", "latency_percentile"], float),
    **dict.fromkeys(["read", "write", "trim"], WAY),
    "sync": {"total_ios": int, "lat_ns": LATENCY},
    **dict.fromkeys(["job options", "iodepth_level", "iodepth_submit", "iodepth_complete"], dict),
    **dict.fromkeys(["latency_ns", "latency_us", "latency_ms"], dict),
}
DISK = {
    "name": str,
    **dict.fromkeys(["read_ios", "write_ios", "read_merges", "write_merges"], int),
    **dict.fromkeys(["read_ticks", "write_ticks", "in_queue"], int),
    "util": float,
}
RESULT = {
    "fio version": str, "timestamp": int, "timestamp_ms": int, "time": str, "global options": dict,
    "jobs": [JOB], "disk_util": [DISK],
}


def check(value, shape, path):
    if isinstance(shape, list):
        for i, one in enumerate(value):
            check(one, shape[0], f"{path}[{i}]")
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            assert key in value, f"{path} has no '{key}'"
            check(value[key], inner, f"{path}.{key}")
    else:
        assert type(value) is shape, f"{path} is {value!r}, no {shape.__name__}"


with open(sys.argv[1]) as file:
    result = json.load(file)
check(result, RESULT, "")
print(len(result["jobs"]), result["global options"].get("bs"))
