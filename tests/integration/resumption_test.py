#!/usr/bin/env python3
"""A client that resumes a TLS session shows its certificate, but not that of its middle authority."""

import pathlib
import socket
import ssl
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
sys.path.insert(0, str(ROOT / "tests" / "attack"))
import http2  # noqa: E402
from certificates import CLIENT, SERVER, Authority  # noqa: E402
from programs import Server, temporary_folder  # noqa: E402


def exactly(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            return data
        data += part
    return data


def is_answered(connection):
    """Calls Status. A call that is refused has no message in its answer."""
    connection.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0) +
                       http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.call_headers("Status")) +
                       http2.frame(http2.DATA, http2.END_STREAM, 1, http2.message(b"")))
    has_message = False
    while True:
        head = exactly(connection, 9)
        if len(head) < 9:
            raise AssertionError("the connection ended before the answer")
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
        exactly(connection, int.from_bytes(head[:3], "big"))
        has_message |= kind == http2.DATA
        if stream == 1 and (kind == http2.RST_STREAM or flags & http2.END_STREAM and kind <= http2.HEADERS):
            return has_message


class ResumptionTest(unittest.TestCase):
    def test_a_middle_authority_is_known_again(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        authority = Authority(folder.name, "Test CA")
        middle = Authority(folder.name, "Middle CA", issuer=authority)
        client = middle.issue("carol", CLIENT)
        server = Server(folder.name, *authority.issue("server", SERVER).flags(), "--tls-client-ca",
                        str(authority.certificate))
        self.addCleanup(server.kill)
        server.start()
        host, port = server.endpoint.rsplit(":", 1)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=authority.certificate)
            context.set_alpn_protocols(["h2"])
            context.minimum_version = context.maximum_version = version
            context.load_cert_chain(client.certificate, client.key)
            session = None
            for round_ in range(3):
                with self.subTest(version=version, round=round_):
                    with context.wrap_socket(socket.create_connection((host, int(port)), timeout=30),
                                             server_hostname=host, session=session) as connection:
                        self.assertTrue(is_answered(connection), f"resumed: {connection.session_reused}")
                        session = connection.session
                        print(f"{version.name}, connection {round_}: resumed {connection.session_reused}")


if __name__ == "__main__":
    unittest.main()
