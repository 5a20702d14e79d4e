"""What a server tells the people who operate it."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Tuple

from kilokv.v1 import kilokv_pb2 as pb

_STATES = {pb.ServerSection.STATE_RECOVERING: "recovering", pb.ServerSection.STATE_READY: "ready",
           pb.ServerSection.STATE_DRAINING: "draining", pb.ServerSection.STATE_STOPPED: "stopped"}


@dataclasses.dataclass(frozen=True)
class MemoryOwner:
    """What a part of the server holds of the memory. A bound of 0: the part shares the bound of "values"."""
    name: str
    bytes: int
    bound_bytes: int


@dataclasses.dataclass(frozen=True)
class ServerStatus:
    """The status of a server. docs/server-status.md explains the counters, which have the names of the protocol.

    state        recovering, ready, draining or stopped
    state_hash   hexadecimal; of everything up to the durable batch
    incarnation  hexadecimal; a restore from a backup begins another one
    """
    state: str
    version: str
    strategy: str
    threads: int
    device: str
    device_reason: str
    insecure: bool
    read_only: bool
    uptime_seconds: float
    recovery_seconds: float
    state_hash: str
    incarnation: str
    counters: Dict[str, int]
    settings: Dict[str, str]
    details: Dict[str, str]
    memory: List[MemoryOwner]


@dataclasses.dataclass(frozen=True)
class ParkedTransaction:
    """A transaction that waits on the server."""
    id: int              # for cancel_parked()
    session: str         # the first 8 hexadecimal digits of its id; empty: no session
    request: int
    index: int           # of the transaction in its request
    guard: int           # the guard that it waits for
    guard_key: bytes
    admitted_batch: int
    deadline_us: int     # microseconds since the Unix epoch
    since_us: int        # when it was parked first
    client: str          # such as ipv4:127.0.0.1:40000 or user:alice


@dataclasses.dataclass(frozen=True)
class OpenSession:
    """An open session of the server."""
    id: str              # the first 8 hexadecimal digits
    user: str            # who opened it; empty: opened without a login
    lease: float         # seconds
    lease_left: float    # seconds; below 0: it is over, and requests in flight keep the session
    holder: int          # how often a client has attached to it
    acknowledged_through: int
    requests: int        # that are not acknowledged
    requests_in_flight: int
    uploads: int         # read sets that are not committed
    stored_bytes: int    # of results
    reserved_bytes: int  # for results to come


def status_of(message: Any) -> ServerStatus:
    server = message.server
    counters: Dict[str, int] = {}
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or field.label == field.LABEL_REPEATED:
            continue
        section = getattr(message, field.name)
        for number in field.message_type.fields:
            if number.type == number.TYPE_UINT64 and number.label != number.LABEL_REPEATED:
                counters[number.name] = getattr(section, number.name)
    return ServerStatus(
        state=_STATES.get(server.state, "unknown"), version=server.server_version, strategy=server.strategy,
        threads=server.threads, device=message.device.device, device_reason=message.device.device_reason,
        insecure=server.insecure, read_only=server.read_only, uptime_seconds=server.uptime_seconds,
        recovery_seconds=server.recovery_seconds, state_hash=message.position.state_hash.hex(),
        incarnation=server.incarnation.hex(), counters=counters,
        settings={text.name: text.text for text in message.settings},
        details={text.name: text.text for text in message.details},
        memory=[MemoryOwner(owner.name, owner.bytes, owner.bound_bytes) for owner in message.memory.owners])


def parked_of(message: Any) -> ParkedTransaction:
    return ParkedTransaction(message.id, message.session.hex(), message.request, message.index, message.guard,
                             message.guard_key, message.admitted_batch, message.deadline_us, message.since_us,
                             message.client)


def sessions_of(message: Any) -> Tuple[List[OpenSession], int]:
    """The sessions of the list, and how many there are."""
    found = [OpenSession(info.id, info.user, info.lease_us / 1e6, info.lease_left_us / 1e6, info.holder,
                         info.acknowledged_through, info.requests, info.requests_in_flight, info.uploads,
                         info.stored_bytes, info.reserved_bytes) for info in message.sessions]
    return found, message.count
