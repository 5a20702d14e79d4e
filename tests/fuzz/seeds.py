#!/usr/bin/env python3
"""Makes seeds for the fuzz targets from real traffic: runs the server and its clients, and keeps what they send, store and
read. tests/fuzz/run.sh --merge then takes into the corpora what covers more code.

  cmake --build --preset fuzz --target dump_database
  KILOKV_BIN_DIR=build/release/bin tests/fuzz/seeds.py FOLDER

writes FOLDER/TARGET/...
"""

import base64
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "crash"))
from certificates import CLIENT, SERVER, Authority  # noqa: E402
from programs import Server, temporary_folder  # noqa: E402

DUMP = ROOT / "build" / "fuzz" / "tests" / "bin" / "dump_database"
# In the order of fuzz_requests.cpp.
METHODS = ["Execute", "UploadReadSet", "OpenSession", "KeepSessionAlive", "CloseSession", "Get", "Scan", "ListParked",
           "Cancel", "Status", "ExecuteBatch", "Session", "ChangeAccess", "ListAccess", "AttachSession", "SetLogLevel",
           "ListHotKeys", "ListSlow", "ListSessions", "ListConnections", "Backup"]
# In the order of fuzz_long_messages.cpp.
LONG_MESSAGES = ["ExecuteBatch", "Session", "LongTransaction", "Transaction", "TransactionColumns", "Execute", "UploadReadSet",
                 "Get", "Cancel", "ChangeAccess"]
# How a call logs in, in the order of fuzz_requests.cpp: a server without logins, an administrator, a user with few rights,
# nobody.
WITHOUT_LOGINS, ADMIN, FEW_RIGHTS, NOBODY = range(4)
SESSION_MESSAGES_MAX = 8
SEED_BYTES_MAX = 8192
DATA, HEADERS, CONTINUATION, PADDED, PRIORITY = 0, 1, 9, 8, 32
STATIC_ENTRIES, PATH_ENTRIES = 61, (4, 5)


class Seeds:
    def __init__(self, folder):
        self._folder, self._number = pathlib.Path(folder), 0

    def add(self, target, content):
        content = content.encode() if isinstance(content, str) else content
        if len(content) > SEED_BYTES_MAX:
            return
        place = self._folder / target
        place.mkdir(parents=True, exist_ok=True)
        (place / f"seed{self._number}").write_bytes(content)
        self._number += 1


class Hpack:
    """The header blocks of one connection, as far as the path needs it. gRPC sends the path without Huffman coding."""

    def __init__(self):
        self._entries = []  # the newest first: whether it is the path, and the value

    @staticmethod
    def _integer(block, at, bits):
        value, at = block[at] & ((1 << bits) - 1), at + 1
        if value < (1 << bits) - 1:
            return value, at
        shift = 0
        while True:
            value += (block[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if block[at - 1] < 128:
                return value, at

    def _text(self, block, at):
        size, end = self._integer(block, at, 7)
        return block[end:end + size], end + size

    def _is_path(self, index):
        if index > STATIC_ENTRIES:
            return self._entries[index - STATIC_ENTRIES - 1][0]
        return index in PATH_ENTRIES

    def path(self, block):
        path, at = None, 0
        while at < len(block):
            first = block[at]
            if first & 128:
                index, at = self._integer(block, at, 7)
                if index > STATIC_ENTRIES and self._is_path(index):
                    path = self._entries[index - STATIC_ENTRIES - 1][1]
                continue
            if first & 0xE0 == 0x20:
                _, at = self._integer(block, at, 5)
                continue
            index, at = self._integer(block, at, 6 if first & 64 else 4)
            is_path = self._is_path(index)
            if index == 0:
                name, at = self._text(block, at)
                is_path = name == b":path"
            value, at = self._text(block, at)
            if first & 64:
                self._entries.insert(0, (is_path, value))
            path = value if is_path else path
        return path


def messages_of(sent):
    """Yields (method, its messages) for each call of a connection, from all bytes that the client sent."""
    at, hpack, calls, blocks = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Hpack(), {}, {}
    while at + 9 <= len(sent):
        size = int.from_bytes(sent[at:at + 3], "big")
        kind, flags, stream = struct.unpack_from(">BBI", sent, at + 3)
        payload = sent[at + 9:at + 9 + size]
        at += 9 + size
        if kind in (HEADERS, CONTINUATION):
            if kind == HEADERS:
                padding = payload[0] if flags & PADDED else 0
                begin = (1 if flags & PADDED else 0) + (5 if flags & PRIORITY else 0)
                payload = payload[begin:len(payload) - padding]
            blocks[stream] = blocks.get(stream, b"") + payload
            if flags & 4:
                calls[stream] = [hpack.path(blocks.pop(stream)), b""]
        elif kind == DATA and stream in calls:
            calls[stream][1] += payload
    for path, body in calls.values():
        messages = []
        while len(body) >= 5:
            size = int.from_bytes(body[1:5], "big")
            messages.append(body[5:5 + size])
            body = body[5 + size:]
        if path and path.startswith(b"/kilokv.v1.KiloKV/"):
            yield path.decode().rpartition("/")[2], messages


class Proxy:
    """Passes connections on to the server, and keeps what clients send."""

    def __init__(self, endpoint):
        host, _, port = endpoint.rpartition(":")
        self._server = (host, int(port))
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self._socket.accept()
            server, sent = socket.create_connection(self._server), bytearray()
            self.connections.append(sent)
            threading.Thread(target=self._copy, args=(client, server, sent), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, client, None), daemon=True).start()

    @staticmethod
    def _copy(source, target, kept):
        try:
            while data := source.recv(65536):
                if kept is not None:
                    kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out) + bytes([value])


