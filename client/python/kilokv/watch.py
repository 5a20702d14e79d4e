"""Watches: the durable writes of a range, in the one serial order, each once."""

from __future__ import annotations

import threading
import time
from typing import Any

import grpc

from kilokv import errors
from kilokv._core.watch import WatchCursor, end_of_stream, silence
from kilokv.connection import Connection
from kilokv.results import WatchedPart


class Watch:
    """Iterates over the parts of a watch (WatchedPart). It has no end of its own: leave the loop, or call close() from
    any thread.

    After a lost connection, a restart of the server, or a long silence, it goes on after the last part, and nothing is
    missing or comes twice. Iterating raises
      - WatchTooOldError if the server does not keep the log from there on, or the database was restored from a backup
      - UnavailableError if the server cannot be reached again in time: the next part can be asked for all the same
      - ClosedError if the client is closed
    Thread safety: one thread at a time iterates.
    """

    def __init__(self, connection: Connection, cursor: WatchCursor, idle: float) -> None:
        self._connection, self._cursor = connection, cursor
        self._silence = _Silence(idle)
        self._lock = threading.Lock()  # for _stream together with _closed
        self._stream: Any = None
        self._closed = threading.Event()

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> WatchedPart:
        self._cursor.begin()
        while not self._closed.is_set():
            try:
                return self._cursor.take(self._receive())
            except errors.Error as error:
                if self._closed.is_set():
                    break
                delay = self._cursor.delay_after(error)
            self._closed.wait(delay)
        raise StopIteration

    def close(self) -> None:
        """Ends the watch. An iteration of another thread ends, too."""
        self._closed.set()
        self._drop()

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> Any:
        """The next answer. After an error or an interrupt, the next one comes from a new stream."""
        try:
            stream = self._stream or self._open()
            with self._silence.ends(stream, self._cursor.quiet_max):
                answer = next(stream, None)
            if answer is None:
                raise end_of_stream()
            return answer
        except (grpc.RpcError, ValueError) as error:
            self._drop()
            raise self._connection.error_of(error, "Watch") from None
        except BaseException:
            self._drop()
            raise

    def _open(self) -> Any:
        with self._lock:
            if self._closed.is_set():
                raise errors.ClosedError("the watch was closed")
            self._stream = self._connection.open_stream("Watch", self._cursor.request, self._cursor.is_lost)
            return self._stream

    def _drop(self) -> None:
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()


class _Silence:
    """Ends a stream that brings nothing for too long. gRPC has no time limit for one answer. The thread for it lives
    while the program waits for an answer, and for at most `seconds` after that."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._stream: Any = None  # that the program waits for
        self._until = 0.0         # when it has been silent for too long; without a stream, when the thread ends
        self._is_running = False
        self._is_silent = False

    def ends(self, stream: Any, seconds: float) -> "_Silence":
        """For the block of a `with`, which waits for an answer for at most so many seconds."""
        with self._changed:
            is_sooner = time.monotonic() + seconds < self._until
            self._stream, self._until, self._is_silent = stream, time.monotonic() + seconds, False
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="kilokv-watch", daemon=True).start()
            elif is_sooner:
                self._changed.notify()
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stream, self._until = None, time.monotonic() + self._seconds
            if self._is_silent:
                raise silence() from None

    def _run(self) -> None:
        with self._changed:
            while (left := self._until - time.monotonic()) > 0:
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            self._is_running = False
            if self._stream is not None:
                self._is_silent = True
                self._stream.cancel()
