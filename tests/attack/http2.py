"""Raw frames of HTTP/2, for attacks that no library of HTTP/2 would send. RFC 9113; header fields are literals without
Huffman coding and without an index (RFC 7541, section 6.2.2)."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4  # a setting
CANCEL = 8  # an error code


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


def call_headers(method, *more):
    """The header block of a call of kilokv.v1.KiloKV."""
    return b"".join(field(name, value) for name, value in (
        (":method", "POST"), (":scheme", "http"), (":path", f"/kilokv.v1.KiloKV/{method}"),
        (":authority", "127.0.0.1"), ("te", "trailers"), ("content-type", "application/grpc"), *more))


def message(payload):
    """A message of gRPC, not compressed."""
    return struct.pack(">BI", 0, len(payload)) + payload


def bytes_field(number, value):
    """A field of protobuf that holds bytes."""
    size, out = len(value), bytearray()
    while size >= 128:
        out.append(size % 128 + 128)
        size //= 128
    return bytes([number << 3 | 2]) + bytes(out) + bytes([size]) + value


def connect(endpoint, source=None, settings=b"", preface=True):
    """A connection that has sent its preface. `source`: the client's address."""
    host, port = endpoint.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=30,
                                          source_address=(source, 0) if source else None)
    if preface:
        connection.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
    return connection
