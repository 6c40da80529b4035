"""What libnbd makes of an export: every command with every flag, right and wrong, against a model of the disk.

Run by `libnbd.rs` while `fairhead serve` has the exports `vm` (64 MiB), `cd` (the same, read-only) and `large` (8 GiB, all of it holes). Ends with a line
that says so if all is as it should be.
"""

import errno
import os
import random
import nbd

SOCKET = os.environ["socket"]
SIZE = 64 << 20
LONGEST = 32 << 20


def connect(export="vm", flags=None, structured=True, meta=True):
    h = nbd.NBD()
    # Mistakes go to the server instead of being found here.
    h.set_strict_mode(0)
    h.set_export_name(export)
    if flags is not None:
        h.set_handshake_flags(flags)
    h.set_request_structured_replies(structured)
    if meta:
        h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    h.connect_unix(SOCKET)
    return h


def refused(code, call, *args, **named):
    try:
        call(*args, **named)
    except nbd.Error as e:
        assert e.errnum == code, f"{call.__name__}{args}: {e.errno}, not {errno.errorcode[code]}"
    else:
        raise AssertionError(f"{call.__name__}{args} is allowed")


def facts():
    h = connect()
    assert h.get_size() == SIZE and h.get_protocol() == "newstyle-fixed"
    assert h.get_structured_replies_negotiated() and h.can_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
    least, preferred, most = (h.get_block_size(kind) for kind in (nbd.SIZE_MINIMUM, nbd.SIZE_PREFERRED, nbd.SIZE_MAXIMUM))
    assert (least, preferred, most) == (1, 4096, LONGEST), (least, preferred, most)
    for can in (h.can_flush, h.can_fua, h.can_zero, h.can_trim, h.can_df, h.can_multi_conn, h.can_fast_zero):
        assert can(), can.__name__
    # Direct I/O has no cache to read into.
    assert not h.can_cache()
    assert not h.is_read_only()
    cd = connect("cd")
    assert cd.is_read_only() and not cd.can_trim() and not cd.can_zero() and cd.can_multi_conn()
    refused(errno.EPERM, cd.pwrite, bytes(4096), 0)
    refused(errno.EPERM, cd.trim, 4096, 0)
    refused(errno.EPERM, cd.zero, 4096, 0)
    cd.flush()
    assert len(cd.pread(4096, 0)) == 4096


def haggling():
    h = nbd.NBD()
    h.set_opt_mode(True)
    h.connect_unix(SOCKET)
    seen = []
    h.opt_list(lambda name, description: seen.append((name, description)))
    assert seen == [("vm", "a disk"), ("cd", ""), ("large", "")], seen
    h.set_export_name("nowhere")
    refused(errno.ENOENT, h.opt_info)
    h.set_export_name("large")
    h.set_full_info(True)
    h.opt_info()
    assert h.get_size() == 8 << 30 and h.get_canonical_export_name() == "large"
    contexts = []
    h.add_meta_context("base:")
    h.opt_list_meta_context(contexts.append)
    assert contexts == [nbd.CONTEXT_BASE_ALLOCATION], contexts
    h.clear_meta_contexts()
    h.add_meta_context("qemu:dirty-bitmap:x")
    h.set_export_name("vm")
    h.set_full_info(True)
    h.opt_go()
    assert h.get_export_description() == "a disk" and not h.can_meta_context("qemu:dirty-bitmap:x")
    h.shutdown()
    gone = nbd.NBD()
    gone.set_opt_mode(True)
    gone.connect_unix(SOCKET)
    gone.opt_abort()


def refusals():
    h = connect()
    # Nowhere, or too much of it.
    for call, code in ((h.pread, errno.EINVAL), (h.trim, errno.EINVAL), (h.zero, errno.ENOSPC)):
        refused(code, call, 4096, SIZE)
        refused(code, call, 8192, SIZE - 4096)
        refused(code, call, 4096, (1 << 64) - 4096)
    refused(errno.ENOSPC, h.pwrite, bytes(8192), SIZE - 4096)
    refused(errno.EINVAL, h.pread, LONGEST + 4096, 0)
    refused(errno.EINVAL, h.pwrite, bytes(LONGEST + 4096), 0)
    refused(errno.EINVAL, h.block_status, 4096, SIZE, lambda *_: 0)
    refused(errno.EINVAL, h.block_status, 0, 0, lambda *_: 0)
    # Flags that do not go with the command.
    refused(errno.EINVAL, h.pread, 4096, 0, nbd.CMD_FLAG_NO_HOLE)
    refused(errno.EINVAL, h.pwrite, bytes(4096), 0, nbd.CMD_FLAG_DF)
    refused(errno.EINVAL, h.trim, 4096, 0, nbd.CMD_FLAG_FAST_ZERO)
    refused(errno.EINVAL, h.zero, 4096, 0, nbd.CMD_FLAG_REQ_ONE)
    refused(errno.EINVAL, h.flush, 1 << 9)
    refused(errno.EOPNOTSUPP, h.zero, 4096, 0, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE)
    # Nothing of something is done, and the connection has borne all of this.
    assert h.pread(0, 0) == b"" and h.pread(4096, 0) == bytes(4096)
    h.pwrite(b"", 0)
    h.trim(0, SIZE)
    h.zero(0, 0)
    h.shutdown()