def fields(message):
    """Yields (number, content) of the length-delimited fields of a protobuf message."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
            if byte < 128:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 2:
            size = number()
            yield tag >> 3, message[at:at + size]
            at += size
        elif tag & 7 == 0:
            number()
        else:
            at += 8 if tag & 7 == 1 else 4


def shortened(message, keys_max=5):
    """An UploadReadSetRequest with its first keys only. Requires: each version takes one byte."""
    out, keys = b"", 0
    for number, content in fields(message):
        keys += number == 3
        if number == 3 and keys > keys_max:
            continue
        content = content[:keys_max] if number == 4 else content
        out += varint(number << 3 | 2) + varint(len(content)) + content
    return out


def add_long(seeds, choice, content):
    for how in (0, 1, 129):  # in one piece, in pieces, with low limits
        seeds.add("long_messages", bytes([LONG_MESSAGES.index(choice), how]) + content)


def add_call(seeds, method, messages, ways=(WITHOUT_LOGINS,)):
    if method not in METHODS:
        return
    if method == "UploadReadSet":
        messages = [shortened(messages[0])]
    if method == "CloseSession":  # the clients have no reason to keep so short a session alive, with the same message
        add_call(seeds, "KeepSessionAlive", messages, ways)
    for way in ways:
        head = bytes([METHODS.index(method) + way * len(METHODS)])
        if method == "Session":
            some = [part for part in messages if len(part) < 2048][:SESSION_MESSAGES_MAX]
            seeds.add("requests", head + b"".join(struct.pack("<H", len(part)) + part for part in some))
        elif messages:
            seeds.add("requests", head + messages[0])
    if method == "ChangeAccess":
        seeds.add("access", b"\3" + b"".join(struct.pack("<H", len(part)) + part for part in messages))
    for message in messages[:50]:
        if method in LONG_MESSAGES:
            add_long(seeds, method, message)
        for number, content in fields(message):
            if method == "Execute" and number == 2:
                seeds.add("rows", b"\x0a" + varint(len(content)) + content)
                add_long(seeds, "LongTransaction", content)
                add_long(seeds, "Transaction", content)
            if (method, number) in (("ExecuteBatch", 2), ("Session", 4)):
                seeds.add("rows", content)
            if (method, number) in (("ExecuteBatch", 3), ("Session", 5)):
                seeds.add("columns", content)
                add_long(seeds, "TransactionColumns", content)


TRANSACTIONS = [
    {"then": [{"op": "put", "key": "alice", "value": 100}, {"op": "put", "key": "note", "value": "text"}]},
    {"guards": [{"key": "alice", "is": "ge", "value": 10}], "then": [{"op": "add", "key": "alice", "delta": -10},
                                                                     {"op": "add", "key": "bob", "delta": 10}],
     "else": [{"op": "get", "key": "alice"}], "precedence": 3},
    {"guards": [{"key": "alice", "is": is_} for is_ in ("exists", "absent")]
     + [{"key": "alice", "is": is_, "value": 1} for is_ in ("eq", "ne", "lt", "le", "gt")]
     + [{"key": "alice", "is": "ge", "other": "bob"}, {"key": "alice", "is": "version", "version": 1},
        {"key": "alice", "is": "unchanged", "version": 1}, {"key": "note", "is": "bytes_eq", "value": "text"},
        {"is": "range_unchanged", "from": "a", "to": "z", "version": 1}],
     "then": [{"op": "delete", "key": "bob"}]},
    {"then": [{"op": "get", "key": "alice"}, {"op": "put", "key": "copy", "value": {"get": 0, "negate": True}},
              {"op": "put", "key": "v", "value": {"commit_version": True}},
              {"op": "put", "key": "t", "value": {"batch_time": True}},
              {"op": "put", "key": "b", "value": {"b64": base64.b64encode(bytes(range(40))).decode()}},
              {"op": "range_get", "from": "a", "to": None, "limit": 10},
              {"op": "delete_range", "from": "x", "to": "y", "limit": 10}]},
    {"guards": [{"key": "late", "is": "exists", "when_false": "wait"}], "then": [{"op": "get", "key": "late"}],
     "wait_timeout_ms": 30},
    {"then": [{"op": "add", "key": "note", "delta": 1}]},
]


def traffic(server):
    """Every method, by the clients of the product."""
    server.client("put", "k", "v")
    server.client("put", "n", "--int", "5", codes=(0, 2))
    server.client("get", "k", "absent", codes=(0, 1))
    server.client("add", "n", "7", codes=(0, 1))
    server.client("scan", "--limit", "3", codes=(0, 2))
    server.client("scan", codes=(0, 2))
    server.client("status")
    server.client("del", "k")
    server.client("parked", "list", codes=(0, 2))
    server.client("parked", "cancel", "--key-prefix", "late", codes=(0, 1, 2))
    server.client("parked", "cancel", "1", codes=(0, 1, 2))
    for arguments in ((), ("--batch",), ("--detached",), ("--batch", "--detached")):
        server.client("txn", *arguments, stdin="\n".join(map(json.dumps, TRANSACTIONS)), codes=(0, 1))
    puts = [{"then": [{"op": "put", "key": f"k{i}", "value": i} for i in range(200)]} for _ in range(6)]
    server.client("txn", stdin="\n".join(map(json.dumps, puts)))
    reads = {"guards": [{"is": "version", "key": f"k{i % 200}", "version": 3} for i in range(1500)],
             "then": [{"op": "add", "key": "sum", "delta": 1}]}
    server.client("txn", stdin=json.dumps(reads), codes=(0, 1))
    for workload in ("bank", "bank-semantic", "atm", "ycsb-e", "array-walk"):
        for encoding in ("rows", "columns"):
            subprocess.run(server.command("kilokv-bench", "run", "--workload", workload, "--keys", "64", "--batch-size", "3",
                                          "--encoding", encoding, "--duration", "60ms", "--warmup", "10ms"),
                           capture_output=True, check=False)
    subprocess.run(server.command("kilokv-bench", "run", "--unary", "--keys", "64", "--duration", "60ms", "--warmup", "10ms"),
                   capture_output=True, check=False)
    server.client("backup", str(server.folder / "backup"))


def traffic_of_users(server):
    """Every change and every list of users, roles and tokens; and a few calls of each kind, with a login."""
    client = server.client
    client("role", "grant", "teller", "--read", "a", "--write", "a", "--read-range", "x", "z", codes=(0, 2))
    client("role", "grant", "teller", "--read", "account/", "--write", "account/", "--metrics")
    client("role", "grant", "boss", "--read", "", "--admin")
    client("role", "revoke", "teller", "--write", "account/", "--write", "a")
    client("user", "set", "alice", "--role", "teller", "--role", "boss", "--certificate", "alice.example")
    client("user", "set", "alice", "--remove-role", "boss", "--weight", "3")
    token = server.folder / "alice.token"
    client("token", "create", "alice", "--file", str(token), "--expires-in", "1h")
    for kind in ("user", "role", "token"):
        client(kind, "list")
    client("put", "account/1", "5")
    client("get", "account/1")
    client("scan")
    client("status")
    client("parked", "list")
    client("parked", "cancel", "--client", "user:admin", codes=(0, 1))
    client("backup", str(server.folder / "backup"))
    client("txn", stdin="\n".join(map(json.dumps, TRANSACTIONS)), codes=(0, 1))
    client("token", "remove", token.read_text().split("_")[1])
    client("user", "remove", "alice")
    client("role", "remove", "teller")
    client("role", "remove", "none", codes=(5,))


def add_log(seeds, content):
    """The beginning of a write-ahead log; and the same around the end of a block, as fuzz_wal_check.cpp makes it."""
    for size in (100, 2000, SEED_BYTES_MAX - 1):
        seeds.add("wal_check", b"\2" + content[:size])
        seeds.add("wal_check", b"\0" + content[:size])
    first = 7 + int.from_bytes(content[4:6], "little")  # bytes of the first fragment
    if first + 6 > 255 or first > len(content):
        return
    for padding in (0, 3, 6):
        around = content[:first] + bytes(padding) + content[first:2000]
        for fragments in (1, 3):
            for choice in (2, 2 | 4, 2 | 4 | 8):  # mended; a write follows; the fragments before are one write
                seeds.add("wal_check", bytes([choice | fragments << 6, first + padding]) + around)
    last = content[:6] + b"\4" + content[7:first]
    seeds.add("wal_check", bytes([2 | 4 | 16 | 2 << 6, first]) + last + content[first:2000])


def add_frames(seeds, content):
    """A backup or a file of an archive: some frames of each kind, and what is in them (fuzz_backup.cpp)."""
    readers = {1: 1, 2: 2, 3: 2, 4: 3, 5: 4, 6: 5, 7: 4}  # by the kind of the frame
    seeds.add("backup", b"\0" + content[:SEED_BYTES_MAX - 1])
    while content:
        _, kind, _, _, size = struct.unpack("<IIQII", content[:24])
        payload, content = content[24:24 + size], content[28 + size:]
        for length in (size, 600, 100):
            seeds.add("backup", bytes([readers[kind]]) + payload[:length])


def add_from_server(seeds, folder, users=False):
    bootstrap = folder / "admin.token"
    logins = ("--login", "on", "--bootstrap-file", bootstrap) if users else ()
    (folder / "archive").mkdir()
    archive = ("--archive-dir", folder / "archive", "--archive-interval", "1s")
    with Server(folder, "--checkpoint-interval", "300ms", *archive, *logins) as server:
        proxy = Proxy(server.endpoint)
        own, server.endpoint = server.endpoint, proxy.endpoint
        if users:
            os.environ["KILOKV_CLIENT_TOKEN_FILE"] = str(bootstrap)
            traffic_of_users(server)
        else:
            traffic(server)
        time.sleep(2)  # a checkpoint, and a file of the archive
        server.endpoint = own
        server.kill()
    changes = []  # all of them, one after the other
    for sent in proxy.connections:
        for method, messages in messages_of(bytes(sent)):
            add_call(seeds, method, messages, (ADMIN, FEW_RIGHTS, NOBODY) if users else (WITHOUT_LOGINS,))
            changes += messages if method == "ChangeAccess" else []
    if users:
        seeds.add("access", b"\3" + b"".join(struct.pack("<H", len(part)) + part for part in changes))
        seeds.add("access", b"\2" + bootstrap.read_text().strip().encode())
    for path in (folder / "backup", *sorted(path for path in (folder / "archive").rglob("*") if path.is_file())):
        add_frames(seeds, path.read_bytes())
    for log in sorted((folder / "data").rglob("*.log")):
        add_log(seeds, log.read_bytes())
    copy = folder / "copy"
    shutil.copytree(folder / "data", copy)
    data = next(copy.rglob("CURRENT")).parent
    # With other names than those of another database.
    subprocess.run([DUMP, data, seeds._folder / folder.name], check=True)
    for path in (seeds._folder / folder.name).rglob("dump*"):
        seeds.add(path.parent.name, path.read_bytes())
    shutil.rmtree(seeds._folder / folder.name)


def add_from_pages(seeds):
    for page in sorted((ROOT / "docs").glob("*.md")):
        for kind, block in re.findall(r"```(\w+)\n(.*?)```", page.read_text(), re.DOTALL):
            if kind == "toml":
                seeds.add("config", block)
            if kind in ("json", "jsonl"):
                seeds.add("transaction_json", block)
    for name, value in re.findall(r"^\| `--?-?([a-z-]+)[^|]*\| ([^|]+) \|", (ROOT / "docs" / "configuration.md").read_text(),
                                  re.MULTILINE):
        value = value.strip().strip("`")
        seeds.add("config", f'{name} = "{value}"\n')
        seeds.add("config", value)
    for transaction in TRANSACTIONS:
        seeds.add("transaction_json", json.dumps(transaction))


# Records of an import. The first byte says how the target reads them.
RECORDS = {
    0: ['{"key": "a", "value": 1}\n\n{"value": "x", "key": {"b64": "/w=="}}\r\n{"key": "c", "value": {"b64": ""}, "version": 7}',
        '\ufeff{"key": "\\u00e4\\n", "value": -9223372036854775808}\n{"key": "a"}\n[1]\n{"key": 1, "value": null}\n',
        '{"key": "a", "value": 1.5}\n{"key": "", "value": 1}\n{"key": "a", "valeu": 1}\n{"key": "a", "value": "\u00e4'],
    1: ['key,value\na,1\nb,"x, ""y"""\n"c\nd",b64:/w==\nb64:AP8=,-5\n"e\r\n",\r\n', '\ufeffvalue,other,key\r\n1,2,3\r\n\r\n',
        'key,value\na\n,1\na"b,1\n"a"b,1\na,9223372036854775808\nb64:%,1\n\u00e4,\u20ac\na\r,\rb\n', 'key,value\na,"cut',
        'key,key,value\n', 'a,b\n', 'key,value\na,1'],
    2: ['k,v\na,1\nb,b64:MQ==\nc,9223372036854775808\n"d",""\n'],
    3: ['{"format": "kilokv-import-1", "records": "jsonl", "existing": "keep", "line": 1001, "bytes": 34567, '
        '"digest": "00112233445566778899aabbccddeeff", "run": "0123456789abcdef"}'],
}


