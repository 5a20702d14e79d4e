"""Keys and values.

A key is bytes. A str stands for its UTF-8 bytes. A value is an int of 64 bits with a sign, or bytes, or None: absent.
"""

from __future__ import annotations

import operator
from typing import Optional, Union

KeyLike = Union[bytes, bytearray, str]
Value = Union[int, bytes, None]

INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 63) - 1


def to_key(key: KeyLike) -> bytes:
    """The bytes of a key. Raises TypeError for what is neither bytes nor str."""
    if type(key) is bytes:
        return key
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, (bytes, bytearray)):
        return bytes(key)
    raise TypeError(f"a key is bytes or str, not {type(key).__name__}")


def to_integer(value: object) -> int:
    """The value as an int. Raises TypeError for what is no integer, and ValueError outside of the signed 64-bit
    range."""
    if type(value) is int:
        integer = value
    elif isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"an int is needed, not {type(value).__name__}")
    else:
        integer = operator.index(value)  # such as an integer of numpy
    if not INTEGER_MIN <= integer <= INTEGER_MAX:
        raise ValueError(f"{integer} is outside of the signed 64-bit range")
    return integer


def prefix_end(prefix: KeyLike) -> bytes:
    """The end of the range of all keys that begin with the prefix. Empty: the range has no end."""
    stem = to_key(prefix).rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""


def to_range(start: KeyLike, end: KeyLike, prefix: Optional[KeyLike]) -> tuple[bytes, bytes]:
    """The range [start, end), or that of a prefix. Raises ValueError if both are given."""
    if prefix is None:
        return to_key(start), to_key(end)
    if start or end:
        raise ValueError("a range has either a prefix, or a start and an end")
    return to_key(prefix), prefix_end(prefix)


def to_expiry(ttl: Optional[float], expires_at_us: Optional[int]) -> Optional[tuple[str, int]]:
    """When a key expires, as the name of the field and its content. None: neither is given. Raises ValueError if both
    are given, or if a key would expire before it is written."""
    if ttl is None and expires_at_us is None:
        return None
    if ttl is not None and expires_at_us is not None:
        raise ValueError("give either ttl or expires_at_us, not both")
    if ttl is not None:
        name, content = "ttl_us", to_microseconds(ttl, "ttl")
    else:
        name, content = "expires_at_us", to_integer(expires_at_us)
    if content < 1:
        raise ValueError(f"{name} is {content}; at least 1 is needed")
    return name, content


def to_microseconds(seconds: float, what: str) -> int:
    """Seconds as whole microseconds. Raises ValueError if they are negative or no number."""
    if not seconds >= 0:
        raise ValueError(f"{what} is {seconds} seconds; it must not be negative")
    return round(min(seconds, 1e12) * 1e6)
