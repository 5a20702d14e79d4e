#!/usr/bin/env node
// Three kinds of unique numbers. docs/recipes.md says which one is for what.
//
//   ids/NAME/last             the number of the last version that was taken
//   ids/NAME/next             how many numbers the blocks have used up
//   ids/NAME/numbered         how many documents have a number
//   ids/NAME/number/DOCUMENT  the number of a document
import { commitVersion, fromGet, Transaction } from 'kilokv';

import { integer, main, wrongCommand } from '../example.mjs';

const USAGE = `\
ids [--endpoint HOST:PORT] VERB ...
  version NAME             a number that grows, and never comes again, also after a restore from a backup
  block NAME COUNT         COUNT numbers at once; the program may give them out without the server
  number NAME DOCUMENT     1, 2, 3 and so on without a gap; the same document always gets the same number
`;

async function version(session, name) {
  // Each transaction that writes has a version.
  const result = await session.execute(new Transaction().put(`ids/${name}/last`, commitVersion));
  return `version ${result.version}`;
}

async function block(session, name, count) {
  const next = `ids/${name}/next`;
  const result = await session.execute(new Transaction().add(next, count).get(next));
  if (!result.committed) return result.outcome;
  const last = result.reads[0].value;
  return `block ${last - count + 1n} ${last}`;
}

async function number(session, name, document) {
  const numbered = `ids/${name}/numbered`;
  const own = `ids/${name}/number/${document}`;
  const result = await session.execute(
    new Transaction()
      .guardAbsent(own) // false: an earlier run has given it a number
      .add(numbered, 1)
      .get(numbered)
      .put(own, fromGet(1)) // what the get, operation 1, has read
      .otherwise()
      .get(own),
  );
  if (!result.committed && result.outcome !== 'GUARD_FAILED') return result.outcome;
  return `number ${result.reads[0].value}`; // both lists have one get
}

async function run(session, words) {
  const [verb, name, last] = words;
  if (verb === 'version' && words.length === 2) return version(session, name);
  if (verb === 'block' && words.length === 3) return block(session, name, integer(last, 1n));
  if (verb === 'number' && words.length === 3) return number(session, name, last);
  throw wrongCommand();
}

await main(USAGE, run);
