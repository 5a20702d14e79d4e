#!/usr/bin/env node
// A stock with reservations. An order reserves all of its goods or none. It is shipped or cancelled later, once.
// docs/recipes.md explains it.
//
//   stock/free/ITEM        what can be reserved
//   stock/reserved/ITEM    what is reserved and not shipped yet
//   stock/shipped/ITEM     what has left
//   stock/delivery/ID      the text of a delivery that was counted: ITEM NUMBER
//   stock/order/ID         the state of an order: "reserved ITEM NUMBER ...", or "shipped ...", or "cancelled ..."
import { Transaction, WAIT } from 'kilokv';

import { integer, main, milliseconds, wrongCommand } from '../example.mjs';

const USAGE = `\
inventory [--endpoint HOST:PORT] VERB ...
  deliver ID ITEM NUMBER                   counts goods that came in
  reserve ORDER WAIT_MS ITEM NUMBER ...    reserves all of these, or nothing; waits up to WAIT_MS for goods
  ship ORDER                               the goods have left
  cancel ORDER                             the goods are free again; an order that still waits gets none
Each delivery and each order needs an ID of its own.
`;

// The number of each item that the words name, such as "tea 3 cup 2".
function goodsOf(words) {
  const goods = new Map();
  for (let i = 0; i < words.length; i += 2) goods.set(words[i], integer(words[i + 1] ?? '', 1n));
  // Each item once: guards see the state before the transaction, so two guards would both accept the last piece.
  if (goods.size === 0 || words.length !== 2 * goods.size) throw wrongCommand();
  return goods;
}

const textOf = (state, goods) => [state, ...[...goods].flat()].join(' ');

async function deliver(session, id, item, number) {
  const delivery = `stock/delivery/${id}`;
  await session.execute(
    new Transaction()
      .guardAbsent(delivery) // false: an earlier run has counted it
      .add(`stock/free/${item}`, number) // wakes orders that wait for it
      .put(delivery, `${item} ${number}`),
  );
  return `delivered ${id}`;
}

async function reserve(session, id, goods, waitMs) {
  const order = `stock/order/${id}`;
  const text = textOf('reserved', goods);
  const reserving = new Transaction({ waitTimeoutMs: waitMs });
  reserving.guardAbsent(order); // false: an earlier run has reserved
  for (const [item, number] of goods) {
    reserving
      .guard(`stock/free/${item}`, '>=', number, WAIT)
      .add(`stock/free/${item}`, -number)
      .add(`stock/reserved/${item}`, number);
  }
  reserving.put(order, text).otherwise().get(order);

  const result = await session.execute(reserving);
  if (result.committed) return text;
  if (result.outcome === 'WAIT_EXPIRED') return 'too-little';
  return result.outcome === 'GUARD_FAILED' ? `${result.reads[0].value}` : result.outcome;
}

// Ships or cancels an order. It reads the order first, because only the order says which keys to change. The guard
// makes sure that the order has not changed since. If it has, it is read again: an order changes at most twice.
async function finish(session, id, state) {
  const order = `stock/order/${id}`;
  const gets = state === 'shipped' ? 'shipped' : 'free';
  for (;;) {
    const { reads } = await session.execute(new Transaction().get(order));
    const text = reads[0].value?.toString();
    if (text === undefined && state === 'shipped') return 'unknown';
    if (text !== undefined && !text.startsWith('reserved')) return text; // it is finished
    const goods = text === undefined ? new Map() : goodsOf(text.split(' ').slice(1));
    const after = textOf(state, goods);

    const finishing = new Transaction();
    if (text === undefined) {
      finishing.guardAbsent(order); // whatever still waits for goods will find that the order is cancelled
    } else {
      finishing.guardBytes(order, text);
    }
    for (const [item, number] of goods) {
      finishing.add(`stock/reserved/${item}`, -number).add(`stock/${gets}/${item}`, number);
    }
    const result = await session.execute(finishing.put(order, after));
    if (result.committed) return after;
    if (result.outcome !== 'GUARD_FAILED') return result.outcome;
  }
}

async function run(session, [verb, id, ...words]) {
  if (verb === 'deliver' && words.length === 2) return deliver(session, id, words[0], integer(words[1], 1n));
  if (verb === 'reserve' && words.length >= 3) {
    return reserve(session, id, goodsOf(words.slice(1)), milliseconds(words[0], 0));
  }
  if (verb === 'ship' && id !== undefined && words.length === 0) return finish(session, id, 'shipped');
  if (verb === 'cancel' && id !== undefined && words.length === 0) return finish(session, id, 'cancelled');
  throw wrongCommand();
}

await main(USAGE, run);
