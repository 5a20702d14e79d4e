"""Raw frames of HTTP/2, for attacks that no library of HTTP/2 would send. RFC 9113; header fields are literals without
Huffman coding and without an index (RFC 7541, section 6.2.2), or each is sent once and has an index then (section 6.2.1)."""

import collections
import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE = 1, 4  # settings
CANCEL = 8  # an error code
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def length(number):
    """An integer with a prefix of 7 bits."""
    if number < 127:
        return bytes([number])
    out, number = bytearray([127]), number - 127
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


def field(name, value):
    name, value = (text.encode() if isinstance(text, str) else text for text in (name, value))
    return b"\x00" + length(len(name)) + name + length(len(value)) + value


def fields_of_call(method, *more):
    """`method`: of kilokv.v1.KiloKV, or the path of another service."""
    path = method if method.startswith("/") else f"/kilokv.v1.KiloKV/{method}"
    return ((":method", "POST"), (":scheme", "http"), (":path", path),
            (":authority", "127.0.0.1"), ("te", "trailers"), ("content-type", "application/grpc"), *more)


def call_headers(method, *more):
    """The header block of a call of kilokv.v1.KiloKV."""
    return b"".join(field(name, value) for name, value in fields_of_call(method, *more))


class IndexedHeaders:
    """Header blocks in which a field that was sent before is one byte. Requires: all fields together, with 32 bytes for
    each, have at most 4,096 bytes."""

    def __init__(self):
        self._sent = []

    def block(self, fields):
        out = bytearray()
        for one in fields:
            if one in self._sent:
                out.append(0x80 | 61 + len(self._sent) - self._sent.index(one))
            else:
                self._sent.append(one)
                out += b"\x40" + field(*one)[1:]
        return bytes(out)


def message(payload):
    """A message of gRPC, not compressed."""
    return struct.pack(">BI", 0, len(payload)) + payload


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    out.append(value)
    return bytes(out)


def bytes_field(number, value):
    """A field of protobuf that holds bytes."""
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def connect(endpoint, source=None, settings=b"", preface=True, authority=None):
    """A connection that has sent its preface. `source`: the client's address. `authority`: the file of the authority
    whose server is trusted; without it, there is no TLS."""
    host, port = endpoint.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=30,
                                          source_address=(source, 0) if source else None)
    if authority is not None:
        context = ssl.create_default_context(cafile=authority)
        context.set_alpn_protocols(["h2"])
        connection = context.wrap_socket(connection, server_hostname=host)
    if preface:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
    return connection


def status_of(block):
    """The grpc-status in a header block that refers to no earlier one; None: there is none."""
    at = bytes(block).find(length(len("grpc-status")) + b"grpc-status")
    if at < 0:
        return None
    at += len("grpc-status") + 1
    return bytes(block[at + 1:at + 1 + block[at]]).decode()


def number_field(number, value):
    """A field of protobuf that holds an unsigned integer."""
    return bytes([number << 3]) + varint(value)


