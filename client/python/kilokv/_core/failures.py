"""Turns what gRPC reports into errors (errors.py)."""

from __future__ import annotations

import re
from typing import Any, Iterable, Optional, Tuple

from kilokv import errors
from kilokv.v1 import kilokv_pb2 as pb

_DETAIL_KEY = "kilokv-error-bin"
_REASON_PREFIX = "ERROR_REASON_"
# gRPC refuses a message with these words before the service sees it.
_TOO_LARGE = re.compile(r"Received message larger than max \((\d+) vs\. (\d+)\)")
# Words of a TLS handshake that failed. The libraries of gRPC write them with spaces, or in capitals with underscores.
_CERTIFICATE_WORDS = ("certificate verify failed", "is not in peer certificate")
_NOT_TLS_WORDS = "wrong version number"
# Of the explanations below.
_WRONG_ENDPOINT = ("the connection is refused", "cannot be resolved", "does not speak gRPC")


def error_of_call(code: int, details: str, trailing: Optional[Iterable[Tuple[str, Any]]], method: str,
                  endpoint: str) -> errors.Error:
    """The error of a call that gRPC has ended with a code, 1 to 16."""
    where = f"{method} at {endpoint}: "
    for key, value in trailing or ():
        if key == _DETAIL_KEY:
            detail = pb.ErrorDetail()
            detail.ParseFromString(value)
            return _with_detail(code, where + details, detail)
    return _of_transport(code, details, where, endpoint)


def _with_detail(code: int, message: str, detail: Any) -> errors.Error:
    kind = _class_of(code)
    reason = _reason_name(detail.reason)
    of_reason = errors.CLASS_OF_REASON.get(reason)
    if of_reason is not None and issubclass(of_reason, kind):
        kind = of_reason
    # With these codes the server can also end a call that runs, because its client may make no calls any more.
    ends_calls = issubclass(kind, (errors.PermissionDeniedError, errors.UnauthenticatedError))
    return kind(message, reason=reason, field=detail.field, limit=detail.limit, actual=detail.actual,
                setting=detail.setting, retry_after=detail.retry_after_us / 1e6, not_run=detail.not_run,
                may_have_run=ends_calls and not detail.not_run)


def _class_of(code: int) -> type[errors.Error]:
    return errors.CLASS_OF_CODE[code] if 0 < code < len(errors.CLASS_OF_CODE) else errors.UnknownError


def _reason_name(reason: int) -> str:
    """Such as QUEUE_FULL. Empty: the server named none, or it is newer and its reason is not known here."""
    value = pb.ErrorReason.DESCRIPTOR.values_by_number.get(reason)
    return "" if value is None or reason == 0 else str(value.name)[len(_REASON_PREFIX):]


def _of_transport(code: int, details: str, where: str, endpoint: str) -> errors.Error:
    too_large = _TOO_LARGE.search(details)
    if too_large:
        return errors.InvalidArgumentError(
            f"{where}the message is too large for the server; send less at once, or raise --message-bytes-max",
            field="message", actual=f"{too_large[1]} bytes", limit=f"{too_large[2]} bytes (4 times the setting)",
            setting="--message-bytes-max", not_run=True)
    plain = details.lower().replace("_", " ")
    if any(words in plain for words in _CERTIFICATE_WORDS):
        reason = details.rpartition("last error: ")[2]
        return errors.UnauthenticatedError(f"{where}the certificate of the server is not accepted: {reason}")
    if _NOT_TLS_WORDS in plain:
        return errors.UnauthenticatedError(f"{where}the server does not use TLS, and this client does")
    kind = _class_of(code)
    # When the memory of the server's gRPC is full, it resets streams of any client. This is a lost connection.
    if kind is errors.ResourceExhaustedError and "RST_STREAM" in details:
        kind = errors.UnavailableError
    return kind(where + (_explain(details, endpoint) or details or "refused without a reason"))


def _explain(details: str, endpoint: str) -> str:
    """A message of the transport in plain words; empty: it is not known."""
    if "Connection refused" in details:
        return f"nothing listens at {endpoint}: the connection is refused"
    if "DNS resolution" in details or "name resolution" in details:
        return f"the host of {endpoint} cannot be resolved: check its name"
    if any(words in details for words in ("http1", "HTTP/2", "settings frame", "http2 header")):
        return f"something at {endpoint} answers, but does not speak gRPC: is the port wrong, or does it use TLS?"
    if any(words in details for words in ("Socket closed", "Connection reset", "GOAWAY", "Broken pipe", "RST_STREAM")):
        return (f"the connection to {endpoint} was closed: the server ended, restarts, or refused the connection; or "
                "it uses TLS, and this client does not")
    if "failed to connect to all addresses" in details:
        return f"cannot connect to {endpoint}: the host is wrong, a firewall drops the packets, or the server hangs"
    if details == "Deadline Exceeded":
        return "no answer in time"
    return ""


def is_wrong_endpoint(error: errors.Error) -> bool:
    """Whether it says that no KiloKV server is at the endpoint: to try again soon does not help."""
    return is_of_transport(error) and any(words in error.message for words in _WRONG_ENDPOINT)


def is_of_transport(error: errors.Error) -> bool:
    """Whether the error is about the connection, and not an answer of the server."""
    return not error.reason


def is_too_large(error: errors.Error) -> bool:
    """Whether a commit with fewer guards or fewer bytes might be accepted."""
    return isinstance(error, errors.InvalidArgumentError) and error.setting in ("--guards-max", "--message-bytes-max")


def of_many_sendings(error: errors.Error) -> errors.Error:
    """The error of a request that was sent several times, and of which an earlier sending may have run."""
    error.not_run, error.may_have_run = False, True
    return error
