"""What nbd-tester-client and nbdkit's corpus for fuzzing do to a server, written anew from their descriptions.

    tester.py SOCKET EXPORT SIZE

The export's bytes are this program's alone, SIZE of them, more than 4 GiB. Prints a line for each test: its
name and `pass`, or `fail` and why. Of nbd-tester-client: reads and writes one after another at any offset
(throughput), the same with flush and with FUA, an integrity test of mixed requests many at a time, the same
beyond 4 GiB, the list of exports, and the handshake. Of the corpus: conversations that are cut at each byte,
and with one bit turned; after each the server must serve the next client.
"""

import random
import socket
import struct
import sys

PATH, EXPORT, SIZE = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
FUA = 1
# Options, and kinds of replies to them.
EXPORT_NAME, ABORT, LIST, GO = 1, 2, 3, 7
ACK, SERVER, INFO = 1, 2, 3
CHOICE = b"IHAVEOPT" + struct.pack(">II", EXPORT_NAME, len(EXPORT)) + EXPORT
GO_CHOICE = b"IHAVEOPT" + struct.pack(">III", GO, len(EXPORT) + 6, len(EXPORT)) + EXPORT + b"\0\0"


def request(kind, cookie, offset, length, flags=0):
    return struct.pack(">IHHQQI", 0x25609513, flags, kind, cookie, offset, length)


