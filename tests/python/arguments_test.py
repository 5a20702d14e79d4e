#!/usr/bin/env python3
"""Wrong arguments to every public function: an error that names the argument, and never one from below the client."""

import asyncio
import inspect
import linecache
import pathlib
import re
import sys
import traceback
import unittest

import kilokv
import kilokv.aio

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "crash"))
from programs import Server, temporary_folder  # noqa: E402

PACKAGE = pathlib.Path(kilokv.__file__).parent
WRONG = (None, 5, -1, 1.5, "x", "", b"x", [], ["x"], {}, object(), True, float("nan"), 1 << 70)
# What a call needs while another argument is wrong.
RIGHT = {"columns": kilokv.Columns.add(["a"], [1]), "compare": ">=", "delta": 1, "deltas": [1], "end": "b",
         "function": lambda _: 1, "index": 0, "key": "k", "keys": ["a"], "limit": 5, "number": 1, "request": 1,
         "session_id": "0" * 32, "since_version": 1, "start": "a", "transaction": kilokv.Transaction().add("a", 1),
         "transactions": [kilokv.Transaction().add("a", 1)], "value": 1, "values": [1], "version": 1}
# What the message has for an argument, if it is not the name.
WORDS = {"attempts_max": "attempts_max|async", "compare": "comparison", "deltas": "deltas|values",
         "endpoint": "endpoint|HOST:PORT", "expires_at_us": "expires_at_us|times", "function": "function|run",
         "handle": "index", "keys": "key", "number": "the number of the request", "on_false": "on_false|either",
         "request": "the number of the request", "transactions": "transaction", "ttl": "ttl|times"}
LEFT_OUT = {"close", "own_session", "transactional", "state_of"}


def functions_of(thing):
    """Its public functions by their names."""
    for name, kind in inspect.getmembers(type(thing), callable):
        if not name.startswith("_") and name not in LEFT_OUT:
            yield f"{type(thing).__module__}.{type(thing).__name__}.{name}", getattr(thing, name)


def calls_of(function):
    """(name of an argument, wrong value, positional arguments, named arguments), one argument wrong in each."""
    parameters = inspect.signature(function).parameters.values()
    right = {**RIGHT, "value": b"x"} if function.__name__ == "guard_bytes" else RIGHT
    for wrong_one in parameters:
        for value in WRONG:
            positional, named = [], {}
            for one in parameters:
                if one is not wrong_one and (one.default is not one.empty or one.kind is one.VAR_POSITIONAL):
                    continue
                content = value if one is wrong_one else right.get(one.name)
                if one.kind is one.VAR_POSITIONAL or one.name == "keys" and one.kind is not one.KEYWORD_ONLY:
                    positional.append(content)
                else:
                    named[one.name] = content
            yield wrong_one.name, value, positional, named


async def outcome(call):
    """Performs a call of either client, up to its first pair or part."""
    answer = call()
    if inspect.isawaitable(answer):
        answer = await answer
    if hasattr(answer, "__anext__"):
        await answer.__anext__()
        await answer.close()
    elif hasattr(answer, "__aiter__"):
        async for _ in answer:
            break
    elif isinstance(answer, (kilokv.Scan, kilokv.Watch)):
        next(iter(answer), None)
        answer.close()


class ArgumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(cls.enterClassContext(temporary_folder())))

    @staticmethod
    def problem(argument, error):
        """What is wrong with the error; None: nothing."""
        if isinstance(error, (kilokv.Error, kilokv.NotCommittedError, OSError)):
            return None
        if not isinstance(error, (TypeError, ValueError)):
            return f"{type(error).__name__} is neither TypeError nor ValueError"
        last = traceback.extract_tb(error.__traceback__)[-1]
        is_ours = pathlib.Path(last.filename).is_relative_to(PACKAGE) and "v1" not in last.filename
        if not (is_ours and linecache.getline(last.filename, last.lineno).strip().startswith("raise")):
            return f"it comes from {last.filename}:{last.lineno}"
        if not re.search(WORDS.get(argument, argument), str(error)):
            return "it does not name the argument"
        return None

    async def check(self, functions):
        problems = []
        for where, function in functions:
            for argument, value, positional, named in calls_of(function):
                try:
                    await asyncio.wait_for(outcome(lambda: function(*positional, **named)), 20)
                except StopAsyncIteration:
                    pass
                except Exception as error:  # each kind is looked at
                    problem = self.problem(argument, error)
                    if problem is not None:
                        problems.append(f"{where}({argument}={value!r}): {error!r}: {problem}")
        self.assertFalse(problems, "\n".join(problems))

    def test_functions_that_need_no_server(self):
        result = kilokv.Result(None, kilokv.Transaction())
        things = [("kilokv.Columns.put", kilokv.Columns.put), ("kilokv.Columns.add", kilokv.Columns.add),
                  ("kilokv.Columns.get", kilokv.Columns.get), ("kilokv.Transaction", kilokv.Transaction),
                  ("kilokv.prefix_end", kilokv.prefix_end), ("kilokv.Client", kilokv.Client),
                  ("kilokv.Result[]", result.__getitem__)]
        asyncio.run(self.check([*things, *functions_of(kilokv.Transaction())]))

    def test_the_synchronous_client(self):
        with kilokv.Client(self.server.endpoint, timeout=5) as db, db.session() as session:
            things = (db, session, db.transaction())
            asyncio.run(self.check(function for thing in things for function in functions_of(thing)))

    def test_the_client_for_asyncio(self):
        async def body():
            async with kilokv.aio.Client(self.server.endpoint, timeout=5) as db, db.session() as session:
                things = (db, session, db.transaction())
                await self.check(function for thing in things for function in functions_of(thing))
        asyncio.run(body())

    def test_a_wrong_argument_uses_up_no_number(self):
        with kilokv.Client(self.server.endpoint) as db, db.session() as session:
            for wrong in (lambda: session.execute("x"), lambda: session.execute_many([5]), lambda: session.submit(5),
                          lambda: session.execute(RIGHT["transaction"], traceparent="x"),
                          lambda: session.execute_many(RIGHT["transactions"], traceparent="x"),
                          lambda: session.resume("1", RIGHT["transaction"])):
                with self.assertRaises((TypeError, ValueError)):
                    wrong()
            with self.assertRaises(TypeError):
                session.execute(RIGHT["transaction"], timeout="1")
            self.assertEqual(session.execute(RIGHT["transaction"]).request, 2)
            session.execute(RIGHT["transaction"])
            self.assertEqual(session.core.numbers.acknowledged_through, 3)

    def test_the_words_of_some_mistakes(self):
        transaction = kilokv.Transaction()
        with kilokv.Client(self.server.endpoint) as db:
            for words, mistake in (
                    ("the value must be an int or bytes, not None: delete", lambda: db.put("a", None)),
                    ("the value must be an int or bytes, not str: encode it", lambda: db.put("a", "text")),
                    ("the value must be bytes, not str: encode it", lambda: transaction.guard_bytes("k", "str")),
                    ("session_id must be the 32 hexadecimal digits", lambda: db.attach("abc")),
                    ("time_us must be an int, not str", lambda: transaction.guard_time_after("x")),
                    ("keys must be a list of keys, not str", lambda: db.read("abc")),
                    ("a kilokv.Transaction, not Operations", lambda: db.execute(transaction.otherwise)),
                    ("must not be async: kilokv.aio.Client runs", lambda: db.run(self.an_async_function))):
                with self.assertRaisesRegex((TypeError, ValueError), words):
                    mistake()

        async def body():
            async with kilokv.aio.Client(self.server.endpoint) as db:
                await db.run(lambda transaction: 5)
        with self.assertRaisesRegex(TypeError, "the function of run.. must be async"):
            asyncio.run(body())

    @staticmethod
    async def an_async_function(transaction):
        return await transaction.get("a")


if __name__ == "__main__":
    unittest.main()
