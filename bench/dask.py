#!/usr/bin/env python3
"""How much faster `fairhead.dask.sweep` is with two worker processes than with one.

    pip install fairhead distributed; python3 bench/dask.py [ROUNDS]

Each round runs one grid with one worker and with two, and the same grid without Dask, in one process and in
two at once: what this machine's processors can give at that time. Who is first changes from round to round.
"""

import statistics
import subprocess
import sys
import time

import fairhead.dask
from dask.distributed import Client, LocalCluster

SEEDS = 60
ALONE = """
import time, fairhead
began = time.time()
fairhead.sweep("random-readers", seeds={seeds}, threads=1)
print(time.time() - began)
"""


def with_dask(workers):
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        # So that the workers have loaded everything.
        fairhead.dask.sweep("random-readers", seeds=2 * workers, client=client)
        began = time.time()
        fairhead.dask.sweep("random-readers", seeds=SEEDS, client=client)
        return time.time() - began


def without(processes):
    command = [sys.executable, "-c", ALONE.format(seeds=SEEDS // processes)]
    begun = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return max(float(process.communicate()[0]) for process in begun)


def main():
    scaling = {with_dask: [], without: []}
    for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 4):
        order = (1, 2) if i % 2 == 0 else (2, 1)
        for way, found in scaling.items():
            took = {n: way(n) for n in order}
            found.append(took[1] / took[2])
            print(f"{way.__name__}: {took[1]:.1f} s with one, {took[2]:.1f} s with two", flush=True)
    for way, found in scaling.items():
        least, most = min(found), max(found)
        print(f"{way.__name__}: {statistics.median(found):.2f} times as fast ({least:.2f} to {most:.2f})")


if __name__ == "__main__":
    main()