class Client:
    def __init__(self, choice=struct.pack(">I", 3) + CHOICE):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(PATH)
        assert self.take(16) == b"NBDMAGICIHAVEOPT"
        self.flags = struct.unpack(">H", self.take(2))[0]
        if choice:
            self.socket.sendall(choice)
            self.size = struct.unpack(">QH", self.take(10))[0]

    def take(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError(f"{len(data)} of {count} bytes")
            data += more
        return data

    def reply(self):
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert magic == 0x67446698, hex(magic)
        assert error == 0, f"error {error}"
        return cookie

    def read(self, offset, length):
        self.socket.sendall(request(READ, 1, offset, length))
        assert self.reply() == 1
        return self.take(length)

    def write(self, offset, data, flags=0):
        self.socket.sendall(request(WRITE, 2, offset, len(data), flags) + data)
        assert self.reply() == 2

    def flush(self):
        self.socket.sendall(request(FLUSH, 3, 0, 0))
        assert self.reply() == 3

    def option(self, kind, data=b""):
        """The kinds and data of all replies to an option."""
        self.socket.sendall(b"IHAVEOPT" + struct.pack(">II", kind, len(data)) + data)
        replies = []
        while True:
            magic, option, reply, length = struct.unpack(">QIII", self.take(20))
            assert (magic, option) == (0x3E889045565A9, kind)
            replies.append((reply, self.take(length)))
            if reply not in (SERVER, INFO):
                return replies


def one_after_another(length, flags=0, flushes=False, step=1024 * 1024 - 511):
    client = Client()
    for i, offset in enumerate(range(0, 64 << 20, step)):
        data = bytes([i % 251]) * length
        client.write(offset, data, flags)
        if flushes:
            client.flush()
        assert client.read(offset, length) == data, f"at {offset}"


def integrity(base, seed):
    """Eight at a time, none over another; what is read is what was written."""
    chance, client = random.Random(seed), Client()
    part = 1 << 20
    known = [bytearray(client.read(base + i * part, part)) for i in range(8)]
    asked, cookie = {}, 0
    for turn in range(1500):
        free = [i for i in range(8) if i not in {a[0] for a in asked.values()}]
        if free and turn < 1400:
            i = chance.choice(free)
            at, length = chance.randrange(part - 70_000), chance.choice([1, 511, 512, 1000, 4096, 65_537])
            cookie += 1
            kind = chance.choice([READ, WRITE])
            head = request(kind, cookie, base + i * part + at, length, chance.choice([0, FUA]) * kind)
            data = chance.randbytes(length) if kind == WRITE else b""
            client.socket.sendall(head + data)
            asked[cookie] = (i, at, length, data)
            if chance.randrange(3):
                continue
        if not asked:
            break
        i, at, length, data = asked.pop(client.reply())
        if data:
            known[i][at:at + length] = data
        else:
            assert client.take(length) == known[i][at:at + length], f"part {i} at {at}, {length} bytes"
    while asked:
        i, at, length, data = asked.pop(client.reply())
        if not data:
            client.take(length)
        else:
            known[i][at:at + length] = data
    for i in range(8):
        assert client.read(base + i * part, part) == known[i], f"part {i} in the end"
    client.socket.sendall(request(DISCONNECT, 0, 0, 0))


def lists():
    client = Client(None)
    client.socket.sendall(struct.pack(">I", 3))
    replies = client.option(LIST)
    names = [data[4:4 + struct.unpack(">I", data[:4])[0]] for kind, data in replies if kind == SERVER]
    assert replies[-1][0] == ACK and EXPORT in names, replies
    assert client.option(LIST, b"too much")[-1][0] >> 31, "a list has no data"
    assert client.option(ABORT)[-1][0] == ACK


def handshake():
    client = Client(None)
    assert client.flags & 1, "fixed newstyle"
    client.socket.sendall(struct.pack(">I", 3))
    assert client.option(0x7FFF_FFFF)[-1][0] >> 31, "an unknown option is refused"
    assert client.option(GO, struct.pack(">I", 7) + b"no-such\0\0")[-1][0] >> 31, "so is an unknown export"
    replies = client.option(GO, struct.pack(">I", len(EXPORT)) + EXPORT + b"\0\0")
    sizes = [struct.unpack(">HQH", d[:12])[1] for k, d in replies if k == INFO and d[:2] == b"\0\0"]
    assert sizes == [SIZE] and replies[-1][0] == ACK, replies
    assert client.read(0, 1)


def conversations():
    """As the corpus names its files: client flags, a choice by name or by GO, and reads or a write."""
    reads = b"".join(request(READ, i, i * 4096, 512) for i in range(4))
    bye = request(DISCONNECT, 9, 0, 0)
    flags = struct.pack(">I", 3)
    write = request(WRITE, 1, 0, 512) + b"w" * 512
    return {
        "exportname": flags + CHOICE + bye,
        "exportname-read4": flags + CHOICE + reads + bye,
        "go": flags + GO_CHOICE + bye,
        "go-read": flags + GO_CHOICE + reads[:28] + bye,
        "go-read4": flags + GO_CHOICE + reads + bye,
        "go-write": flags + GO_CHOICE + write + bye,
    }


def fed(data):
    """Everything at once, then the end of the input; all that the server says is read."""
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(20)
    peer.connect(PATH)
    try:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65_536):
            pass
    except (BrokenPipeError, ConnectionResetError):
        pass
    peer.close()


def corpus():
    chance = random.Random(7)
    for data in conversations().values():
        cuts = sorted(set(range(0, len(data), 3)) | {len(data)})
        for cut in cuts:
            fed(data[:cut])
        for _ in range(200):
            at = chance.randrange(len(data))
            # Not a length that would make the server wait for its data: the input ends, and it must leave.
            fed(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1:])
        assert Client().read(0, 512) is not None


TESTS = {
    "throughput": lambda: one_after_another(1024),
    "flush": lambda: one_after_another(1024, flushes=True),
    "fua": lambda: one_after_another(1024, flags=FUA),
    "integrity": lambda: integrity(0, 1),
    "integrity-huge": lambda: integrity((4 << 30) - (4 << 20) + 512, 2),
    "list": lists,
    "handshake": handshake,
    "corpus": corpus,
}
for name, test in TESTS.items():
    try:
        test()
        print(name, "pass", flush=True)
    except Exception as error:  # Whatever it is, it is the outcome.
        print(name, "fail", f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
