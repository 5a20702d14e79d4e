#!/usr/bin/env python3
"""A ledger of payments. Each payment is applied once, however often it is sent, and by whichever process. Messages
about payments leave through an outbox. docs/recipes.md explains it.

  pay/account/NAME    the balance. The account "world" has what came in, negated, so that all balances sum to 0
  pay/payment/ID      the text of a payment that was applied: FROM TO AMOUNT
  pay/outbox/ID       the same text, as long as nobody has delivered it
  pay/undelivered     how many texts are in the outbox
"""

import pathlib
import sys

import kilokv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from example import end_of, integer, main, wrong_command  # noqa: E402

USAGE = """\
payments [--endpoint HOST:PORT] VERB ...
  open ID ACCOUNT AMOUNT     brings money in from outside
  pay ID FROM TO AMOUNT      moves money
  deliver WAIT_MS            takes one message from the outbox; waits up to WAIT_MS for it
  delivered ID               says that the message has arrived
Each payment needs an ID of its own. A payment that is sent again keeps its ID.
"""
WORLD = "world"
OUTBOX, UNDELIVERED = "pay/outbox/", "pay/undelivered"


def pay(session, number, source, target, amount):
    done, text = f"pay/payment/{number}", f"{source} {target} {amount}"
    payment = kilokv.Transaction()
    payment.guard_absent(done)  # the idempotency key
    if source != WORLD:
        payment.guard(f"pay/account/{source}", ">=", amount)
    payment.add(f"pay/account/{source}", -amount).add(f"pay/account/{target}", amount)
    payment.put(done, text.encode())
    payment.put(OUTBOX + number, text.encode()).add(UNDELIVERED, 1)
    before = payment.otherwise.get(done)

    result = session.execute(payment)
    if result.committed:
        return f"paid {number}"
    if result.outcome != kilokv.Outcome.GUARD_FAILED:
        return result.outcome.name
    if result[before] is None:
        return f"refused {number}: too little money"
    # An earlier run has applied it. If the text differs, somebody has used the ID for another payment.
    applied = result[before].decode()
    return f"paid {number}" if applied == text else f"refused {number}: the ID is that of {applied}"


def deliver(session, wait):
    """Reads the oldest message, and leaves it in the outbox."""
    reading = kilokv.Transaction(wait_timeout=wait)
    reading.guard(UNDELIVERED, ">=", 1, on_false=kilokv.WAIT)
    messages = reading.range_get(OUTBOX, end_of(OUTBOX), 100)

    result = session.execute(reading)
    if not result.committed:  # WAIT_EXPIRED
        return "nothing"
    # Of these messages, the one that was written first. Versions follow the one serial order.
    oldest = min(result[messages], key=lambda message: message.version)
    return f"deliver {oldest.key.decode().removeprefix(OUTBOX)} {oldest.value.decode()}"


def delivered(session, number):
    """Takes a message out of the outbox, after it has arrived."""
    session.execute(kilokv.Transaction()
                    .guard_exists(OUTBOX + number)  # otherwise another process has taken it out
                    .delete(OUTBOX + number)
                    .add(UNDELIVERED, -1))
    return f"delivered {number}"


def run(session, words):
    verb, arguments = words[0], words[1:]
    if verb == "open" and len(arguments) == 3:
        return pay(session, arguments[0], WORLD, arguments[1], integer(arguments[2], 1))
    if verb == "pay" and len(arguments) == 4 and WORLD not in arguments[1:3]:
        return pay(session, *arguments[:3], integer(arguments[3], 1))
    if verb == "deliver" and len(arguments) == 1:
        return deliver(session, integer(arguments[0], 0) / 1000)
    if verb == "delivered" and len(arguments) == 1:
        return delivered(session, arguments[0])
    raise wrong_command()


if __name__ == "__main__":
    sys.exit(main(USAGE, run))
