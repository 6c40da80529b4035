"""Schedulers in Python that tests use."""

from collections import deque

import fairhead


class Fifo:
    """Order of arrival, as noop. Its name begins with noop's, so that it costs the host's processor as much."""

    name = "noop-in-python"

    def __init__(self):
        self.queue = deque()

    def insert(self, request):
        self.queue.append(request)

    def dispatch(self, now):
        return self.queue.popleft() if self.queue else None


class Elevator:
    """The nearest request at or behind the head; it knows all that a scheduler can be told."""

    name = "elevator"
    about = "one way, by sector"
    tunables = {"idle_us": (0, 0, 10_000), "unused": 7}

    def __init__(self, idle_us, unused):
        assert unused == 7
        self.idle_ns = 1000 * idle_us
        self.head = 0
        self.waiting = []
        self.seen = {"merged": 0, "joined": 0, "complete": 0, "timer": 0, "exit": 0}
        Elevator.last = self

    def begin(self, disk):
        assert disk.rotational and disk.queue_depth >= 1 and disk.tags >= 16
        self.idle_until = None

    def insert(self, request):
        assert request.sectors == request.end - request.start
        request.order = len(self.waiting)
        self.waiting.append(request)

    def dispatch(self, now):
        assert self.waiting
        if self.idle_ns and self.idle_until is None:
            self.idle_until = now + self.idle_ns
        if self.idle_ns and now < self.idle_until:
            return fairhead.Wait(self.idle_until)
        ahead = [rq for rq in self.waiting if rq.start >= self.head]
        best = min(ahead or self.waiting, key=lambda rq: rq.start)
        self.waiting.remove(best)
        self.head = best.end
        return best

    def merged(self, request):
        assert request in self.waiting
        self.seen["merged"] += 1

    def joined(self, kept, gone):
        assert kept.since_ns <= gone.since_ns, "it waits for as long as the older of the two"
        self.waiting.remove(gone)
        self.seen["joined"] += 1

    def complete(self, request, now):
        assert request not in self.waiting and now >= request.since_ns
        self.seen["complete"] += 1
        self.idle_until = None

    def timer(self, now):
        self.seen["timer"] += 1

    def task_exit(self, task):
        self.seen["exit"] += 1
