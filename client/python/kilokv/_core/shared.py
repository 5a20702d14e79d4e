"""What the classes of both clients have in common: all that makes no call."""

from __future__ import annotations

from typing import Any, List, Optional

from kilokv._core.interactive import InteractiveCore
from kilokv._core.retry import Caller
from kilokv._core.session import SessionCore, state_of
from kilokv.options import ClientOptions, Tls, from_environment
from kilokv.results import KnownRequest, RequestState
from kilokv.values import KeyLike


class ClientBase:
    """The arguments of a client. ClientOptions explains them."""

    def __init__(self, endpoint: Optional[str] = None, *, tls: Optional[Tls] = None, token: Optional[str] = None,
                 timeout: float = ClientOptions.timeout, connect_timeout: float = ClientOptions.connect_timeout,
                 wait_for_server: float = ClientOptions.wait_for_server, backoff_min: float = ClientOptions.backoff_min,
                 backoff_max: float = ClientOptions.backoff_max, connections: int = ClientOptions.connections) -> None:
        self.options = from_environment(endpoint=endpoint, tls=tls, token=token, timeout=timeout,
                                        connect_timeout=connect_timeout, wait_for_server=wait_for_server,
                                        backoff_min=backoff_min, backoff_max=backoff_max, connections=connections)
        self._caller = Caller(self.options)
        self._set_up()

    def _set_up(self) -> None:
        """Makes the connection and what else the kind of client needs."""
        raise NotImplementedError


class SessionBase:
    """What a session knows of itself."""

    def __init__(self, core: SessionCore) -> None:
        self.core = core

    @property
    def caller(self) -> Caller:
        return self.core.caller

    @property
    def id(self) -> str:
        """The whole id, as 32 hexadecimal digits. It is a secret: who has it, and may log in as the same user, can
        attach to the session. A program that wants to ask after a crash keeps it in a file that only its user can
        read."""
        return self.core.session.hex()

    @property
    def holder(self) -> int:
        """0: this client has opened the session; n: the n-th attach was its own."""
        return self.core.holder

    def acknowledge_through(self, number: int) -> None:
        """Nothing more is needed of the requests that earlier holders have left open, up to this number. The server may
        then drop their results. It happens by itself after 1,024 further requests."""
        self.core.numbers.acknowledge_through(number)


class Attached:
    """What a client has learned when it took a session over from another one.

    acknowledged_through  the earlier holder has the results of all requests up to this number
    requests              what the server knows of those after it, by their numbers
    frozen                the session is from before a restore: it has what is stored, and runs nothing more
    incarnation           of the database, as 32 hexadecimal digits
    """

    def __init__(self, answer: Any, known: List[KnownRequest]) -> None:
        self.acknowledged_through: int = answer.acknowledged_through
        self.requests = known
        self.frozen: bool = answer.frozen
        self.incarnation: str = answer.incarnation.hex()

    def state_of(self, number: int) -> RequestState:
        """The state of any number, as of the attach. DECIDED and NOT_KNOWN are final."""
        return state_of(self.acknowledged_through, self.requests, number)


class InteractiveBase:
    """The writes of an interactive transaction. They are buffered, so nothing is sent."""

    def __init__(self, core: InteractiveCore) -> None:
        self._core = core

    def put(self, key: KeyLike, value: "int | bytes", *, ttl: Optional[float] = None,
            expires_at_us: Optional[int] = None) -> None:
        """Buffers a write. The key expires `ttl` seconds after the commit, or at `expires_at_us`, microseconds since
        the Unix epoch; neither: never."""
        self._core.put(key, value, ttl, expires_at_us)

    def delete(self, key: KeyLike) -> None:
        """Buffers a delete."""
        self._core.delete(key)

    def abandon(self) -> None:
        """Ends the transaction without a commit. Nothing was sent that has to be undone."""
        self._core.ended = True