def status(h, count, offset, flags=0):
    """Extents as (length, state), together."""
    found = []

    def hear(context, at, entries, error):
        assert context == nbd.CONTEXT_BASE_ALLOCATION and at == offset and error.value == 0
        found.extend(zip(entries[::2], entries[1::2]))
        return 0

    h.block_status(count, offset, hear, flags)
    return found


def mapped(h, size):
    """Which bytes are said to be zeros, from several answers."""
    zeros, at = bytearray(size), 0
    while at < size:
        extents = status(h, size - at, at)
        assert extents and sum(length for length, _ in extents) <= size - at
        for length, state in extents:
            assert length > 0
            if state & nbd.STATE_ZERO:
                zeros[at : at + length] = b"\1" * length
            at += length
    return zeros


def model():
    """Random commands on four connections at once, one at a time; a flush, and a read elsewhere."""
    chance = random.Random(os.environ.get("FAIRHEAD_SEED", "1"))
    part = 8 << 20
    disk = bytearray(part)
    handles = [connect(), connect(structured=False, meta=False), connect(flags=0, structured=False, meta=False)]
    handles.append(connect(flags=nbd.HANDSHAKE_FLAG_FIXED_NEWSTYLE))
    assert not handles[1].get_structured_replies_negotiated()
    for step in range(600):
        h = chance.choice(handles)
        length = 4096 << chance.randrange(8)
        at = chance.randrange((part - length) // 4096 + 1) * 4096
        fua = chance.choice((0, 0, nbd.CMD_FLAG_FUA))
        kind = chance.randrange(10)
        if kind < 4:
            data = chance.randbytes(512) * (length // 512)
            h.pwrite(data, at, fua)
            disk[at : at + length] = data
        elif kind < 6:
            h.zero(length, at, fua | chance.choice((0, nbd.CMD_FLAG_NO_HOLE, nbd.CMD_FLAG_FAST_ZERO)))
            disk[at : at + length] = bytes(length)
        elif kind == 6:
            h.trim(length, at, fua)
            # It might be anything; here it is zeros.
            disk[at : at + length] = bytes(length)
        elif kind == 7:
            h.flush()
        else:
            assert h.pread(length, at, chance.choice((0, nbd.CMD_FLAG_DF)) if h.can_df() else 0) == disk[at : at + length], step
    h = handles[0]
    assert h.pread(part, 0) == disk
    chunks = []
    h.pread_structured(part, 0, lambda data, at, state, error: chunks.append((bytes(data), at, state)) or 0, nbd.CMD_FLAG_DF)
    assert chunks == [(bytes(disk), 0, nbd.READ_DATA)], "one chunk, of data"
    zeros = mapped(h, part)
    assert any(zeros) and not all(zeros)
    assert all(disk[i] == 0 for i in range(0, part, 512) if zeros[i]), "what is said to be zeros is"
    one = status(h, part, 0, nbd.CMD_FLAG_REQ_ONE)
    assert len(one) == 1 and 0 < one[0][0] <= part, one
    for h in handles:
        h.shutdown()


def many():
    """Five hundred requests under way on one connection, answered in any order."""
    h = connect()
    for i in range(64):
        h.pwrite(bytes([i + 1]) * 65536, i * 65536)
    order, asked = [], []
    for i in range(500):
        buffer = nbd.Buffer(4096)
        done = lambda error, i=i: order.append((i, error.value)) or 1
        h.aio_pread(buffer, i % 64 * 65536 + i // 64 * 4096, completion=done)
        asked.append(buffer)
    while len(order) < len(asked):
        h.poll(-1)
    assert sorted(order) == [(i, 0) for i in range(500)]
    for i, buffer in enumerate(asked):
        assert buffer.to_bytearray() == bytes([i % 64 + 1]) * 4096, i
    # Gone with requests under way: their answers are nobody's.
    for _ in range(100):
        h.aio_pread(nbd.Buffer(1 << 20), 0)
    h.shutdown(nbd.SHUTDOWN_ABANDON_PENDING)


def large():
    h = connect("large")
    size, far = 8 << 30, 5 << 30
    h.pwrite(b"far" * 4096, far)
    h.pwrite(b"end" + bytes(4093), size - 4096, nbd.CMD_FLAG_FUA)
    assert h.pread(12288, far) == b"far" * 4096
    # As much as a request can say, twice, and what lies around it stays.
    most = (1 << 32) - 4096
    h.zero(most, 4096)
    h.trim(most, 1 << 32)
    assert h.pread(12288, far) == bytes(12288)
    assert h.pread(4096, size - 4096)[:3] == b"end"
    assert h.pread(4096, far - 4096) == bytes(4096)
    found = status(h, most, 0)
    assert all(length > 0 for length, _ in found) and sum(length for length, _ in found) <= most
    h.shutdown()


facts()
haggling()
refusals()
model()
many()
large()
print(f"libnbd {nbd.NBD().get_version()} is content")
