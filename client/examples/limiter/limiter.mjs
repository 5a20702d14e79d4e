#!/usr/bin/env node
// Limits how often somebody may do something: at most LIMIT times in each window of time. The server's stamps decide to
// which window a try belongs, so no client needs a right clock. docs/recipes.md explains it.
//
//   limit/WHO/WINDOW    how often WHO was allowed in this window; the server deletes it after the window
import { Transaction } from 'kilokv';

import { integer, main, milliseconds, wrongCommand } from '../example.mjs';

const USAGE = `\
limiter [--endpoint HOST:PORT] VERB ...
  allow WHO LIMIT WINDOW_MS    counts a try, and says whether it is allowed
`;

// A guess of the stamp of the next batch: the newest stamp that was seen. A wrong guess costs one more try.
let guessedTimeUs = 0n;

async function allow(session, who, limit, windowMs) {
  const windowUs = BigInt(windowMs) * 1000n;
  for (;;) {
    const window = guessedTimeUs / windowUs;
    const beginUs = window * windowUs;
    const endUs = beginUs + windowUs;
    const count = `limit/${who}/${window}`;
    const result = await session.execute(
      new Transaction()
        .guard(count, '<', limit)
        .guardTimeAfter(beginUs)
        .guardTimeBefore(endUs)
        .add(count, 1, { ttlMs: windowMs }), // no batch before the end of the window can find the key deleted
    );
    const now = result.batchTimeUs;
    guessedTimeUs = now;
    if (result.committed) return `allowed at ${now}`;
    if (result.outcome !== 'GUARD_FAILED') return result.outcome;
    if (now >= beginUs && now < endUs) return `refused at ${now} until ${endUs}`;
    // The guess was wrong. Now the stamp of a batch is known.
  }
}

async function run(session, words) {
  const [verb, who, limit, windowMs] = words;
  if (verb !== 'allow' || words.length !== 4) throw wrongCommand();
  return allow(session, who, integer(limit, 1n), milliseconds(windowMs, 1));
}

await main(USAGE, run);
