#!/usr/bin/env python3
"""A crash leaves half of a request committed, for the other half was parked. The client sends the request again under
the same number: it gets the old results, and only the rest runs."""

import unittest

from programs import Server, add, history, temporary_folder, until, wait_for


class ParkedRetryTest(unittest.TestCase):
    def test_the_rest_runs_once(self):
        with temporary_folder() as folder, Server(folder) as server:
            request = server.start_transactions(
                {"then": [add("done", 1)]},
                {"guards": [wait_for("gate", 1)], "then": [add("rest", 1)], "wait_timeout_ms": 60000})
            until(lambda: server.parked() == 1 and server.value("done") == 1, "one is done, the other is parked")
            before, = server.transactions({"then": [add("before", 1)]})

            server.kill()
            server.start()
            after, = server.transactions({"then": [add("after", 1)]})
            until(lambda: server.parked() == 1, "the client sent its request again, and the rest is parked again")
            self.assertEqual(server.value("done"), 1)
            self.assertEqual(server.value("rest"), 0)

            server.transactions({"then": [add("gate", 1)]})
            done, rest = history(request)
            self.assertEqual((done["outcome"], rest["outcome"]), ("COMMITTED", "COMMITTED"))
            self.assertEqual(done["request"], rest["request"])
            self.assertLessEqual(done["batch"], before["batch"])  # its old result
            self.assertGreater(rest["batch"], after["batch"])  # run after the crash
            self.assertGreaterEqual(rest["attempts"], 2)
            self.assertEqual((server.value("done"), server.value("rest")), (1, 1))


if __name__ == "__main__":
    unittest.main()
