"""The connections of a client for asyncio, and how it performs the steps of its calls."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any, Iterator, List, Optional, TypeVar

import grpc

from kilokv import errors
from kilokv._core.failures import error_of_call
from kilokv._core.steps import Call, Pause, Steps
from kilokv._core.stub import make_stub
from kilokv.connection import channel_credentials
from kilokv.options import ClientOptions

T = TypeVar("T")


class Connection:
    """Belongs to one event loop: the one that makes the first call."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._credentials = channel_credentials(options)
        self._metadata = options.metadata
        self._channels: List[Any] = []
        self._stubs: Optional[Iterator[Any]] = None
        self.closed = False

    async def close(self) -> None:
        """Ends all calls."""
        self.closed = True
        for channel in self._channels:
            await channel.close()

    async def drive(self, steps: Steps[T]) -> T:
        """Performs the steps, and returns what they return."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await (self._call(step) if isinstance(step, Call) else self._pause(step))
                except errors.Error as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    async def _pause(self, pause: Pause) -> None:
        self._check_open()
        await asyncio.sleep(pause.seconds)

    def _check_open(self) -> None:
        if self.closed:
            raise errors.ClosedError("the client was closed", not_run=True)

    def open_stream(self, method: str, request: Any, wait_for_ready: bool) -> Any:
        """A call without a deadline, as gRPC gives it. What reading it raises is for error_of()."""
        self._check_open()
        return getattr(next(self._stubs or self._connect()), method)(request, metadata=self._metadata or None,
                                                                     wait_for_ready=wait_for_ready or None)

    async def _call(self, call: Call) -> Any:
        self._check_open()
        method = getattr(next(self._stubs or self._connect()), call.method)
        metadata = self._metadata + call.metadata
        try:
            answer = method(call.request, timeout=max(call.deadline - time.monotonic(), 0), metadata=metadata or None,
                            wait_for_ready=call.wait_for_ready or None)
            if call.take is None:
                return await answer
            async for message in answer:
                call.take(message)
            return None
        except (grpc.RpcError, asyncio.CancelledError) as error:
            raise self.error_of(error, call.method) from None

    def error_of(self, error: BaseException, method: str) -> BaseException:
        """The error of this client for one of gRPC. Another error is itself."""
        if isinstance(error, grpc.RpcError):
            return error_of_call(error.code().value[0], error.details() or "", error.trailing_metadata(), method,
                                 self._options.endpoint)
        if self.closed and isinstance(error, asyncio.CancelledError):  # gRPC ends the calls of a closed channel by it
            return errors.ClosedError("the client was closed", may_have_run=True)
        return error

    def _connect(self) -> Iterator[Any]:
        arguments = self._options.channel_arguments()
        stubs = []
        for _ in range(self._options.connections):
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(self._options.endpoint, arguments)
            else:
                channel = grpc.aio.secure_channel(self._options.endpoint, self._credentials, arguments)
            self._channels.append(channel)
            stubs.append(make_stub(channel))
        self._stubs = itertools.cycle(stubs)
        return self._stubs
