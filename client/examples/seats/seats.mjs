#!/usr/bin/env node
// Sells seats. A customer holds a seat for a time, and buys it within this time. A hold ends at its time by itself,
// also if the customer's program and the server both die. docs/recipes.md explains it.
//
// The keys of a seat:
//   seats/EVENT/SEAT/end      until when the seat is held, in microseconds; absent: it is free
//   seats/EVENT/SEAT/holder   the order that holds it
//   seats/EVENT/SEAT/sold     the order that has bought it
import { batchTime, FAIL, keyNamed, Transaction, WAIT } from 'kilokv';

import { main, milliseconds, wrongCommand } from '../example.mjs';

const USAGE = `\
seats [--endpoint HOST:PORT] VERB ...
  hold EVENT SEAT ORDER HOLD_MS WAIT_MS   holds the seat; waits up to WAIT_MS until it is free
  buy EVENT SEAT ORDER                    buys a seat that the order holds
  release EVENT SEAT ORDER                gives a hold back
Each order needs a name of its own.
`;
const KEPT_MS = 60_000; // a hold that has ended is forgotten after this time

function keysOf(event, seat) {
  const prefix = `seats/${event}/${seat}`;
  return { end: `${prefix}/end`, holder: `${prefix}/holder`, sold: `${prefix}/sold` };
}

async function hold(session, { end, holder, sold }, order, holdMs, waitMs) {
  const holdUs = BigInt(holdMs) * 1000n;
  // The server deletes both keys after the hold. This only frees their space: the time in `end` ends the hold.
  const kept = { ttlMs: holdMs + KEPT_MS };
  const result = await session.execute(
    new Transaction({ waitTimeoutMs: waitMs })
      .guardAbsent(sold) // first, so that a sale ends the wait
      .guardTimeAfter(keyNamed(end), waitMs > 0 ? WAIT : FAIL) // nobody holds it any more
      .put(end, batchTime, kept)
      .add(end, holdUs)
      .put(holder, order, kept)
      .otherwise()
      .get(sold)
      .get(holder)
      .get(end),
  );
  const now = result.batchTimeUs;
  if (result.committed) return `held at ${now} until ${now + holdUs}`;
  if (result.outcome === 'WAIT_EXPIRED') return `taken at ${now}`;
  if (result.outcome !== 'GUARD_FAILED') return result.outcome;
  const [buyer, holds, until] = result.reads.map(({ value }) => value);
  if (buyer !== null) return `${buyer.toString() === order ? 'bought' : 'sold'} at ${now}`;
  // An earlier run of this order has the hold, and its answer was lost.
  if (holds?.toString() === order && until > now) return `held at ${now} until ${until}`;
  return `taken at ${now}`;
}

async function buy(session, { end, holder, sold }, order) {
  const result = await session.execute(
    new Transaction()
      .guardAbsent(sold)
      .guardBytes(holder, order)
      .guardTimeBefore(keyNamed(end)) // the hold has not ended
      .put(sold, order)
      .delete(holder)
      .delete(end)
      .otherwise()
      .get(sold),
  );
  const now = result.batchTimeUs;
  if (result.committed) return `bought at ${now}`;
  if (result.outcome !== 'GUARD_FAILED') return result.outcome;
  const buyer = result.reads[0].value;
  if (buyer === null) return `not-held at ${now}`;
  return `${buyer.toString() === order ? 'bought' : 'sold'} at ${now}`; // an earlier run may have bought it
}

async function release(session, { end, holder }, order) {
  const result = await session.execute(
    new Transaction().guardBytes(holder, order).delete(holder).delete(end), // wakes the one who has waited longest
  );
  return `${result.committed ? 'released' : 'not-held'} at ${result.batchTimeUs}`;
}

async function run(session, [verb, event, seat, order, ...times]) {
  if (order === undefined) throw wrongCommand();
  const keys = keysOf(event, seat);
  if (verb === 'hold' && times.length === 2) {
    const holdMs = milliseconds(times[0], 1);
    const waitMs = milliseconds(times[1], 0);
    // First without a wait. So an order that is sent again finds its own hold, and does not wait for its end.
    const line = await hold(session, keys, order, holdMs, 0);
    return line.startsWith('taken') && waitMs > 0 ? hold(session, keys, order, holdMs, waitMs) : line;
  }
  if (verb === 'buy' && times.length === 0) return buy(session, keys, order);
  if (verb === 'release' && times.length === 0) return release(session, keys, order);
  throw wrongCommand();
}

await main(USAGE, run);
