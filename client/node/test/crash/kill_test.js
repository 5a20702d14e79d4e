// Transactions run in sessions while the server is killed with SIGKILL and started again, many times. At the end
// nothing is unknown, no transaction was applied twice, and the judge accepts the history together with the final
// state.
//
// Flags, as in `npm test -- crash --kills 50 --seed 7`: how many kills (5), and the seed of the load and of the kills.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { parseArgs } from 'node:util';

import {
  FAIL,
  Transaction,
  TransactionColumns,
  WAIT,
  batchTime,
  commitVersion,
  connect,
  fromGet,
  historyHeader,
  historyLine,
  historyScanLine,
  keyNamed,
} from '../../src/index.js';
import { monotonicUs } from '../../src/clock.js';
import { Server, judge, runProgram, sleep } from '../support/server.js';

const { values: flags } = parseArgs({
  args: (process.env.KILOKV_TEST_FLAGS ?? '').split(' ').filter(Boolean),
  options: { kills: { type: 'string', default: '5' }, seed: { type: 'string' } },
});
const kills = Number(flags.kills);
const seed = Number(flags.seed ?? Date.now() % 1_000_000);
const WORKERS = 8;
const ACCOUNTS = 40;
const BALANCE = 100;
const TIMEOUT_MS = 120_000;

// A small generator of random numbers, so that a seed replays the load.
function randomFrom(start) {
  let state = start >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const account = (i) => `account/${String(i).padStart(3, '0')}`;

// One transaction of the load. `marks` gets the keys of counters that count each commit once.
function transactionOf(random, mark) {
  const [from, to] = [account(random(ACCOUNTS)), account(random(ACCOUNTS))];
  const amount = 1 + random(30);
  switch (random(8)) {
    case 0:
      return new Transaction({ precedence: random(3) }).get(from).get(to);
    case 1:
      return new Transaction({ waitTimeoutMs: 5 + random(200) })
        .guard(from, '>=', amount, WAIT)
        .add(from, -amount)
        .add(to, amount);
    case 2:
      return new Transaction({ waitTimeoutMs: 5 + random(50), expireRunsElse: true })
        .guard(from, '>', 10 * BALANCE, WAIT)
        .add(mark, 1)
        .otherwise()
        .add(mark, 1);
    case 3:
      return new Transaction()
        .guard(from, '<=', keyNamed(to), FAIL)
        .get(from)
        .put(`copy/${from}`, fromGet(0))
        .put('at', batchTime);
    case 4:
      return new Transaction()
        .rangeGet('account/', 'account0', 3)
        .rangeGetReverse('copy/', 'copy0', 2)
        .put('version', commitVersion);
    case 5:
      return new Transaction()
        .guardAbsent(`hold/${from}`)
        .put(`hold/${from}`, Buffer.from(from))
        .otherwise()
        .delete(`hold/${from}`);
    default:
      return new Transaction().guard(from, '>=', amount).add(from, -amount).add(to, amount).add(mark, 1);
  }
}

class Load {
  #random;
  #file;
  #beganUs = monotonicUs();
  ended = false;
  answered = 0;
  sentAgain = 0;

  constructor(file) {
    this.#random = randomFrom(seed);
    this.#file = file;
  }

  #write(transaction, answer, sender, index) {
    appendFileSync(this.#file, historyLine(transaction, answer, { ...sender, beganUs: this.#beganUs }, index));
  }

  // Sends requests of one to four transactions until the load ends, as rows or as columns.
  async work(db, mark) {
    const session = await db.openSession();
    while (!this.ended) {
      const list = Array.from({ length: 1 + this.#random(4) }, () => transactionOf(this.#random, mark));
      const content = this.#random(2) === 0 ? list : TransactionColumns.of(list);
      const times = new Map();
      const onResult = (result, index) => times.set(index, monotonicUs());
      const request = session.submit(content, { onResult, timeoutMs: TIMEOUT_MS });
      const answer = await request.results;
      const sender = { session: session.id, request: request.number, invokeUs: request.invokeUs };
      list.forEach((transaction, index) => {
        const result = Array.isArray(answer) ? answer[index] : answer.at(index);
        this.#write(transaction, result, { ...sender, attempts: request.attempts, returnUs: times.get(index) }, index);
      });
      this.answered += list.length;
      if (request.attempts > 1) this.sentAgain += 1;
    }
  }

  // Reads the accounts at one boundary, again and again. Between two pages the server may be killed: then the scan
  // starts again.
  async scan(db) {
    while (!this.ended) {
      const invokeUs = monotonicUs();
      const range = { from: 'account/', to: 'account0' };
      const scan = db.scan({ ...range, timeoutMs: TIMEOUT_MS });
      const pairs = [];
      for await (const pair of scan) pairs.push(pair);
      const sender = { beganUs: this.#beganUs, invokeUs, returnUs: monotonicUs() };
      appendFileSync(this.#file, historyScanLine(range, scan, pairs, sender));
      await sleep(20);
    }
  }
}

async function killAgainAndAgain(server, random) {
  for (let i = 0; i < kills; ++i) {
    await sleep(100 + random(900));
    await server.kill();
    if (random(5) === 0) {
      await server.start({ wait: false });
      await sleep(random(100));
      await server.kill();
    }
    await server.start();
  }
}

test(`nothing is unknown and nothing is doubled over ${kills} kills (--seed ${seed})`, async (t) => {
  const server = await new Server(['--checkpoint-interval', '500ms']).start();
  t.after(() => server.remove());
  const history = join(server.folder, 'history.jsonl');
  const db = await connect({ endpoint: server.endpoint });
  const first = await db.openSession();
  await first.execute(Array.from({ length: ACCOUNTS }, (_, i) => new Transaction().put(account(i), BALANCE)));
  const initial = [];
  for await (const pair of db.scan()) initial.push(pair);
  writeFileSync(history, historyHeader({ test: 'client/node', seed }, initial));

  const load = new Load(history);
  const workers = Array.from({ length: WORKERS }, (_, i) => load.work(db, `mark/${i}`));
  workers.push(load.scan(db));
  const working = Promise.all(workers);
  await Promise.race([killAgainAndAgain(server, randomFrom(seed + 1)), working]);
  load.ended = true;
  await working; // a request of unknown fate, or with an error, would throw here

  let total = 0n;
  for await (const { value } of db.scan({ prefix: 'account/' })) total += value;
  assert.equal(total, BigInt(ACCOUNTS * BALANCE), 'money was lost or made');
  await db.close();
  const final = join(server.folder, 'final.jsonl');
  writeFileSync(final, runProgram('kilokv', ['--endpoint', server.endpoint, '--output', 'json', 'scan']));
  const judged = spawnSync('python3', [judge, history, '--final-state', final], { encoding: 'utf8' });
  t.diagnostic(`${judged.stdout}${judged.stderr}`.trim());
  t.diagnostic(`answered ${load.answered} transactions, sent ${load.sentAgain} requests again, unknown 0`);
  assert.equal(judged.status, 0, `the judge refuses the history: ${judged.stdout}${judged.stderr}`);
  assert.ok(load.answered > 100 * kills, `only ${load.answered} transactions`);
  assert.ok(load.sentAgain > 0, 'no request was sent again: the kills came at no good time');
  assert.ok(!readFileSync(history, 'utf8').includes('"outcome": null'));
});
