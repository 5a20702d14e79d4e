"""The connections of a synchronous client, and how it performs the steps of its calls."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any, List, Optional, TypeVar

import grpc

from kilokv import errors
from kilokv._core.failures import error_of_call
from kilokv._core.steps import Call, Pause, Steps
from kilokv._core.stub import make_stub
from kilokv.options import ClientOptions

T = TypeVar("T")


def channel_credentials(options: ClientOptions) -> Optional[grpc.ChannelCredentials]:
    """None: without TLS."""
    if options.tls is None:
        return None
    authorities, key, certificate = options.tls.read()
    return grpc.ssl_channel_credentials(authorities, key, certificate)


class Connection:
    """Thread safety: any thread."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        credentials = channel_credentials(options)
        arguments = options.channel_arguments()
        self._channels: List[grpc.Channel] = [
            grpc.insecure_channel(options.endpoint, arguments) if credentials is None else
            grpc.secure_channel(options.endpoint, credentials, arguments) for _ in range(options.connections)]
        self._stubs = itertools.cycle([make_stub(channel) for channel in self._channels])
        self._metadata = options.metadata
        self.closed = threading.Event()

    def close(self) -> None:
        """Ends all calls."""
        self.closed.set()
        for channel in self._channels:
            channel.close()

    def drive(self, steps: Steps[T], stop: Optional[threading.Event] = None) -> T:
        """Performs the steps, and returns what they return. `stop` ends their pauses by a ClosedError."""
        stop = stop or self.closed
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._perform(step, stop)
                except errors.Error as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            steps.close()

    def _perform(self, step: object, stop: threading.Event) -> Any:
        if isinstance(step, Call):
            return self._call(step)
        assert isinstance(step, Pause)
        if stop.wait(step.seconds):
            raise errors.ClosedError("the client was closed")
        return None

    def open_stream(self, method: str, request: Any, wait_for_ready: bool) -> Any:
        """A call without a deadline, as gRPC gives it: an iterator over its answers that can be cancelled. What it
        raises is for error_of()."""
        return getattr(next(self._stubs), method)(request, metadata=self._metadata or None,
                                                  wait_for_ready=wait_for_ready or None)

    def _call(self, call: Call) -> Any:
        method = getattr(next(self._stubs), call.method)
        metadata = self._metadata + call.metadata
        try:
            answer = method(call.request, timeout=max(call.deadline - time.monotonic(), 0), metadata=metadata or None,
                            wait_for_ready=call.wait_for_ready or None)
            if call.take is None:
                return answer
            for message in answer:
                call.take(message)
            return None
        except (grpc.RpcError, ValueError) as error:
            raise self.error_of(error, call.method) from None

    def error_of(self, error: Exception, method: str) -> Exception:
        """The error of this client for one of gRPC. Another error is itself."""
        is_of_grpc = isinstance(error, grpc.RpcError)
        if self.closed.is_set():  # then gRPC raises ValueError for a new call
            return errors.ClosedError("the client was closed", may_have_run=is_of_grpc, not_run=not is_of_grpc)
        if not isinstance(error, grpc.RpcError):
            return error
        return error_of_call(error.code().value[0], error.details() or "", error.trailing_metadata(), method,
                             self._options.endpoint)
