#!/usr/bin/env python3
"""The pages over HTTP of the real kilokvd: states, rights, TLS, what is refused, and clients that mean harm."""

import collections
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "crash"), str(ROOT / "tests" / "attack")]
from certificates import CLIENT, SERVER, Authority  # noqa: E402
from guarded_server import GuardedServer  # noqa: E402
from programs import BIN, SLOWER, Server, add, temporary_folder, until, wait_for  # noqa: E402

Answer = collections.namedtuple("Answer", "code type text")
PAGES = ("/livez", "/readyz", "/metrics", "/status")
GET = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


def get(endpoint, path, method="GET", headers=None, context=None, source=None, body=None):
    host, port = endpoint.rsplit(":", 1)
    more = {"timeout": 30, "source_address": (source, 0) if source else None}
    if context is None:
        connection = http.client.HTTPConnection(host, int(port), **more)
    else:
        connection = http.client.HTTPSConnection(host, int(port), context=context, **more)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.getheader("Content-Type"), response.read().decode())
    finally:
        connection.close()


def dial(endpoint, source="127.0.0.1"):
    """A connection from this address of this machine."""
    host, port = endpoint.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0))


def value(text, name):
    """The one sample of the text with this name and these labels."""
    found = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert len(found) == 1, f"{name}: {found}"
    return float(found[0])


def names(text):
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


class HttpTest(unittest.TestCase):
    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def serve(self, *flags, wait=True, environment=None):
        server = Server(self.folder, *flags, environment=environment)
        self.addCleanup(server.kill)
        server.start(wait)
        return server


