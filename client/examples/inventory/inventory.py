#!/usr/bin/env python3
"""A stock with reservations. An order reserves all of its goods or none. It is shipped or cancelled later, once.
docs/recipes.md explains it.

  stock/free/ITEM        what can be reserved
  stock/reserved/ITEM    what is reserved and not shipped yet
  stock/shipped/ITEM     what has left
  stock/delivery/ID      the text of a delivery that was counted: ITEM NUMBER
  stock/order/ID         the state of an order: "reserved ITEM NUMBER ...", or "shipped ...", or "cancelled ..."
"""

import pathlib
import sys

import kilokv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example import integer, main, wrong_command  # noqa: E402

USAGE = """\
inventory [--endpoint HOST:PORT] VERB ...
  deliver ID ITEM NUMBER                   counts goods that came in
  reserve ORDER WAIT_MS ITEM NUMBER ...    reserves all of these, or nothing; waits up to WAIT_MS for goods
  ship ORDER                               the goods have left
  cancel ORDER                             the goods are free again; an order that still waits gets none
Each delivery and each order needs an ID of its own.
"""


def goods_of(words):
    """The number of each item that the words name, such as "tea 3 cup 2"."""
    goods = {item: integer(number, 1) for item, number in zip(words[::2], words[1::2])}
    # Each item once: guards see the state before the transaction, so two guards would both accept the last piece.
    if not goods or len(words) != 2 * len(goods):
        raise wrong_command()
    return goods


def text_of(state, goods):
    return " ".join([state, *(f"{item} {number}" for item, number in goods.items())])


def deliver(session, delivery_id, item, number):
    delivery = f"stock/delivery/{delivery_id}"
    session.execute(kilokv.Transaction()
                    .guard_absent(delivery)  # false: an earlier run has counted it
                    .add(f"stock/free/{item}", number)  # wakes orders that wait for it
                    .put(delivery, f"{item} {number}".encode()))
    return f"delivered {delivery_id}"


def reserve(session, order_id, goods, wait):
    order, text = f"stock/order/{order_id}", text_of("reserved", goods)
    reserving = kilokv.Transaction(wait_timeout=wait)
    reserving.guard_absent(order)  # false: an earlier run has reserved
    for item, number in goods.items():
        reserving.guard(f"stock/free/{item}", ">=", number, on_false=kilokv.WAIT)
        reserving.add(f"stock/free/{item}", -number)
        reserving.add(f"stock/reserved/{item}", number)
    reserving.put(order, text.encode())
    before = reserving.otherwise.get(order)

    result = session.execute(reserving)
    if result.committed:
        return text
    if result.outcome == kilokv.Outcome.WAIT_EXPIRED:
        return "too-little"
    if result.outcome != kilokv.Outcome.GUARD_FAILED:
        return result.outcome.name
    return result[before].decode()


def finish(session, order_id, state):
    """Ships or cancels an order. It reads the order first, because only the order says which keys to change. The guard
    makes sure that the order has not changed since. If it has, it is read again: an order changes at most twice."""
    order, gets = f"stock/order/{order_id}", "free" if state == "cancelled" else "shipped"
    while True:
        reading = kilokv.Transaction()
        read = reading.get(order)
        before = session.execute(reading)[read]
        if before is None and state == "shipped":
            return "unknown"
        finishing = kilokv.Transaction()
        if before is None:
            goods = {}
            finishing.guard_absent(order)  # whatever still waits for goods will find that the order is cancelled
        else:
            said, *words = before.decode().split()
            if said != "reserved":
                return before.decode()  # it is finished
            goods = goods_of(words)
            finishing.guard_bytes(order, before)
        for item, number in goods.items():
            finishing.add(f"stock/reserved/{item}", -number)
            finishing.add(f"stock/{gets}/{item}", number)
        after = text_of(state, goods)
        finishing.put(order, after.encode())

        result = session.execute(finishing)
        if result.committed:
            return after
        if result.outcome != kilokv.Outcome.GUARD_FAILED:
            return result.outcome.name


def run(session, words):
    verb, arguments = words[0], words[1:]
    if verb == "deliver" and len(arguments) == 3:
        return deliver(session, arguments[0], arguments[1], integer(arguments[2], 1))
    if verb == "reserve" and len(arguments) >= 4:
        return reserve(session, arguments[0], goods_of(arguments[2:]), integer(arguments[1], 0) / 1000)
    if verb in ("ship", "cancel") and len(arguments) == 1:
        return finish(session, arguments[0], "shipped" if verb == "ship" else "cancelled")
    raise wrong_command()


if __name__ == "__main__":
    sys.exit(main(USAGE, run))
