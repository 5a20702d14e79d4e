"""How a client reaches its server: address, TLS, login and times."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import pathlib
import re
from typing import List, Mapping, Optional, Tuple

from kilokv.values import to_integer, to_microseconds, to_text, wrong_type

DEFAULT_ENDPOINT = "127.0.0.1:7070"
_TOKEN = re.compile(r"kilokv_[0-9a-f]{16}_[0-9a-f]{64}")


@dataclasses.dataclass(frozen=True)
class Tls:
    """TLS between client and server. All files are in PEM form, and are read once.

    ca_file      authorities that the server's certificate may come from; None: those of the system
    cert_file    the client's own certificate, followed by those of its issuers, if the server asks for one
    key_file     the private key of that certificate
    server_name  the name that the server's certificate must have; None: the host of the endpoint
    """
    ca_file: Optional[str] = None
    cert_file: Optional[str] = None
    key_file: Optional[str] = None
    server_name: Optional[str] = None

    def read(self) -> Tuple[Optional[bytes], Optional[bytes], Optional[bytes]]:
        """The bytes of authorities, key and certificate. Raises ValueError if one of certificate and key is missing,
        and OSError if a file cannot be read."""
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("a certificate of the client needs its key, and a key needs its certificate: "
                             "set both cert_file and key_file")
        authorities, key, certificate = (None if name is None else pathlib.Path(name).read_bytes()
                                         for name in (self.ca_file, self.key_file, self.cert_file))
        return authorities, key, certificate


@dataclasses.dataclass(frozen=True)
class ClientOptions:
    """Times are in seconds.

    endpoint         HOST:PORT
    timeout          longest time of a call with its retries, without the time that its transactions wait on the server
    connect_timeout  longest time for which a first call tries again until the server answers
    wait_for_server  how long the first call waits instead, until the server listens and has recovered; 0: it fails at
                     once if nothing listens, if the host has no address, or if what listens does not speak gRPC
    backoff_min, backoff_max
                     delay before a retry: it doubles from the first to the second, with jitter
    connections      HTTP/2 connections; calls take them in turn
    tls              None: no TLS
    token            for a server with logins; None: no login. Without TLS it is sent to this machine only
    """
    endpoint: str = DEFAULT_ENDPOINT
    timeout: float = 30.0
    connect_timeout: float = 10.0
    wait_for_server: float = 0.0
    backoff_min: float = 0.01
    backoff_max: float = 1.0
    connections: int = 1
    tls: Optional[Tls] = None
    token: Optional[str] = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_endpoint(self.endpoint)
        if self.tls is not None and not isinstance(self.tls, Tls):
            raise wrong_type("tls", "a kilokv.Tls", self.tls)
        if self.token is not None:
            _check_token(self.token, self.endpoint, self.tls is not None)
        for name in ("timeout", "connect_timeout", "wait_for_server", "backoff_min", "backoff_max"):
            to_microseconds(getattr(self, name), name)
        to_integer(self.connections, "connections", 1)

    @property
    def metadata(self) -> Tuple[Tuple[str, str], ...]:
        """The headers of each call."""
        return () if self.token is None else (("authorization", f"Bearer {self.token}"),)

    def channel_arguments(self) -> List[Tuple[str, object]]:
        """The arguments of gRPC's channels. After a lost connection they try again soon and often. Pings are sent only
        while a call is open."""
        arguments: List[Tuple[str, object]] = [
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 0),
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 2_000),  # also the shortest time of one attempt
            ("grpc.max_reconnect_backoff_ms", 1_000),
            ("grpc.use_local_subchannel_pool", 1),  # each channel has its own connection
            ("grpc.max_receive_message_length", -1),  # the server limits its answers
            ("grpc.max_send_message_length", -1),  # the server refuses what is too long, and names the setting
        ]
        if self.tls is None:
            arguments.append(("grpc.enable_http_proxy", 0))  # a token must not leave this machine
        elif self.tls.server_name is not None:
            arguments.append(("grpc.ssl_target_name_override", self.tls.server_name))
        return arguments


_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")


def trace_metadata(traceparent: Optional[str]) -> Tuple[Tuple[str, str], ...]:
    """The header that names the trace of a call, in the form of W3C Trace Context. Raises ValueError if it is
    malformed."""
    if traceparent is None:
        return ()
    if len(to_text(traceparent, "traceparent")) > 256 or not _TRACEPARENT.fullmatch(traceparent):
        raise ValueError(f"{traceparent!r} is no traceparent of W3C Trace Context")
    return (("traceparent", traceparent),)


def check_endpoint(endpoint: str) -> None:
    """Raises ValueError unless it is HOST:PORT. gRPC would take the port modulo 2^16, and another one for a missing
    one."""
    scheme, has_scheme, place = to_text(endpoint, "the endpoint").partition("://")
    if has_scheme:
        raise ValueError(f"{endpoint!r} is not HOST:PORT: write {place.rstrip('/')}, without {scheme}://")
    host, colon, port = endpoint.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise ValueError(f"{endpoint!r} is not HOST:PORT with a port from 1 to 65535, such as {DEFAULT_ENDPOINT}")


def _check_token(token: str, endpoint: str, has_tls: bool) -> None:
    if not _TOKEN.fullmatch(to_text(token, "the token")):
        raise ValueError("the token is malformed: a token is kilokv_, 16 hex digits, _ and 64 hex digits")
    host = endpoint.rpartition(":")[0]
    if not (has_tls or _is_this_machine(host)):
        raise ValueError(f"no token is sent to {endpoint} without TLS: use TLS, or no token")


def _is_this_machine(host: str) -> bool:
    if host in ("localhost", "[::1]"):
        return True
    try:
        return ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


def from_environment(environment: Mapping[str, str] = os.environ, *, endpoint: Optional[str] = None,
                     tls: Optional[Tls] = None, token: Optional[str] = None, **others: object) -> ClientOptions:
    """The options of a client. What the arguments leave out comes from the variables of the environment that all
    programs of KiloKV read. An empty variable counts as unset. Raises ValueError for a wrong variable, and OSError if a
    file cannot be read."""
    return ClientOptions(
        endpoint=_endpoint_from(environment) if endpoint is None else endpoint,
        tls=tls or _tls_from(environment),
        token=token or _secret_from(environment, "KILOKV_CLIENT_TOKEN"),
        **others)  # type: ignore[arg-type]


def _endpoint_from(environment: Mapping[str, str]) -> str:
    named = environment.get("KILOKV_ENDPOINT")
    if not named:
        return DEFAULT_ENDPOINT
    try:
        check_endpoint(named)
    except ValueError as error:
        raise ValueError(f"the variable KILOKV_ENDPOINT: {error}") from None
    return named


def _tls_from(environment: Mapping[str, str]) -> Optional[Tls]:
    wanted = environment.get("KILOKV_CLIENT_TLS", "")
    if wanted not in ("", "0", "1"):
        raise ValueError(f"the variable KILOKV_CLIENT_TLS is {wanted!r}: it must be 0 or 1")
    files = [environment.get(f"KILOKV_CLIENT_TLS_{name}") or None for name in ("CA", "CERT", "KEY", "SERVER_NAME")]
    return Tls(*files) if wanted == "1" or any(files) else None


def _secret_from(environment: Mapping[str, str], name: str) -> Optional[str]:
    """A secret, from the file that NAME_FILE names, or else from NAME."""
    file = environment.get(f"{name}_FILE")
    if not file:
        return environment.get(name) or None
    secret = pathlib.Path(file).read_text(encoding="utf-8").rstrip()
    if not secret:
        raise ValueError(f"the file {file} (the variable {name}_FILE) is empty")
    return secret


def session_id_from_environment(environment: Mapping[str, str] = os.environ) -> Optional[str]:
    """The id of a session to attach to: from the file that KILOKV_CLIENT_SESSION_FILE names, or else from
    KILOKV_CLIENT_SESSION. None: neither is set."""
    return _secret_from(environment, "KILOKV_CLIENT_SESSION")