class Pages(HttpTest):
    def test_the_pages_and_what_they_hold(self):
        server = self.serve()
        pages = server.pages()
        self.assertEqual(get(pages, "/livez"), (200, "text/plain; charset=utf-8", "ok\n"))
        self.assertEqual(get(pages, "/readyz"), (200, "text/plain; charset=utf-8", "ready\n"))
        server.client("put", "key", "1")
        metrics = get(pages, "/metrics")
        self.assertEqual(metrics[:2], (200, "text/plain; version=0.0.4; charset=utf-8"))
        self.assertEqual(value(metrics.text, 'kilokv_transactions_total{outcome="COMMITTED"}'), 1)
        self.assertEqual(value(metrics.text, 'kilokv_state{state="ready"}'), 1)
        until(lambda: value(get(pages, "/metrics").text, "kilokv_records") == 1, "the key is counted")
        self.assertEqual(value(metrics.text, "kilokv_recovery_seconds_count"), 1)
        self.assertEqual(value(metrics.text, "kilokv_recovery_running_seconds"), 0)
        self.assertGreater(value(metrics.text, "kilokv_log_sync_seconds_count"), 0)
        counted = [f'kilokv_call_duration_seconds_count{{call="{call}",outcome="ok"}}'
                   for call in ("SessionRequest", "Execute", "ExecuteBatch")]

        def calls():
            text = get(pages, "/metrics").text
            return sum(value(text, name) for name in counted)

        until(lambda: calls() > 0, "the call is counted")  # after its answer is sent
        self.assertEqual(get(pages, "/metrics?x=y").code, 200)

    def test_the_status_is_that_of_the_command(self):
        server = self.serve()
        server.client("put", "key", "1")
        until(lambda: server.status()["records"] == 1, "the count of records, which comes ten times a second")
        status = get(server.pages(), "/status")
        self.assertEqual(status[:2], (200, "application/json"))
        shown, printed = json.loads(status.text), json.loads(server.client("--output", "json", "status"))
        self.assertEqual(set(shown), set(printed))
        self.assertEqual(set(shown["memory"]), set(printed["memory"]))
        for field in ("state", "server_version", "state_hash", "committed", "durable_batch", "strategy", "order", "device",
                      "records", "memory_limit_bytes"):
            self.assertEqual(shown[field], printed[field], field)
        self.assertLessEqual(sum(part["bound_bytes"] for part in shown["memory"].values()), shown["memory_limit_bytes"])
        self.assertGreater(shown["memory"]["http"]["bytes"], 0)
        self.assertLessEqual(shown["memory"]["http"]["bytes"], shown["memory"]["http"]["bound_bytes"])

    def test_other_methods_and_paths(self):
        server = self.serve()
        pages = server.pages()
        for path in PAGES:
            self.assertEqual(get(pages, path, "HEAD")[::2], (200, ""))
            for method in ("POST", "PUT", "DELETE", "OPTIONS"):
                self.assertEqual(get(pages, path, method).code, 405, path)
        for path in ("/metrics/", "/../status", "/kilokv.v1.KiloKV/Status"):
            answer = get(pages, path)
            self.assertEqual(answer.code, 404)
            self.assertIn("/livez, /readyz, /metrics, /status and /console/", answer.text)
        self.assertEqual(get(pages, "/").code, 302)
        self.assertEqual(get(pages, "/console/").code, 200)
        server.kill()
        pages = self.serve("--console", "off").pages()
        for path in ("/", "/console", "/console/", "/console/api/session"):
            self.assertEqual(get(pages, path).code, 404, path)

    def test_an_open_console_survives_the_end_of_the_server(self):
        """A page of the console asks on and on, while the server drains and its last checkpoint hangs."""
        server = self.serve("--drain-timeout", "2s", environment={"KILOKV_FAIL_POINTS": "core.checkpoint.before_end=hang"})
        server.client("put", "k", "1")
        pages, stop, codes = server.pages(), threading.Event(), []

        def ask():
            headers = {"Content-Type": "application/json", "Origin": f"http://{pages}"}
            while not stop.is_set():
                try:
                    codes.append(get(pages, "/console/api/call/Status", "POST", headers, body="{}").code)
                except OSError:
                    time.sleep(0.01)
                except http.client.HTTPException:
                    pass

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        time.sleep(0.5)
        os.kill(server.pid, signal.SIGTERM)
        try:
            until(lambda: 503 in codes, "an answer that the server drains")
            time.sleep(2)
            self.assertIn("503", map(str, codes[-3:]))  # it is still there, and answers
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        self.assertIn(200, codes)

    def test_what_a_client_sends_becomes_no_label(self):
        server = self.serve()
        for i in range(20):
            get(server.pages(), f"/path-{i}-of-a-client")
            server.client("put", f"key-{i}-of-a-client", "1")
        text = get(server.pages(), "/metrics").text
        self.assertNotIn("of-a-client", text)
        self.assertEqual(value(text, 'kilokv_http_requests_total{code="404"}'), 20)

    def test_the_time_of_the_start_stays(self):
        """Prometheus takes a change for a restart."""
        pages = self.serve().pages()
        name = "process_start_time_seconds"
        first = value(get(pages, "/metrics").text, name)
        self.assertAlmostEqual(first, time.time(), delta=60 * SLOWER)
        time.sleep(0.2)
        self.assertEqual(value(get(pages, "/metrics").text, name), first)

    def test_no_pages(self):
        server = self.serve("--http-listen", "off")
        self.assertNotIn("HTTP", server.log.read_text())

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
            run = subprocess.run([BIN / "kilokvd", "--data-dir", self.folder / "x", "--listen", "127.0.0.1:0", "--http-listen",
                                  endpoint], capture_output=True, text=True, timeout=60 * SLOWER, check=False)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn(f"cannot listen on {endpoint} (--http-listen)", run.stderr)

    def test_the_port_of_the_default_in_use_is_no_reason_to_end(self):
        """Two servers on one machine need no flag. If somebody has the port already, that is as good."""
        try:
            taken = socket.create_server(("127.0.0.1", 7071))
            self.addCleanup(taken.close)
        except OSError:
            pass
        environment = {name: text for name, text in os.environ.items() if name != "KILOKV_HTTP_LISTEN"}
        log = self.folder / "log"
        with open(log, "wb") as out:
            process = subprocess.Popen([BIN / "kilokvd", "--data-dir", self.folder / "x", "--listen", "127.0.0.1:0"],
                                       stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: "kilokvd ready" in log.read_text(), "ready")
        self.assertIn("kilokvd serves no pages over HTTP", log.read_text())

    def test_other_machines_reach_the_pages_only_with_tls_and_logins(self):
        command = [BIN / "kilokvd", "--data-dir", self.folder / "x", "--listen", "127.0.0.1:0", "--http-listen", "0.0.0.0:0"]
        for flags, lacks in ((), "neither TLS"), (("--login", "on"), "no TLS"):
            run = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=60 * SLOWER, check=False)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("--http-listen 0.0.0.0:0 is for other machines, and there are " + lacks, run.stderr)
        server = self.serve("--http-listen", "0.0.0.0:0", "--insecure", "on")
        pages = "127.0.0.1:" + server.pages().rsplit(":", 1)[1]
        self.assertIn("kilokvd is insecure", server.log.read_text())
        self.assertEqual(value(get(pages, "/metrics").text, "kilokv_insecure"), 1)
        self.assertTrue(json.loads(server.client("--output", "json", "status"))["insecure"])


