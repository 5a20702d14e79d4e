#!/usr/bin/env python3
"""Compares the protocol with that of a version before: what was there must still be there, with the same number, type,
cardinality and streaming. What is removed must be reserved. New fields, messages and methods are fine.

    check_protocol.py [PROTO_FOLDER [DESCRIPTOR]]     compares; prints what breaks a client, and exits with 1 if anything does
    check_protocol.py --write DESCRIPTOR              writes the descriptors of the protos as they are, at a release

proto/descriptors/VERSION.txt holds the FileDescriptorSet of a version as text, made by protoc.
"""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOS = ["kilokv/v1/transaction.proto", "kilokv/v1/columns.proto", "kilokv/v1/activity.proto",
          "kilokv/v1/kilokv.proto"]


def describe(folder):
    """The FileDescriptorSet of the protos in `folder`, as text."""
    with tempfile.NamedTemporaryFile() as binary:
        subprocess.run(["protoc", f"--proto_path={folder}", f"--descriptor_set_out={binary.name}", *PROTOS], check=True)
        return subprocess.run(["protoc", "--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto"],
                              stdin=binary, capture_output=True, check=True).stdout.decode()


def parse(text):
    """Protobuf's text form as a dict of lists: {"file": [{"name": ["..."], ...}]}."""
    top = {}
    stack = [top]
    for line in text.splitlines():
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith("{"):
            inner = {}
            stack[-1].setdefault(line[:-1].strip(), []).append(inner)
            stack.append(inner)
        else:
            name, _, value = line.partition(": ")
            stack[-1].setdefault(name, []).append(value.strip('"'))
    return top


def one(node, name, default=""):
    return node.get(name, [default])[0]


class Protocol:
    """Everything by its full name: messages, enums and services."""

    def __init__(self, text):
        self.messages, self.enums, self.services = {}, {}, {}
        for file in parse(text)["file"]:
            self._add(one(file, "package"), file)
            for service in file.get("service", []):
                self.services[f"{one(file, 'package')}.{one(service, 'name')}"] = service

    def _add(self, prefix, node):
        for enum in node.get("enum_type", []):
            self.enums[f"{prefix}.{one(enum, 'name')}"] = enum
        for message in node.get("message_type", []) + node.get("nested_type", []):
            name = f"{prefix}.{one(message, 'name')}"
            self.messages[name] = message
            self._add(name, message)


def is_reserved(node, number, name, end_included):
    ranges = [(int(one(r, "start")), int(one(r, "end")) + end_included) for r in node.get("reserved_range", [])]
    return any(start <= number < end for start, end in ranges) and name in node.get("reserved_name", [])


def shape(message, field):
    """What a field is on the wire and in programs, but for its number."""
    index = field.get("oneof_index")
    oneof = one(message["oneof_decl"][int(index[0])], "name") if index else None
    return {"name": one(field, "name"), "type": one(field, "type"), "type name": one(field, "type_name"),
            "cardinality": one(field, "label"), "oneof": oneof, "optional": one(field, "proto3_optional", "false"),
            "packed": one(one(field, "options", {}), "packed", "default")}


def compare_members(name, before, now, member, end_included, describe_member):
    """Fields of a message, values of an enum: by number."""
    there = {int(one(m, "number")): m for m in now.get(member, [])}
    for old in before.get(member, []):
        number = int(one(old, "number"))
        if number not in there:
            if not is_reserved(now, number, one(old, "name"), end_included):
                yield f"{name}.{one(old, 'name')} = {number} is gone: reserve the number and the name"
            continue
        was, is_now = describe_member(before, old), describe_member(now, there[number])
        for what, value in was.items():
            if is_now[what] != value:
                yield f"{name}.{one(old, 'name')} = {number}: {what} was {value}, is {is_now[what]}"


def compare_methods(name, before, now):
    there = {one(m, "name"): m for m in now.get("method", [])}
    for old in before.get("method", []):
        method = one(old, "name")
        if method not in there:
            yield f"{name}.{method} is gone"
            continue
        for what, default in (("input_type", ""), ("output_type", ""), ("client_streaming", "false"),
                              ("server_streaming", "false")):
            was, is_now = one(old, what, default), one(there[method], what, default)
            if was != is_now:
                yield f"{name}.{method}: {what} was {was}, is {is_now}"


def problems(before, now):
    for kind in ("messages", "enums", "services"):
        for name in sorted(getattr(before, kind).keys() - getattr(now, kind).keys()):
            yield f"{name} is gone"
    for name, message in before.messages.items():
        if name in now.messages:
            yield from compare_members(name, message, now.messages[name], "field", 0, shape)
    for name, enum in before.enums.items():
        if name in now.enums:
            yield from compare_members(name, enum, now.enums[name], "value", 1, lambda _, v: {"name": one(v, "name")})
    for name, service in before.services.items():
        if name in now.services:
            yield from compare_methods(name, service, now.services[name])


def main(arguments):
    if arguments[:1] == ["--write"]:
        pathlib.Path(arguments[1]).write_text(describe(ROOT / "proto"), encoding="utf-8")
        return 0
    folder = pathlib.Path(arguments[0]) if arguments else ROOT / "proto"
    versions = [pathlib.Path(arguments[1])] if arguments[1:] else sorted((ROOT / "proto" / "descriptors").glob("*.txt"))
    now = Protocol(describe(folder))
    found = 0
    for version in versions:
        before = Protocol(version.read_text(encoding="utf-8"))
        if not before.messages or not before.services:
            raise SystemExit(f"{version}: no descriptors")
        for problem in problems(before, now):
            print(f"since {version.stem}: {problem}")
            found += 1
    if not versions:
        raise SystemExit("proto/descriptors is empty")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
