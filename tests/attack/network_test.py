#!/usr/bin/env python3
"""Attacks by connections: many silent ones, and headers that want to forge lines of the server's log."""

import argparse
import pathlib
import resource
import socket
import ssl
import sys
import time

import http2

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from certificates import SERVER, Authority  # noqa: E402
from programs import SLOWER, Server, temporary_folder, until  # noqa: E402

ATTACKER = "127.0.0.2"  # another address of this machine than that of the light client


def is_closed(connection):
    """Whether the server has closed it. What it sent before is read."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def open_many(endpoint, count, **how):
    connections = []
    for _ in range(count):
        try:
            connections.append(http2.connect(endpoint, **how))
        except ConnectionError:
            pass  # refused after the accept
    return connections


class FewDescriptors(Server):
    """A kilokvd that may have 1,024 descriptors, and starts with a limit of 256."""

    def start(self, wait=True):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        # The hard limit goes down only in the child: prlimit of util-linux sets it there.
        self._tracer = ("prlimit", "--nofile=256:1024")
        super().start(wait)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


def count_descriptors(server):
    descriptors = len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))
    assert descriptors < 600, f"{descriptors} descriptors are open"
    return descriptors


def work_until_closed(server, held, began):
    """Others connect and work, and storage opens files, while the server closes what is held. Returns the seconds."""
    for _ in range(20):
        server.client("add", "key", "1")
    assert server.value("key") == 21
    until(lambda: all(is_closed(connection) for connection in held), "the end of all held connections", 30)
    for connection in held:
        connection.close()
    return time.monotonic() - began


def attack_silent_connections(count):
    """Row 3: silent connections, more than the server has descriptors; some say a part of HTTP/2."""
    with temporary_folder() as folder, FewDescriptors(folder, "--handshake-timeout", "3s") as server:
        server.client("put", "key", "1")
        began = time.monotonic()
        held = open_many(server.endpoint, count // 2, source=ATTACKER, preface=False)
        for connection in open_many(server.endpoint, count - count // 2, source=ATTACKER, preface=False):
            try:
                connection.sendall(http2.PREFACE[:10])
            except OSError:
                pass
            held.append(connection)
        descriptors = count_descriptors(server)
        seconds = work_until_closed(server, held, began)
        server.kill()
        server.start()
        assert server.value("key") == 21
        log = server.log.read_text()
        refused = [line for line in log.splitlines() if "kilokvd refused or cut off connections" in line]
        assert refused and f"last_address={ATTACKER}" in refused[0], log
        assert "--connections-per-address-max" in refused[0], refused
    print(f"silent connections: {len(held)} took at most {descriptors} of 1,024 descriptors, and all were closed after "
          f"{seconds:.1f} s")


def client_hello():
    """The first message of a TLS handshake."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class TlsServer(FewDescriptors):
    """A kilokvd with a certificate, and few descriptors. Its client trusts it."""

    def __init__(self, folder, *flags):
        self._authority = Authority(folder, "Test CA")
        pair = self._authority.issue("server", SERVER)
        super().__init__(folder, *pair.flags(), *flags)

    def command(self, program, *arguments):
        return [*super().command(program, *arguments), "--tls-ca", str(self._authority.certificate)]


def attack_unfinished_handshakes(count):
    """Connections to a port with TLS that say nothing, stop in the middle of a handshake, or do not speak TLS."""
    hello = client_hello()
    begins = [b"", hello[:5], hello[:len(hello) // 2], hello, http2.PREFACE, b"\x16\x03\x01\xff\xff"]
    with temporary_folder() as folder, TlsServer(folder, "--handshake-timeout", "3s") as server:
        server.client("put", "key", "1")
        began = time.monotonic()
        held = open_many(server.endpoint, count, source=ATTACKER, preface=False)
        for number, connection in enumerate(held):
            try:
                connection.sendall(begins[number % len(begins)])
            except OSError:
                pass
        descriptors = count_descriptors(server)
        answered = sum(1 for connection in held[3::len(begins)] if begins_with_tls(connection))
        assert answered > 0, "no handshake got an answer, so none stopped in the middle"
        seconds = work_until_closed(server, held, began)
        log = server.log.read_text()
        refused = [line for line in log.splitlines() if "kilokvd refused or cut off connections" in line]
        assert refused and "--connections-per-address-max" in refused[0], log
        said = [line for line in log.splitlines() if "gRPC says" in line]
        assert len(said) < 5 * (seconds + 2), f"{len(said)} lines of gRPC in {seconds:.1f} s"
    print(f"unfinished handshakes: {len(held)} took at most {descriptors} of 1,024 descriptors, and all were closed "
          f"after {seconds:.1f} s")


def begins_with_tls(connection):
    """Whether the server has begun its part of a handshake."""
    connection.settimeout(2)
    try:
        return connection.recv(1) == b"\x16"
    except OSError:
        return False


def attack_half_open(server_flags=()):
    """Clients that end their side, or read nothing, leave nothing behind."""
    with temporary_folder() as folder, Server(folder, *server_flags) as server:
        server.client("put", "key", "1")
        before = len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))
        held = open_many(server.endpoint, 50)
        for connection in held:
            connection.shutdown(socket.SHUT_WR)
        until(lambda: all(is_closed(connection) for connection in held), "the end of half-closed connections", 30)
        until(lambda: len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir())) <= before, "their descriptors", 30)
        reset = open_many(server.endpoint, 50)
        for connection in reset:  # ends with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        until(lambda: len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir())) <= before, "their descriptors", 30)
    print("half-open connections: all descriptors came back")


def attack_log():
    """Row 7: newlines in the values of headers."""
    forged = "2026-01-01T00:00:00.000000Z critical kilokvd fatal"
    with temporary_folder() as folder, Server(folder) as server:
        began = time.monotonic()
        size = server.log.stat().st_size
        sent = 0
        while time.monotonic() - began < 3:
            try:
                with http2.connect(server.endpoint, source=ATTACKER) as connection:
                    block = http2.call_headers("Get", ("grpc-timeout", f"1\n{forged}\r\n{forged}" + "x" * 3000))
                    for stream in range(1, 100, 2):
                        connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, block))
                        sent += 1
            except ConnectionError:
                pass
        server.client("--timeout", "60s", "put", "key", "1")
        lines = server.log.read_text().splitlines()
        assert not any(line.startswith(forged) for line in lines), "a forged line"
        quoting = [line for line in lines if "gRPC says" in line]
        assert quoting, "gRPC's log is lost"
        grown = server.log.stat().st_size - size
        assert grown < 40000 * SLOWER, f"{grown} bytes of log"
    print(f"log: {sent} headers with forged lines made {len(quoting)} lines, {grown} bytes")


def main():
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)  # this program holds all connections
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--silent", type=int, default=1200, help="connections that say nothing")
    options = parser.parse_args()
    attack_silent_connections(options.silent)
    attack_unfinished_handshakes(options.silent)
    attack_half_open()
    attack_log()


if __name__ == "__main__":
    main()