class States(HttpTest):
    def test_recovering(self):
        server = self.serve(wait=False, environment={"KILOKV_FAIL_POINTS": "server.recovery.begin=hang"})
        pages = server.pages()
        self.assertEqual(get(pages, "/livez").code, 200)
        self.assertEqual(get(pages, "/readyz"), (503, "text/plain; charset=utf-8", "recovering\n"))
        metrics = get(pages, "/metrics")
        self.assertEqual(metrics.code, 200)
        self.assertEqual(value(metrics.text, 'kilokv_state{state="recovering"}'), 1)
        self.assertEqual(value(metrics.text, "kilokv_ready"), 0)
        before = value(metrics.text, "kilokv_recovery_running_seconds")
        self.assertGreater(value(get(pages, "/metrics").text, "kilokv_recovery_running_seconds"), before)
        self.assertNotIn("kilokv_records", names(metrics.text), "nothing is known of the data")
        self.assertEqual(json.loads(get(pages, "/status").text)["state"], "recovering")

    def test_draining_and_a_sync_that_hangs(self):
        """The end waits for the sync. The numbers stay what they were, so that nobody takes them for those of a new
        process."""
        server = self.serve("--drain-timeout", "600s", environment={"KILOKV_FAIL_POINTS": "storage.append.before_sync=hang:3"})
        pages = server.pages()
        waiting = []
        for i in range(10):
            waiting.append(subprocess.Popen(server.command("kilokv", "put", f"key{i}", "1"), stdout=subprocess.DEVNULL,
                                            stderr=subprocess.DEVNULL))
            self.addCleanup(waiting[-1].wait)
            self.addCleanup(waiting[-1].kill)
            if value(get(pages, "/metrics").text, "kilokv_log_append_running_seconds") > 0:
                break
        until(lambda: value(get(pages, "/metrics").text, "kilokv_log_append_running_seconds") > 0.5, "the sync hangs")
        batches = value(get(pages, "/metrics").text, 'kilokv_batches_total{strategy="serial",ran="serial"}')
        self.assertEqual(get(pages, "/readyz").code, 200, "it accepts requests, and answers none")
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: get(pages, "/readyz").code == 503, "draining")
        self.assertEqual(get(pages, "/readyz").text, "draining\n")
        self.assertEqual(get(pages, "/livez").code, 200)
        metrics = get(pages, "/metrics").text
        self.assertEqual(value(metrics, 'kilokv_state{state="draining"}'), 1)
        self.assertGreaterEqual(value(metrics, 'kilokv_batches_total{strategy="serial",ran="serial"}'), batches)
        self.assertGreater(value(metrics, "kilokv_durable_batch"), 0)

    def test_slow_transactions_are_counted_by_their_reason(self):
        server = self.serve("--slow-transaction", "1us")
        def slow():
            text = get(server.pages(), "/metrics").text
            return {reason: value(text, f'kilokv_slow_transactions_total{{reason="{reason}"}}')
                    for reason in ("waiting", "queued", "large_read", "execution", "sync", "answer")}
        self.assertEqual(sum(slow().values()), 0)
        server.client("put", "a", "1")
        until(lambda: sum(slow().values()) == 1, "it is counted, which may be after its answer")
        server.client("put", "a", "2")
        until(lambda: sum(slow().values()) == 2, "the second one")
        self.assertEqual(slow()["waiting"], 0)

    def test_what_waits_is_seen(self):
        server = self.serve()
        request = server.start_transactions({"guards": [wait_for("gate", 1)], "then": [add("x", 1)], "wait_timeout_ms": 60000})
        self.addCleanup(request.communicate)
        self.addCleanup(request.kill)
        until(lambda: value(get(server.pages(), "/metrics").text, "kilokv_parked_transactions") == 1, "it waits")
        metrics = get(server.pages(), "/metrics").text
        self.assertEqual(value(metrics, "kilokv_parkings_total"), 1)
        self.assertEqual(sum(value(metrics, f'kilokv_calls_in_flight{{call="{call}"}}')
                             for call in ("SessionRequest", "ExecuteBatch", "Execute")), 1)


