"""Reads a timeline as Perfetto's own definitions have it, and says what is in it, as JSON.

Exits with 77 if they are not installed. An AssertionError is a timeline that is not as it should be: a field that Perfetto does not know,
a track that nobody described, a slice without its other end, slices of one track that overlap, a flow that leads nowhere.
"""

import collections
import json
import sys

try:
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
except ImportError as error:
    print(error)
    sys.exit(77)


def walk(message):
    assert not len(UnknownFieldSet(message)), f"fields that Perfetto does not know in {message}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if hasattr(value, "__len__") else [value]:
                walk(one)


trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
walk(trace)
assert trace.packet[0].sequence_flags == 1, "a reader joins at the first packet"

tracks, seen = {}, collections.defaultdict(list)
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and (not track.HasField("parent_uuid") or track.parent_uuid in tracks)
        tracks[track.uuid] = track
    else:
        assert packet.HasField("timestamp") and packet.track_event.track_uuid in tracks, packet
        seen[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))

begun, ended, told = set(), set(), []
for uuid, events in seen.items():
    # As Perfetto's trace processor does: by time, and what is at the same time as it is in the file.
    events.sort(key=lambda event: event[0])
    track, stack, slices, deepest = tracks[uuid], [], [], 0
    for at, event in events:
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            arguments = {a.name: a.uint_value if a.HasField("uint_value") else a.string_value
                         for a in event.debug_annotations}
            stack.append((at, event.name, arguments))
            deepest = max(deepest, len(stack))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            assert stack, f"an end without beginning on {track.name} at {at}"
            since, name, arguments = stack.pop()
            slices.append({"depth": len(stack), "name": name, "from": since, "to": at, **arguments})
        elif event.type == TrackEvent.TYPE_COUNTER:
            assert track.HasField("counter") and event.HasField("counter_value")
    assert not stack, f"{stack} on {track.name} never ends"
    whole = sorted((s["from"], s["to"]) for s in slices if s["depth"] == 0)
    assert all(a[1] <= b[0] for a, b in zip(whole, whole[1:])), f"slices on {track.name} overlap"
    process = tracks[track.parent_uuid] if track.HasField("parent_uuid") else track
    counters = [e.counter_value for _, e in events if e.type == TrackEvent.TYPE_COUNTER]
    told.append({
        "process": process.process.process_name,
        "track": track.name,
        "depth": deepest,
        "slices": slices,
        "instants": [e.name for _, e in events if e.type == TrackEvent.TYPE_INSTANT],
        "counter": [min(counters), max(counters), counters[-1]] if counters else None,
    })
assert begun <= ended, f"flows that lead nowhere: {sorted(begun - ended)[:5]}"
print(json.dumps(told))
