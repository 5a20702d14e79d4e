#!/usr/bin/env python3
"""Attacks by connections: many silent ones from one address and from many (`silent`), large metadata, and headers that want
to forge lines of the server's log (`forged_log`). And connections that do no harm: those without a call are closed in time,
and those that only send pings now and then stay."""

import argparse
import pathlib
import resource
import select
import socket
import ssl
import subprocess
import sys
import time

import http2
from greedy_test import add_one, transaction
from light_client import LightClient

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
    except http2.WOULD_BLOCK:
        return False
    except OSError:
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
    """The attack `silent`: silent connections, more than the server has descriptors; some say a part of HTTP/2."""
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
    print(f"silent: {len(held)} connections took at most {descriptors} of 1,024 descriptors, and all were closed after "
          f"{seconds:.1f} s")


def attack_from_many_addresses():
    """The attack `silent` from several addresses: together they reach the limit of all connections, and none reaches its own
    limit."""
    flags = ("--connections-max", "240", "--connections-per-address-max", "100", "--handshake-timeout", "3s")
    with temporary_folder() as folder, FewDescriptors(folder, *flags) as server:
        server.client("put", "key", "1")
        light = LightClient(server)
        light.add()
        began = time.monotonic()
        held = []
        for number in range(480):
            held += open_many(server.endpoint, 1, source=f"127.0.0.{2 + number % 8}", preface=False)
        descriptors = count_descriptors(server)
        is_full = not server_answers(server)
        light.add()  # who is connected goes on
        waited = time.monotonic() - began
        open_at_once = sum(not is_closed(connection) for connection in held)
        until(lambda: server_answers(server), "a connection of another client", 30)
        seconds = work_until_closed(server, held, began)
        light.close()
        refused = [line for line in server.log.read_text().splitlines() if "kilokvd refused or cut off connections" in line]
        assert refused and "240 connections are open (--connections-max)" in refused[0], refused
        assert "--connections-per-address-max" not in refused[0], refused
        assert 200 <= open_at_once < 240 or waited > 3, f"{open_at_once} of 240 connections were open at once"
        assert is_full or waited > 3, "another client got a connection although all were taken"
    print(f"silent, from 8 addresses: {open_at_once} of {len(held)} connections were open at once (at most 240), took at most "
          f"{descriptors} of 1,024 descriptors, and all were closed after {seconds:.1f} s; a client that was there before went "
          "on")


def server_answers(server):
    run = subprocess.run(server.command("kilokv", "--timeout", "1s", "get", "key"), capture_output=True, check=False,
                         timeout=60 * SLOWER)
    return run.returncode == 0


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


def close_idle():
    """A connection without a call is closed after --connection-idle-max. Those with calls stay."""
    with temporary_folder() as folder, Server(folder, "--connection-idle-max", "1s") as server:
        light = LightClient(server)
        idle, busy = http2.Caller(server.endpoint, ATTACKER), http2.Caller(server.endpoint, ATTACKER)
        for caller in (idle, busy):
            finish_call(caller)
        began = time.monotonic()
        closed_after = None
        while time.monotonic() < began + 4 * SLOWER:
            finish_call(busy)  # raises if its connection is closed
            light.add()
            if closed_after is None and is_closed(idle.socket):
                closed_after = time.monotonic() - began
            time.sleep(0.05)
        assert closed_after is not None, "the connection without a call is still open"
        assert closed_after >= 0.9, f"it was closed after {closed_after:.2f} s"
        busy.close()
        light.close()
    print(f"idle connections: one was closed after {closed_after:.1f} s, and two with calls stayed")


def finish_call(caller, payload=http2.bytes_field(2, transaction(add_one(b"sum")))):
    """Makes a call, and waits for its end."""
    caller.call("Execute", payload)
    wait_for_calls(caller)


def wait_for_calls(caller):
    end = time.monotonic() + 30 * SLOWER
    while caller.open:
        assert time.monotonic() < end, "a call without an end"
        select.select([caller], [caller] if caller.wants_to_write() else [], [], 0.05)
        caller.read()


class LargeCaller(http2.Caller):
    """Its headers may need more than one frame."""

    def call_with(self, metadata_bytes, payload):
        self._stream += 2
        self.open.add(self._stream)
        block = http2.call_headers("Execute", ("x-large", "y" * metadata_bytes))
        parts = [block[at:at + 16384] for at in range(0, len(block), 16384)]
        for number, part in enumerate(parts):
            flags = http2.END_HEADERS if number + 1 == len(parts) else 0
            self._out += http2.frame(http2.CONTINUATION if number else http2.HEADERS, flags, self._stream, part)
        self._out += http2.frame(http2.DATA, http2.END_STREAM, self._stream, http2.message(payload))
        self.write()