class Rights(HttpTest):
    def token_of(self, server, name, *rights):
        file = self.folder / f"{name}.token"
        admin = ["--token-file", str(self.folder / "admin.token")]
        server.client("role", "grant", name, *rights, *admin)
        server.client("user", "set", name, "--role", name, *admin)
        server.client("token", "create", name, "--file", str(file), *admin)
        return {"Authorization": f"Bearer {file.read_text().strip()}"}

    def test_only_the_probes_need_no_login(self):
        server = self.serve("--login", "on", "--bootstrap-file", str(self.folder / "admin.token"))
        pages = server.pages()
        watcher, teller = self.token_of(server, "watcher", "--metrics"), self.token_of(server, "teller", "--read", "")
        for path in ("/livez", "/readyz"):
            self.assertEqual(get(pages, path).code, 200)
        for path in ("/metrics", "/status"):
            self.assertEqual(get(pages, path, headers=watcher).code, 200)
            refused = get(pages, path)
            self.assertEqual((refused.code, refused.text),
                             (401, "this server needs a login: a token, or a client certificate\n"))
            denied = get(pages, path, headers=teller)
            self.assertEqual(denied.code, 403)
            self.assertIn(f'{path}: user "teller" has no metrics right', denied.text)
            wrong = {"Authorization": "Bearer kilokv_" + "0" * 16 + "_" + "1" * 64}
            self.assertEqual(get(pages, path, headers=wrong)[::2], (401, "the token is unknown, or was removed\n"))
            self.assertEqual(get(pages, path, headers={"Authorization": "Basic YTpi"}).code, 401)
        server.client("user", "remove", "watcher", "--token-file", str(self.folder / "admin.token"))
        self.assertEqual(get(pages, "/metrics", headers=watcher).code, 401, "after a revoke is answered")
        until(lambda: "kilokvd refused logins" in server.log.read_text(), "a line about refused logins")
        text = server.log.read_text()
        self.assertNotIn("1" * 64, text)
        self.assertNotIn(watcher["Authorization"].split("_")[2], text)

    def test_nobody_gets_in_while_the_rights_are_unknown(self):
        """Otherwise a removed user could read the metrics of a server that starts."""
        environment = {"KILOKV_FAIL_POINTS": "server.recovery.begin=hang"}
        server = self.serve("--login", "on", wait=False, environment=environment)
        for path in ("/metrics", "/status"):
            self.assertEqual(get(server.pages(), path)[::2], (503, "recovering\n"))
        self.assertEqual(get(server.pages(), "/readyz")[::2], (503, "recovering\n"))
        self.assertEqual(get(server.pages(), "/livez").code, 200)


