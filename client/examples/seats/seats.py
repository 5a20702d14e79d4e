#!/usr/bin/env python3
"""Sells seats. A customer holds a seat for a time, and buys it within this time. A hold ends at its time by itself,
also if the customer's program and the server both die. docs/recipes.md explains it.

The keys of a seat:
  seats/EVENT/SEAT/end      until when the seat is held, in microseconds; absent: it is free
  seats/EVENT/SEAT/holder   the order that holds it
  seats/EVENT/SEAT/sold     the order that has bought it
"""

import pathlib
import sys

import kilokv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example import integer, main, wrong_command  # noqa: E402

USAGE = """\
seats [--endpoint HOST:PORT] VERB ...
  hold EVENT SEAT ORDER HOLD_MS WAIT_MS   holds the seat; waits up to WAIT_MS until it is free
  buy EVENT SEAT ORDER                    buys a seat that the order holds
  release EVENT SEAT ORDER                gives a hold back
Each order needs a name of its own.
"""
KEPT = 60  # seconds after which a hold that has ended is forgotten


def keys_of(event, seat):
    return (f"seats/{event}/{seat}/{name}" for name in ("end", "holder", "sold"))


def hold(session, keys, order, hold_us, wait):
    end, holder, sold = keys
    holding = kilokv.Transaction(wait_timeout=wait)
    holding.guard_absent(sold)  # first, so that a sale ends the wait
    holding.guard_time_after(key=end, on_false=kilokv.WAIT if wait else kilokv.FAIL)  # nobody holds it any more
    # The server deletes both keys after the hold. This only frees their space: the time in `end` ends the hold.
    ttl = hold_us / 1e6 + KEPT
    holding.put(end, kilokv.BATCH_TIME, ttl=ttl).add(end, hold_us)
    holding.put(holder, order, ttl=ttl)
    buyer, holds, until = (holding.otherwise.get(key) for key in (sold, holder, end))

    result = session.execute(holding)
    now = result.batch_time_us
    if result.committed:
        return f"held at {now} until {now + hold_us}"
    if result.outcome == kilokv.Outcome.WAIT_EXPIRED:
        return f"taken at {now}"
    if result.outcome != kilokv.Outcome.GUARD_FAILED:
        return result.outcome.name
    if result[buyer] is not None:
        return f"bought at {now}" if result[buyer] == order else f"sold at {now}"
    if result[holds] == order and (result[until] or 0) > now:
        return f"held at {now} until {result[until]}"  # by an earlier run of this order, whose answer was lost
    return f"taken at {now}"


def buy(session, keys, order):
    end, holder, sold = keys
    sale = kilokv.Transaction()
    sale.guard_absent(sold)
    sale.guard_bytes(holder, order)
    sale.guard_time_before(key=end)  # the hold has not ended
    sale.put(sold, order).delete(holder).delete(end)
    buyer = sale.otherwise.get(sold)

    result = session.execute(sale)
    now = result.batch_time_us
    if result.committed:
        return f"bought at {now}"
    if result.outcome != kilokv.Outcome.GUARD_FAILED:
        return result.outcome.name
    if result[buyer] is None:
        return f"not-held at {now}"
    return f"bought at {now}" if result[buyer] == order else f"sold at {now}"  # an earlier run may have bought it


def release(session, keys, order):
    end, holder, _ = keys
    result = session.execute(kilokv.Transaction()
                             .guard_bytes(holder, order)
                             .delete(holder)
                             .delete(end))  # wakes the one who has waited longest
    return f"{'released' if result.committed else 'not-held'} at {result.batch_time_us}"


def run(session, words):
    if len(words) < 4:
        raise wrong_command()
    verb, keys, order = words[0], tuple(keys_of(*words[1:3])), words[3].encode()
    if verb == "hold" and len(words) == 6:
        hold_us, wait = integer(words[4], 1) * 1000, integer(words[5], 0) / 1000
        # First without a wait. So an order that is sent again finds its own hold, and does not wait for its end.
        line = hold(session, keys, order, hold_us, 0)
        if line.startswith("taken") and wait > 0:
            line = hold(session, keys, order, hold_us, wait)
        return line
    if verb in ("buy", "release") and len(words) == 4:
        return (buy if verb == "buy" else release)(session, keys, order)
    raise wrong_command()


if __name__ == "__main__":
    sys.exit(main(USAGE, run))
