"""Keys and values.

A key is bytes. A str stands for its UTF-8 bytes. A value is an int of 64 bits with a sign, or bytes, or None: absent.
"""

from __future__ import annotations

import numbers
import operator
import re
from typing import Iterable, List, Optional, Union

KeyLike = Union[bytes, bytearray, str]
Value = Union[int, bytes, None]

INTEGER_MIN, INTEGER_MAX = -(1 << 63), (1 << 63) - 1


def wrong_type(what: str, wanted: str, value: object) -> TypeError:
    """The error for an argument of a wrong type. `what` names the argument."""
    given = "None" if value is None else type(value).__name__
    if isinstance(value, str) and "bytes" in wanted:
        given += ": encode it"
    return TypeError(f"{what} must be {wanted}, not {given}")


def to_key(key: KeyLike, what: str = "a key") -> bytes:
    """The bytes of a key, or of a bound of a range. Raises TypeError for what is neither bytes nor str."""
    if type(key) is bytes:
        return key
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, (bytes, bytearray)):
        return bytes(key)
    raise wrong_type(what, "bytes or str", key)


def to_keys(keys: Iterable[KeyLike]) -> List[bytes]:
    """The bytes of many keys. One key alone is no list of keys, although a str can be iterated."""
    if isinstance(keys, (str, bytes, bytearray)) or not isinstance(keys, Iterable):
        raise wrong_type("keys", "a list of keys", keys)
    return [to_key(key) for key in keys]


def to_integer(value: object, what: str = "the value", least: int = INTEGER_MIN, most: int = INTEGER_MAX) -> int:
    """The value as an int. Raises TypeError for what is no integer, and ValueError outside of the range, which is
    that of 64 bits with a sign by default."""
    if type(value) is int:
        integer = value
    elif isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type(what, "an int", value)
    else:
        integer = operator.index(value)  # such as an integer of numpy
    if not least <= integer <= most:
        raise ValueError(f"{what} is {integer}; it must be from {least} to {most}")
    return integer


def to_unsigned(value: object, what: str, bits: int = 64) -> int:
    """An integer without a sign, such as a version. The limits here are those of the protocol."""
    return to_integer(value, what, 0, (1 << bits) - 1)


def to_value(value: object) -> Union[int, bytes]:
    """An int or bytes to write."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if value is None:
        raise TypeError("the value must be an int or bytes, not None: delete() deletes a key")
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong_type("the value", "an int or bytes", value)
    return to_integer(value)


def to_bytes(value: object, what: str) -> bytes:
    """Bytes that are no key."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise wrong_type(what, "bytes", value)


def to_text(value: object, what: str) -> str:
    if isinstance(value, str):
        return value
    raise wrong_type(what, "a str", value)


def to_session(session_id: object) -> bytes:
    """The id of a session as bytes."""
    if not re.fullmatch("[0-9a-fA-F]{32}", to_text(session_id, "session_id")):
        raise ValueError("session_id must be the 32 hexadecimal digits of Session.id")
    return bytes.fromhex(str(session_id))


def prefix_end(prefix: KeyLike) -> bytes:
    """The end of the range of all keys that begin with the prefix. Empty: the range has no end."""
    stem = to_key(prefix, "prefix").rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b""


def to_range(start: KeyLike, end: KeyLike, prefix: Optional[KeyLike]) -> tuple[bytes, bytes]:
    """The range [start, end), or that of a prefix. Raises ValueError if both are given."""
    if prefix is None:
        return to_key(start, "start"), to_key(end, "end")
    if start or end:
        raise ValueError("a range has either a prefix, or a start and an end")
    return to_key(prefix, "prefix"), prefix_end(prefix)


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
        name, content = "expires_at_us", to_integer(expires_at_us, "expires_at_us")
    if content < 1:
        raise ValueError(f"{name} is {content}; at least 1 is needed")
    return name, content


def to_microseconds(seconds: float, what: str) -> int:
    """Seconds as whole microseconds. Raises TypeError if they are no number, and ValueError if they are negative."""
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise wrong_type(what, "a number of seconds", seconds)
    if not seconds >= 0:
        raise ValueError(f"{what} is {seconds} seconds; it must not be negative")
    return round(min(float(seconds), 1e12) * 1e6)
