#!/usr/bin/env python3
"""The first call to an endpoint without a server: it ends soon, and says what is wrong with the endpoint."""

import asyncio
import contextlib
import socket
import threading
import time
import unittest

import kilokv
import kilokv.aio

HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def listening(answer=None):
    """Yields the endpoint of a program that answers each connection with these bytes, and closes it. None: it says
    nothing, and closes nothing."""
    connections = []

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connections.append(connection)
                if answer is not None:
                    connection.sendall(answer)
                    connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in connections:
        connection.close()


class FirstCallTest(unittest.TestCase):
    def first_calls(self, endpoint, **options):
        """(seconds, error) of the first call of each client: a read, a write and a watch."""
        async def of_asyncio():
            async with kilokv.aio.Client(endpoint, **options) as db:
                await db.get("a")

        def of_client(call):
            with kilokv.Client(endpoint, **options) as db:
                call(db)

        for call in (lambda: of_client(lambda db: db.get("a")), lambda: of_client(lambda db: db.put("a", 1)),
                     lambda: of_client(lambda db: next(db.watch())), lambda: asyncio.run(of_asyncio())):
            began = time.monotonic()
            with self.assertRaises(kilokv.UnavailableError) as caught:
                call()
            yield time.monotonic() - began, caught.exception

    def test_a_wrong_endpoint_is_an_error_at_once(self):
        with listening(HTTP) as web:
            for endpoint, words in ((web, f"something at {web} answers, but does not speak gRPC"),
                                    ("no-such-host.invalid:7070", "the host of no-such-host.invalid:7070 cannot be"),
                                    ("127.0.0.1:1", "nothing listens at 127.0.0.1:1: the connection is refused")):
                for seconds, error in self.first_calls(endpoint):
                    self.assertLess(seconds, 5, words)
                    self.assertIn(words, error.message)

    def test_an_endpoint_that_does_not_answer_ends_within_the_time_to_connect(self):
        with listening() as silent, listening(b"") as closing:
            for endpoint, words in ((silent, f"cannot connect to {silent}: the host is wrong"),
                                    (closing, f"the connection to {closing} was closed")):
                for seconds, error in self.first_calls(endpoint, connect_timeout=0.5):
                    self.assertLess(seconds, 8, words)
                    self.assertIn(words, error.message)


if __name__ == "__main__":
    unittest.main()
