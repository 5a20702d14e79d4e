"""Requests of which a part is encoded already, so that it is neither copied nor looked at again when they are sent."""

from __future__ import annotations

from typing import Any

_DELIMITED = 2  # wire type of what has a length


class EncodedRequest:
    """A message of the protocol (`head`) with one more field. `id` may be changed between two sendings."""
    __slots__ = ("id", "_head", "_field")

    def __init__(self, head: Any, field: bytes) -> None:
        self._head, self._field = head, field
        self.id = head.id

    def SerializeToString(self) -> bytes:  # noqa: N802: the name that messages of protobuf have
        return bytes(self._head.SerializeToString()) + self._field


def encode_field(number: int, content: bytes) -> bytes:
    """A field that holds a message, bytes, or a packed column."""
    return encode_varint(number << 3 | _DELIMITED) + encode_varint(len(content)) + content


def encode_varint(number: int) -> bytes:
    if number <= 0x7F:
        return bytes((number,))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
