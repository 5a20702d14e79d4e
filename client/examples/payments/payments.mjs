#!/usr/bin/env node
// A ledger of payments. Each payment is applied once, however often it is sent, and by whichever process. Messages
// about payments leave through an outbox. docs/recipes.md explains it.
//
//   pay/account/NAME    the balance. The account "world" has what came in, negated, so that all balances sum to 0
//   pay/payment/ID      the text of a payment that was applied: FROM TO AMOUNT
//   pay/outbox/ID       the same text, as long as nobody has delivered it
//   pay/undelivered     how many texts are in the outbox
import { Transaction, WAIT } from 'kilokv';

import { endOf, integer, main, milliseconds, wrongCommand } from '../example.mjs';

const USAGE = `\
payments [--endpoint HOST:PORT] VERB ...
  open ID ACCOUNT AMOUNT     brings money in from outside
  pay ID FROM TO AMOUNT      moves money
  deliver WAIT_MS            takes one message from the outbox; waits up to WAIT_MS for it
  delivered ID               says that the message has arrived
Each payment needs an ID of its own. A payment that is sent again keeps its ID.
`;
const WORLD = 'world';
const OUTBOX = 'pay/outbox/';
const UNDELIVERED = 'pay/undelivered';

async function pay(session, id, from, to, amount) {
  const done = `pay/payment/${id}`;
  const text = `${from} ${to} ${amount}`;
  const payment = new Transaction().guardAbsent(done); // the idempotency key
  if (from !== WORLD) payment.guard(`pay/account/${from}`, '>=', amount);
  payment
    .add(`pay/account/${from}`, -amount)
    .add(`pay/account/${to}`, amount)
    .put(done, text)
    .put(OUTBOX + id, text)
    .add(UNDELIVERED, 1)
    .otherwise()
    .get(done);

  const result = await session.execute(payment);
  if (result.committed) return `paid ${id}`;
  if (result.outcome !== 'GUARD_FAILED') return result.outcome;
  const applied = result.reads[0].value;
  if (applied === null) return `refused ${id}: too little money`;
  // An earlier run has applied it. If the text differs, somebody has used the ID for another payment.
  return applied.toString() === text ? `paid ${id}` : `refused ${id}: the ID is that of ${applied}`;
}

// Reads the oldest message, and leaves it in the outbox.
async function deliver(session, waitMs) {
  const { reads } = await session.execute(
    new Transaction({ waitTimeoutMs: waitMs }).guard(UNDELIVERED, '>=', 1, WAIT).rangeGet(OUTBOX, endOf(OUTBOX), 100),
  );
  if (reads.length === 0) return 'nothing'; // WAIT_EXPIRED
  // Of these messages, the one that was written first. Versions follow the one serial order.
  const oldest = reads.reduce((first, read) => (read.version < first.version ? read : first));
  return `deliver ${oldest.key.toString().slice(OUTBOX.length)} ${oldest.value}`;
}

// Takes a message out of the outbox, after it has arrived.
async function delivered(session, id) {
  const message = OUTBOX + id;
  // If it is not there, another process has taken it out.
  await session.execute(new Transaction().guardExists(message).delete(message).add(UNDELIVERED, -1));
  return `delivered ${id}`;
}

async function run(session, [verb, ...words]) {
  const last = words.at(-1);
  if (verb === 'open' && words.length === 3) return pay(session, words[0], WORLD, words[1], integer(last, 1n));
  if (verb === 'pay' && words.length === 4 && !words.slice(1, 3).includes(WORLD)) {
    return pay(session, ...words.slice(0, 3), integer(last, 1n));
  }
  if (verb === 'deliver' && words.length === 1) return deliver(session, milliseconds(last, 0));
  if (verb === 'delivered' && words.length === 1) return delivered(session, last);
  throw wrongCommand();
}

await main(USAGE, run);