def add_records(seeds):
    for choice, texts in RECORDS.items():
        for text in texts:
            seeds.add("import_records", bytes([choice]) + text.encode())
    for kind, choice in (("jsonl", 0), ("csv", 1)):
        for block in re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / "bulk.md").read_text(), re.DOTALL):
            seeds.add("import_records", bytes([choice]) + block.encode())


def add_certificates(seeds, folder):
    authority = Authority(folder, "Fuzz CA")
    pair, client = authority.issue("localhost", SERVER), authority.issue("client", CLIENT)
    authority.revoke(client)
    (folder / "lists").mkdir()
    authority.write_list(folder / "lists" / "list.pem")
    texts = [authority.certificate.read_text(), pair.certificate.read_text(), pair.key.read_text(),
             (folder / "lists" / "list.pem").read_text()]
    for text in (*texts, texts[1] + texts[2] + texts[0], texts[0] + texts[3], "".join(texts)):
        seeds.add("tls", b"\0" + text.encode())
    for text, choice in zip(texts, (1, 1, 3, 2)):
        seeds.add("tls", bytes([choice]) + base64.b64decode(re.sub(r"-----[^-]*-----|\s", "", text)))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    seeds = Seeds(sys.argv[1])
    with temporary_folder() as folder:
        folder = pathlib.Path(folder)
        (folder / "server").mkdir()
        add_from_server(seeds, folder / "server")
        (folder / "users").mkdir()
        add_from_server(seeds, folder / "users", users=True)
        add_certificates(seeds, folder / "tls")
    add_from_pages(seeds)
    add_records(seeds)


if __name__ == "__main__":
    main()