class Caller:
    """A client of raw frames that makes calls of kilokv.v1.KiloKV. It keeps to the windows of the server, so that its
    messages may be long. What the server sends is thrown away, except for the ends of calls, with their statuses, and the
    number of messages.

    `window`: how many bytes the server may send on each stream; the default has no end. `authority`: as for connect().
    `headers`: of each call. `indexed`: header blocks are as short as they can be. Not for several threads.
    """

    def __init__(self, endpoint, source=None, window=0x7fffffff, authority=None, headers=(), indexed=False):
        # Without a table, no header block refers to an earlier one.
        self.socket = connect(endpoint, source, struct.pack(">HIHI", HEADER_TABLE_SIZE, 0, INITIAL_WINDOW_SIZE, window),
                              authority=authority)
        self._headers = tuple(headers)
        self._index = IndexedHeaders() if indexed else None
        self._payload = self._message = None
        self.socket.setblocking(False)
        if window:
            self.socket.setblocking(True)
            self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fff0000)))
            self.socket.setblocking(False)
        self.open = set()  # the streams of calls that the server has not ended
        self.ends = collections.Counter()  # of calls, by grpc-status; None: without one
        self.received = self.messages = 0
        self._rest = {}  # stream: [bytes of its prefix so far, bytes that are left of its message]
        self._unacknowledged = 0
        self._window, self._stream_window = 65535, 65535
        self._stream = -1
        self._in, self._out = bytearray(), bytearray()
        self._waiting = []  # [stream, view of its bytes, sent, window of the stream, flags of the end], in order
        self._unfinished = {}  # by stream: its window, when all so far has been sent

    def fileno(self):
        return self.socket.fileno()

    def wants_to_write(self):
        return bool(self._out) or bool(self._waiting) and self._window > 0

    def call(self, method, payload, *more):
        """Begins a call with one message; `more`: headers. Returns its stream."""
        if payload is not self._payload:  # many calls share one message
            self._payload, self._message = payload, message(payload)
        return self._begin(method, self._message, END_STREAM, more)

    def call_message(self, method, sent, *more):
        """Begins a call whose message, with its prefix, is what is sent."""
        return self._begin(method, sent, END_STREAM, more)

    def call_unfinished(self, method, part):
        """Begins a call with a part of a message, and does not end it."""
        return self._begin(method, part, 0, ())

    def go_on(self, stream, part):
        """Sends more of an unfinished message, when all so far has been sent."""
        if stream in self._unfinished:
            self._waiting.append([stream, memoryview(part), 0, self._unfinished.pop(stream), 0])
            self.write()

    def _begin(self, method, sent, last_flags, more):
        self._stream += 2
        self.open.add(self._stream)
        block = (self._index.block(fields_of_call(method, *self._headers, *more)) if self._index
                 else call_headers(method, *self._headers, *more))
        self._out += frame(HEADERS, END_HEADERS, self._stream, block)
        self._waiting.append([self._stream, memoryview(sent), 0, self._stream_window, last_flags])
        self.write()
        return self._stream

    def cancel(self, stream):
        self.open.discard(stream)
        self._waiting = [entry for entry in self._waiting if entry[0] != stream]
        self._out += frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4, "big"))
        self.write()

    def write(self):
        """Sends what the windows and the socket take now."""
        while self._waiting and len(self._out) < 1 << 20:
            entry = self._waiting[0]
            stream, view, sent, window, last_flags = entry
            size = min(len(view) - sent, self._window, window, 16384)
            if size <= 0:
                break
            is_last = sent + size == len(view)
            self._out += frame(DATA, last_flags if is_last else 0, stream, view[sent:sent + size])
            self._window -= size
            entry[2], entry[3] = sent + size, window - size
            if is_last:
                self._waiting.pop(0)
                if not last_flags:
                    self._unfinished[stream] = entry[3]
        try:
            while self._out:
                del self._out[:self.socket.send(self._out)]
        except WOULD_BLOCK:
            pass

    def read(self):
        """Takes what the server has sent. Raises ConnectionError if the server has closed the connection."""
        try:
            while data := self.socket.recv(1 << 20):
                self._in += data
                if len(self._in) > 1 << 22:
                    break
            else:
                raise ConnectionError("the server closed the connection")
        except WOULD_BLOCK:
            pass
        at = 0
        while len(self._in) - at >= 9:
            size = int.from_bytes(self._in[at:at + 3], "big")
            if len(self._in) - at < 9 + size:
                break
            kind, flags = self._in[at + 3], self._in[at + 4]
            stream = int.from_bytes(self._in[at + 5:at + 9], "big")
            self._take(kind, flags, stream, self._in[at + 9:at + 9 + size])
            at += 9 + size
        del self._in[:at]
        self.write()

    def _take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack_from(">HI", payload, at)
                if name == INITIAL_WINDOW_SIZE:
                    for entry in self._waiting:
                        entry[3] += value - self._stream_window
                    self._stream_window = value
            self._out += frame(SETTINGS, ACK, 0)
        elif kind == PING and not flags & ACK:
            self._out += frame(PING, ACK, 0, bytes(payload))
        elif kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self._window += more
            if stream in self._unfinished:
                self._unfinished[stream] += more
            for entry in self._waiting:
                if entry[0] == stream:
                    entry[3] += more
        elif kind == DATA:
            self.received += len(payload)
            self._count_messages(stream, payload)
            self._unacknowledged += len(payload)
            if self._unacknowledged > 1 << 29:
                self._out += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", self._unacknowledged))
                self._unacknowledged = 0
        elif kind == RST_STREAM or kind == HEADERS and flags & END_STREAM:
            self._rest.pop(stream, None)
            self._unfinished.pop(stream, None)
            if kind == RST_STREAM:  # the rest of its message is not wanted, and would hold up others
                self._waiting = [entry for entry in self._waiting if entry[0] != stream]
            if stream in self.open:
                self.open.discard(stream)
                self.ends[status_of(payload) if kind == HEADERS else None] += 1
        elif kind == GOAWAY:
            raise ConnectionError("the server sends the client away")

    def _count_messages(self, stream, payload):
        rest = self._rest.setdefault(stream, [bytearray(), 0])
        at = 0
        while at < len(payload):
            if rest[1] == 0:
                taken = payload[at:at + 5 - len(rest[0])]
                rest[0] += taken
                at += len(taken)
                if len(rest[0]) < 5:
                    return
                rest[1] = int.from_bytes(rest[0][1:], "big")
                rest[0].clear()
            taken = min(rest[1], len(payload) - at)
            rest[1] -= taken
            at += taken
            self.messages += rest[1] == 0

    def close(self):
        self.socket.close()