def attack_metadata():
    """Calls with 20 KiB of metadata; the limit is 8 KiB. gRPC may close their connection. Others go on."""
    with temporary_folder() as folder, Server(folder) as server:
        light = LightClient(server)
        adds = 0
        for metadata_bytes in (1000, 20 << 10, 12 << 10, 20 << 10):
            is_allowed = metadata_bytes < 16 << 10
            caller = LargeCaller(server.endpoint, ATTACKER)
            caller.call_with(metadata_bytes, http2.bytes_field(2, transaction(add_one(b"sum"))))
            try:
                wait_for_calls(caller)
            except ConnectionError:
                assert not is_allowed, f"{metadata_bytes} bytes ended the connection"
            caller.close()
            light.add()
            # gRPC may run a call without the metadata that is too large.
            adds = server.value("sum") if not is_allowed else adds + 1
            assert server.value("sum") == adds, f"the sum is {server.value('sum')} after {metadata_bytes} bytes"
        light.close()
    print("metadata: calls with 1,000 bytes and 12 KiB ran; after those with 20 KiB, others went on")


def keep_alive(seconds, interval=10):
    """A client with a usual keepalive, which does nothing for longer than a minute, keeps its connection."""
    with temporary_folder() as folder, Server(folder) as server:
        caller = PingingCaller(server.endpoint, ATTACKER)
        finish_call(caller)
        began, pings = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            if time.monotonic() >= began + pings * interval:
                caller.ping()
                pings += 1
            select.select([caller], [], [], 0.1)
            caller.read()  # raises if the server sends the client away
        finish_call(caller)
        assert server.value("sum") == 2 and caller.answered == pings, f"{caller.answered} of {pings} pings were answered"
        caller.close()
    print(f"keepalive: {pings} pings in {seconds} s were answered, and the connection stayed")


class PingingCaller(http2.Caller):
    """`answered`: pings."""

    answered = 0

    def ping(self):
        self._out += http2.frame(http2.PING, 0, 0, bytes(8))
        self.write()

    def _take(self, kind, flags, stream, payload):
        self.answered += kind == http2.PING and flags & http2.ACK
        super()._take(kind, flags, stream, payload)


def forging_headers(forged):
    """Headers whose values would be lines of their own in a log."""
    text = f"1\n{forged}\r\n{forged}" + "x" * 3000
    return [(name, text) for name in ("grpc-timeout", "authorization", "user-agent", "grpc-encoding", "x-any")]


NOT_UTF8 = http2.bytes_field(1, b"\xff")  # the name in a health check, for which Protobuf writes a line of its own


def send_texts_that_are_not_utf8(endpoint, authority):
    """100 health checks, each with such a name. Returns when all are answered."""
    caller = http2.Caller(endpoint, authority=authority)
    for _ in range(100):
        caller.call("/grpc.health.v1.Health/Check", NOT_UTF8)
    wait_for_calls(caller)
    caller.close()


def attack_log(seconds=3, server_class=Server):
    """The attack `forged_log`: newlines in the values of headers, and texts that are not UTF-8. `server_class`: GuardedServer
    for somebody without a login."""
    forged = "2026-01-01T00:00:00.000000Z critical kilokvd fatal"
    with temporary_folder() as folder, server_class(folder) as server:
        authority = getattr(server, "authority", None)
        send_texts_that_are_not_utf8(server.endpoint, authority)
        blocks = [http2.call_headers("Get", header) for header in forging_headers(forged)]
        began = time.monotonic()
        size = server.log.stat().st_size
        sent = 0
        while time.monotonic() - began < seconds:
            try:
                with http2.connect(server.endpoint, source=ATTACKER, authority=authority) as connection:
                    for stream in range(1, 100, 2):
                        block = blocks[sent % len(blocks)]
                        connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, stream, block))
                        sent += 1
            except OSError:
                pass
        server.client("--timeout", "60s", "put", "key", "1")
        lines = server.log.read_bytes().decode(errors="replace").splitlines()  # also at \r, as a terminal would show them
        assert sent > 100, f"only {sent} headers were sent"
        assert not any(line.startswith(forged) for line in lines), "a forged line"
        quoting = [line for line in lines if "gRPC says" in line]
        assert quoting, "gRPC's log is lost"
        assert any("Protobuf says" in line for line in lines), "Protobuf's log is lost"
        assert not any(line.startswith("[libprotobuf") for line in lines), "a line of Protobuf that nobody bounds"
        grown = server.log.stat().st_size - size
        most = 13400 * max(seconds, 3) * SLOWER
        assert grown < most, f"{grown} bytes of log in {seconds} s, and at most {most:.0f} are wanted"
    print(f"forged_log: {sent} headers with forged lines made {len(quoting)} lines, {grown} bytes")


def raise_limit():
    """This program holds all connections."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main():
    raise_limit()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--silent", type=int, default=1200, help="connections that say nothing")
    parser.add_argument("--idle-seconds", type=int, help="only: keep a connection without calls for so long")
    parser.add_argument("--ping-seconds", type=float, default=10, help="between two pings of that connection")
    options = parser.parse_args()
    if options.idle_seconds:
        keep_alive(options.idle_seconds, options.ping_seconds)
        return
    attack_silent_connections(options.silent)
    attack_unfinished_handshakes(options.silent)
    attack_from_many_addresses()
    attack_half_open()
    close_idle()
    attack_metadata()
    attack_log()


if __name__ == "__main__":
    main()
