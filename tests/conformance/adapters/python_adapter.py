#!/usr/bin/env python3
"""The adapter of the Python client for the conformance test (README.md).

  python_adapter.py            the synchronous client; each call has a thread of its own
  python_adapter.py --asyncio  the client for asyncio; each call is a task
"""

import argparse
import asyncio
import inspect
import json
import sys
import threading

import forms
import kilokv
import kilokv.aio


async def settled(answer):
    """The answer of a call of either client."""
    return await answer if inspect.isawaitable(answer) else answer


def seconds(call, name="timeout_ms"):
    return call[name] / 1000 if name in call else None


class Adapter:
    """The calls of the protocol, by their names. `library`: kilokv or kilokv.aio."""

    def __init__(self, library):
        self._library = library
        self._clients, self._sessions, self._transactions = {}, {}, {}

    async def answer(self, call):
        try:
            method = getattr(self, call["call"], None)
            if method is None:
                return {"unsupported": f"there is no call {call['call']}"}
            return {"ok": await method(call)}
        except kilokv.Error as error:
            return {"error": forms.from_error(error)}
        except (TypeError, ValueError) as error:
            return {"misuse": str(error)}

    def _sender(self, call):
        return self._sessions[call["session"]] if "session" in call else self._clients[call["client"]]

    # Clients and sessions.

    async def open_client(self, call):
        options = {"wait_for_server": call.get("wait_for_server_ms", 0) / 1000, "token": call.get("token")}
        if "request_timeout_ms" in call:
            options["timeout"] = seconds(call, "request_timeout_ms")
        self._clients[call["client"]] = self._library.Client(call["endpoint"], **options)
        return {}

    async def close_client(self, call):
        await settled(self._clients.pop(call["client"]).close())
        return {}

    async def open_session(self, call):
        session = await settled(self._clients[call["client"]].session(lease=seconds(call, "lease_ms")))
        self._sessions[call["session"]] = session
        return {"session_id": session.id, "holder": session.holder}

    async def attach_session(self, call):
        client = self._clients[call["client"]]
        session = await settled(client.attach(call["session_id"], numbers_used=call.get("numbers_used", 0)))
        self._sessions[call["session"]] = session
        return {"session_id": session.id, "holder": session.holder,
                "acknowledged_through": session.acknowledged_through, "frozen": session.frozen,
                "requests": forms.from_known(session.requests)}

    async def known_requests(self, call):
        return {"requests": forms.from_known(await settled(self._sessions[call["session"]].known_requests()))}

    async def acknowledge_through(self, call):
        self._sessions[call["session"]].acknowledge_through(call["request"])
        return {}

    async def close_session(self, call):
        await settled(self._sessions[call["session"]].close(keep_open=call.get("keep_open", False)))
        return {}

    # Transactions.

    async def execute(self, call):
        sender, options = self._sender(call), {"timeout": seconds(call)}
        if "detached" in call:
            options["detached"] = call["detached"]
        transactions = [forms.to_transaction(form) for form in call["transactions"]]
        if len(transactions) == 1:
            result = await settled(sender.execute(transactions[0], **options))
            return self._request([result], result)
        results = await settled(sender.execute_many(transactions, **options))
        return self._request(results, results)

    async def resume(self, call):
        session = self._sessions[call["session"]]
        transactions = [forms.to_transaction(form) for form in call["transactions"]]
        if len(transactions) == 1:
            result = await settled(session.resume(call["request"], transactions[0], timeout=seconds(call)))
            return self._request([result], result)
        results = await settled(session.resume_many(call["request"], transactions, timeout=seconds(call)))
        return self._request(results, results)

    @staticmethod
    def _request(results, sent):
        return {"results": [forms.from_result(result) for result in results], "request": sent.request,
                "attempts": sent.attempts}

    async def cancel(self, call):
        session = self._sessions[call["session"]]
        return {"cancelled": await settled(session.cancel(call["request"], call.get("index")))}

    # Reads.

    async def get(self, call):
        keys = [forms.to_bytes(key) for key in call["keys"]]
        reads = await settled(self._clients[call["client"]].read(keys, timeout=seconds(call)))
        return {"reads": [forms.from_read(read) for read in reads], "batch": reads.batch, "rank": reads.rank}

    async def scan(self, call):
        scan = self._clients[call["client"]].scan(
            *self._range(call), reverse=call.get("reverse", False), limit=call.get("limit"),
            page_pairs=call.get("page_pairs", 0), timeout=seconds(call))
        pairs = await scan.all() if hasattr(scan, "all") else list(scan)
        return {"pairs": forms.from_scanned(pairs), "boundary": scan.position.boundary,
                "boundary_version": str(scan.position.boundary_version)}

    async def watch(self, call):
        options = {"reconnect": seconds(call, "reconnect_ms")} if "reconnect_ms" in call else {}
        watch = self._clients[call["client"]].watch(*self._range(call), after=forms.to_position(call.get("after")),
                                                    incarnation=call.get("incarnation"), **options)
        writes, last = [], None
        while last is None or len(writes) < call["count"]:
            last = await watch.__anext__() if hasattr(watch, "__anext__") else next(watch)
            writes += last.writes
        await settled(watch.close())
        return forms.from_watched(writes, last)

    @staticmethod
    def _range(call):
        return forms.to_bytes(call.get("from", "")), forms.to_bytes(call.get("to", ""))

    # The server.

    async def list_parked(self, call):
        parked = await settled(self._clients[call["client"]].list_parked())
        return {"parked": [{"parked_id": one.id, "request": one.request, "index": one.index, "guard": one.guard,
                            "guard_key": forms.from_key(one.guard_key), "client": one.client} for one in parked]}

    async def cancel_parked(self, call):
        cancelled = self._clients[call["client"]].cancel_parked(
            call.get("parked_id"), client=call.get("of_client", ""), prefix=forms.to_bytes(call.get("prefix", "")),
            older_than=call.get("older_than_ms", 0) / 1000)
        return {"cancelled": await settled(cancelled)}

    async def status(self, call):
        status = await settled(self._clients[call["client"]].status())
        return {"state": status.state, "version": status.version, "counters": status.counters}

    async def list_sessions(self, call):
        sessions, count = await settled(self._clients[call["client"]].list_sessions())
        return {"count": count, "sessions": [
            {"id": one.id, "requests": one.requests, "acknowledged_through": one.acknowledged_through}
            for one in sessions]}

    # Interactive transactions.

    async def begin(self, call):
        self._transactions[call["transaction"]] = self._sender(call).transaction()
        return {}

    async def read(self, call):
        keys = [forms.to_bytes(key) for key in call["keys"]]
        values = await settled(self._transactions[call["transaction"]].get_many(keys))
        return {"values": [forms.from_value(value) for value in values]}

    async def scan_in(self, call):
        transaction = self._transactions[call["transaction"]]
        if call.get("reverse"):
            pairs = await settled(transaction.scan_reverse(*self._range(call), limit=call["limit"]))
        else:
            pairs = await settled(transaction.scan(*self._range(call)))
        return {"pairs": forms.from_pairs(pairs)}

    async def write(self, call):
        transaction, key = self._transactions[call["transaction"]], forms.to_bytes(call["key"])
        value = forms.to_value(call["value"])
        if value is None:
            transaction.delete(key)
        else:
            transaction.put(key, value, **forms.to_expiry(call))
        return {}

    async def commit(self, call):
        try:
            version = await settled(self._transactions[call["transaction"]].commit())
        except kilokv.ConflictError as conflict:
            return {"committed": False, "key": forms.from_key(conflict.key)}
        return {"committed": True, "version": forms.from_version(version)}

    async def run_add(self, call):
        key, delta = forms.to_bytes(call["key"]), int(call["delta"])
        run = self._run_add_async if self._library is kilokv.aio else self._run_add
        return {"value": str(await settled(run(self._sender(call), key, delta)))}

    @staticmethod
    def _run_add(sender, key, delta):
        def add(transaction):
            total = (transaction.get(key) or 0) + delta
            transaction.put(key, total)
            return total
        return sender.run(add)

    @staticmethod
    async def _run_add_async(sender, key, delta):
        async def add(transaction):
            total = (await transaction.get(key) or 0) + delta
            transaction.put(key, total)
            return total
        return await sender.run(add)


_writing = threading.Lock()


async def answer(adapter, call):
    line = json.dumps({"id": call["id"], **await adapter.answer(call)})
    with _writing:
        print(line, flush=True)


def serve_with_threads():
    adapter = Adapter(kilokv)
    for line in sys.stdin:
        threading.Thread(target=lambda call: asyncio.run(answer(adapter, call)), args=(json.loads(line),),
                         daemon=True).start()


async def serve_with_tasks():
    adapter, loop, tasks = Adapter(kilokv.aio), asyncio.get_running_loop(), set()
    while True:
        line = await loop.run_in_executor(None, sys.stdin.readline)
        if not line:
            return
        task = asyncio.ensure_future(answer(adapter, json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


def main():
    parser = argparse.ArgumentParser(description="The adapter of the Python client for the conformance test.")
    parser.add_argument("--asyncio", action="store_true", help="use the client for asyncio")
    if parser.parse_args().asyncio:
        asyncio.run(serve_with_tasks())
    else:
        serve_with_threads()


if __name__ == "__main__":
    main()