class Tls(HttpTest):
    @classmethod
    def setUpClass(cls):
        folder = temporary_folder()
        cls.addClassCleanup(folder.cleanup)
        cls.made = pathlib.Path(folder.name)
        cls.ca, cls.other = Authority(cls.made, "Test CA"), Authority(cls.made, "Other CA")
        cls.server_pair, cls.second = cls.ca.issue("server", SERVER), cls.ca.issue("second", SERVER)
        cls.client, cls.stranger = cls.ca.issue("watcher", CLIENT), cls.other.issue("mallory", CLIENT)

    def context(self, pair=None):
        context = ssl.create_default_context(cafile=str(self.ca.certificate))
        if pair is not None:
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def test_only_tls_reaches_the_pages(self):
        pages = self.serve(*self.server_pair.flags()).pages()
        self.assertEqual(get(pages, "/readyz", context=self.context()).code, 200)
        metrics = get(pages, "/metrics", context=self.context())
        self.assertEqual(metrics.code, 200)
        expiry = value(metrics.text, "kilokv_tls_certificate_expiry_timestamp_seconds")
        self.assertAlmostEqual(expiry - time.time(), 365 * 86400, delta=2 * 86400)
        with dial(pages) as plain:
            plain.sendall(GET)
            self.assertNotIn(b"HTTP", plain.recv(1000))
        old = self.context()
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises(ssl.SSLError):
            get(pages, "/livez", context=old)

    def test_new_files_are_used_without_a_restart(self):
        pair = self.folder / "pair.pem", self.folder / "pair.key"
        for file, source in zip(pair, (self.server_pair.certificate, self.server_pair.key)):
            file.write_bytes(source.read_bytes())
            file.chmod(0o600)
        pages = self.serve("--tls-cert", str(pair[0]), "--tls-key", str(pair[1])).pages()

        def name():
            host, port = pages.rsplit(":", 1)
            with self.context().wrap_socket(socket.create_connection((host, int(port))), server_hostname="127.0.0.1") as link:
                return dict(part[0] for part in link.getpeercert()["subject"])["commonName"]

        self.assertEqual(name(), "server")
        for file, source in zip(pair, (self.second.certificate, self.second.key)):
            file.write_bytes(source.read_bytes())
        until(lambda: name() == "second", "the new certificate")
        self.assertEqual(get(pages, "/livez", context=self.context()).code, 200)

    def test_where_clients_need_certificates_the_probes_do_not(self):
        server = self.serve(*self.server_pair.flags(), "--tls-client-ca", str(self.ca.certificate))
        pages = server.pages()
        for path in ("/livez", "/readyz"):
            self.assertEqual(get(pages, path, context=self.context()).code, 200)
        for path in ("/metrics", "/status"):
            self.assertEqual(get(pages, path, context=self.context(self.client)).code, 200)
            without = get(pages, path, context=self.context())
            self.assertEqual(without.code, 401)
            self.assertIn("the client has shown no certificate", without.text)
            stranger = get(pages, path, context=self.context(self.stranger))
            self.assertEqual(stranger.code, 401)
            self.assertIn('its issuer "CN=Other CA" is not one of the authorities', stranger.text)

    def test_a_certificate_logs_in(self):
        server = GuardedServer(self.folder, "--tls-client-ca", str(self.ca.certificate))
        self.addCleanup(server.kill)
        server.start()
        admin = [*server.command("kilokv"), *self.client.flags()]

        def as_admin(*words):
            run = subprocess.run([*admin, *words], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(run.returncode, 0, run.stderr)

        context = ssl.create_default_context(cafile=server.authority)
        context.load_cert_chain(self.client.certificate, self.client.key)
        refused = get(server.pages(), "/metrics", context=context)
        self.assertEqual((refused.code, refused.text), (401, 'no user has the name of the client certificate, "watcher"\n'))
        as_admin("role", "grant", "monitor", "--metrics")
        as_admin("user", "set", "carol", "--role", "monitor", "--certificate", "watcher")
        self.assertEqual(get(server.pages(), "/metrics", context=context).code, 200)
        token = {"Authorization": f"Bearer {server.token_file.read_text().strip()}"}
        self.assertEqual(get(server.pages(), "/status", headers=token, context=context).code, 200)
        as_admin("role", "revoke", "monitor", "--metrics")
        self.assertEqual(get(server.pages(), "/metrics", context=context).code, 403)


class Harm(HttpTest):
    """Clients that hold places, send too much, or ask too often. Others get their pages meanwhile."""

    FLAGS = ("--http-connections-max", "16", "--handshake-timeout", "2s", "--answer-timeout", "2s")

    def watch(self, pages, seconds, source="127.0.0.9"):
        """Asks from an address of its own, one after the other. Returns how long each answer took."""
        took, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            self.assertEqual(get(pages, "/readyz", source=source).code, 200)
            took.append(time.monotonic() - began)
            time.sleep(0.02)
        return took

    def test_long_headers(self):
        pages = self.serve(*self.FLAGS).pages()
        for text in (b"GET /livez HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n", b"GET /" + b"x" * 20000,
                     b"GET /livez HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n"):
            with dial(pages) as connection:
                connection.sendall(text)
                self.assertTrue(connection.recv(1000).startswith(b"HTTP/1.1 431 "))
        self.assertEqual(get(pages, "/livez").code, 200)

    def test_slow_and_silent_clients(self):
        server = self.serve(*self.FLAGS)
        pages = server.pages()
        slow = [dial(pages, f"127.0.0.{2 + i % 3}") for i in range(60)]
        stop = threading.Event()

        def drip():
            for i in range(len(GET)):
                if stop.wait(0.1):
                    return
                for connection in slow[::2]:
                    try:
                        connection.send(GET[i:i + 1])
                    except OSError:
                        pass  # it was closed

        thread = threading.Thread(target=drip)
        thread.start()
        took = self.watch(pages, 4 * SLOWER)
        metrics = get(pages, "/metrics", source="127.0.0.9").text
        stop.set()
        thread.join()
        self.assertLess(sorted(took)[len(took) // 2], 0.2 * SLOWER)
        self.assertLessEqual(value(metrics, "kilokv_http_connections"), 16)
        for connection in slow:
            connection.settimeout(30)
            self.assertEqual(self.rest(connection), b"", "its time is over, or its place is taken")
            connection.close()
        until(lambda: value(get(pages, "/metrics").text, "kilokv_http_connections") == 1, "they are gone")

    @staticmethod
    def rest(connection):
        try:
            return connection.recv(1)
        except ConnectionError:
            return b""

    def test_very_many_connections(self):
        server = self.serve(*self.FLAGS)
        pages = server.pages()
        stop, opened = threading.Event(), [0]

        def open_many(source):
            kept = collections.deque(maxlen=200)
            while not stop.is_set():
                try:
                    kept.append(dial(pages, source))
                    opened[0] += 1
                except OSError:
                    time.sleep(0.01)
                if len(kept) == kept.maxlen:
                    kept.popleft().close()
            for connection in kept:
                connection.close()

        threads = [threading.Thread(target=open_many, args=(f"127.0.0.{2 + i}",)) for i in range(2)]
        for thread in threads:
            thread.start()
        self.addCleanup(lambda: [thread.join() for thread in threads])
        self.addCleanup(stop.set)
        took = self.watch(pages, 3 * SLOWER)
        # gRPC has places of its own.
        for i in range(5):
            server.client("put", f"key{i}", "1")
        metrics = get(pages, "/metrics", source="127.0.0.9").text
        stop.set()
        self.assertGreater(opened[0], 500)
        self.assertLess(sorted(took)[len(took) // 2], 0.2 * SLOWER)
        self.assertLessEqual(value(metrics, "kilokv_http_connections"), 16)
        self.assertGreater(value(metrics, "kilokv_http_connections_refused_total"), 0, "--connection-opens-max")
        self.assertIn("kilokvd closed connections of HTTP", server.log.read_text())

    def test_very_many_requests(self):
        server = self.serve(*self.FLAGS)
        pages = server.pages()
        codes = collections.Counter()
        with dial(pages, "127.0.0.2") as connection:
            connection.settimeout(30)
            answers = b""
            try:
                connection.sendall(GET * 2000)
            except ConnectionError:
                pass
            try:
                while part := connection.recv(1 << 16):
                    answers += part
            except ConnectionError:
                pass
        codes.update(re.findall(rb"HTTP/1\.1 (\d+) ", answers))
        self.assertGreater(codes[b"200"], 0)
        self.assertLess(codes[b"200"], 1000, "--connection-opens-max")
        self.assertEqual(get(pages, "/readyz", source="127.0.0.9").code, 200)
        self.assertGreater(value(get(pages, "/metrics").text, 'kilokv_http_requests_total{code="429"}'), 0)

    def test_handshakes_that_do_not_end(self):
        authority = Authority(self.folder, "Test CA")
        server = self.serve(*self.FLAGS, *authority.issue("server", SERVER).flags())
        pages = server.pages()
        context = ssl.create_default_context(cafile=str(authority.certificate))
        silent = [dial(pages, f"127.0.0.{2 + i % 3}") for i in range(40)]
        for connection in silent[::2]:
            connection.send(b"\x16\x03\x01\x02\x00\x01")  # the begin of a handshake
        for _ in range(20):
            self.assertEqual(get(pages, "/livez", context=context, source="127.0.0.9").code, 200)
        for connection in silent:
            connection.settimeout(30)
            self.assertEqual(self.rest(connection), b"")
            connection.close()

    def test_garbage(self):
        pages = self.serve(*self.FLAGS).pages()
        for text in (b"\0" * 100, b"\r\n" * 100, b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"GET /livez HTTP/9.9\r\n\r\n",
                     b"GET /livez HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"GET /livez HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                     b"GET /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            with dial(pages) as connection:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(1000)
                self.assertNotIn(b" 200 ", answer, text)
        self.assertEqual(get(pages, "/livez").code, 200)


if __name__ == "__main__":
    unittest.main()
