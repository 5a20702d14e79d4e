// The transaction editor, and transactions that wait.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';

import { ConsolePage, jsonAnswer, textAnswer } from '../support/page.js';
import { Server, until } from '../support/server.js';

const GUARDS = '#view-transaction fieldset:nth-of-type(1) .edit-rows > li';

let server;
let console_;

before(async () => {
  server = await Server.start();
  console_ = await ConsolePage.open(server, { view: 'transaction' });
});

beforeEach(async () => {
  server.transaction({
    then: [
      { op: 'put', key: 'alice', value: 80 },
      { op: 'put', key: 'bob', value: 0 },
      { op: 'put', key: 'name', value: 'text' },
    ],
  });
  await console_.page.reload();
  await console_.view('transaction');
});

after(async () => {
  await console_?.browser.close();
  await server?.remove();
});

const run = () => console_.press('Run the transaction');
const result = () => console_.text('#view-transaction .result');
const value = (key) => server.kilokv('get', key).trim();

async function writeJson(transaction) {
  await console_.page.click('input[value=json]');
  const field = await console_.waitFor('#view-transaction textarea');
  await field.evaluate((node, text) => {
    node.value = text;
  }, transaction);
}

test('a transaction commits', async () => {
  await run();
  const text = await console_.waitForText('#view-transaction .result', 'committed');
  assert.match(text, /version\s+\d/);
  assert.match(text, /batch\s+[\d,]+, rank \d+/);
  assert.match(text, /alice\s+30\s+integer\s+own write/);
  assert.equal(value('alice'), '30');
  assert.equal(value('bob'), '50');
});

test('the guard that failed is marked, with the value that the server saw', async () => {
  await run();
  await console_.waitForText('#view-transaction .result', 'committed');
  await run();
  await console_.waitForText('#view-transaction .result', 'guard failed');
  const marked = await console_.waitForText(
    `${GUARDS}.failed`,
    /The guard 0 was false: alice had the value 30 \(version [\d,]+\)\./,
  );
  assert.ok(marked);
  assert.match(await result(), /version\s+none: it wrote nothing/);
  assert.match(await result(), /alice\s+30\s+integer\s+[\d,]+/); // the read of "else"
  assert.equal(value('bob'), '50');
  await console_.screenshot('transaction-guard-failed');
  await console_.fill('number', '20', { within: GUARDS });
  assert.equal((await console_.texts(`${GUARDS}.failed`)).length, 0);
});

test('the second of two guards is marked', async () => {
  await console_.press('Add a guard');
  const second = '#view-transaction fieldset:nth-of-type(1) .edit-rows > li:nth-child(2)';
  await console_.choose('condition', 'absent', { within: second });
  await console_.fill('key', 'name', { within: second });
  await run();
  await console_.waitForText(`${second}.failed`, 'The guard 1 was false: name had the bytes text');
  assert.equal((await console_.texts(`${GUARDS}.failed`)).length, 1);
});

test('form and JSON are the same transaction', async () => {
  await console_.page.click('input[value=json]');
  const text = await (await console_.waitFor('#view-transaction textarea')).evaluate((node) => node.value);
  const parsed = JSON.parse(text);
  assert.deepEqual(parsed.guards, [{ key: 'alice', is: 'ge', value: 50, when_false: 'fail' }]);
  await writeJson(
    '{"guards": [{"key": {"b64": "/wA="}, "is": "eq", "value": 9223372036854775807}], "then": [{"op": "put", "key": "k", "value": {"b64": "AP8="}, "ttl_us": 60000000}]}',
  );
  await console_.page.click('input[value=form]');
  const read = async (label, where) => (await console_.field(label, where)).evaluate((node) => node.value);
  assert.equal(await read('key', { within: GUARDS }), '\\xff\\x00');
  assert.equal(await read('number', { within: GUARDS }), '9223372036854775807');
  await console_.page.click('input[value=json]');
  const again = await (await console_.waitFor('#view-transaction textarea')).evaluate((node) => node.value);
  assert.match(again, /"b64": "\/wA="/);
  assert.match(again, /"value": 9223372036854775807/);
  assert.match(again, /"value": \{"b64": "AP8="\}, "ttl_us": 60000000/);
});

test('mistakes are named, and nothing is sent', async () => {
  await writeJson('{"then": [{"op": "put", "key": "bob", "valeu": 1}]}');
  await run();
  await console_.waitForText('#view-transaction .fault', 'then[0]: has no field "valeu"');
  await writeJson('{"then": [');
  await run();
  await console_.waitForText('#view-transaction .fault', 'This is no JSON');
  assert.equal(value('bob'), '0');
});

test('a type mismatch marks the operation', async () => {
  await writeJson('{"then": [{"op": "get", "key": "bob"}, {"op": "add", "key": "name", "delta": 1}]}');
  await run();
  const text = await console_.waitForText('#view-transaction .result', 'type mismatch');
  assert.match(text, /operation of "then" 1/);
});

test('what the server refuses is shown', async () => {
  await writeJson(`{"then": [{"op": "get", "key": "${'k'.repeat(2000)}"}]}`);
  await run();
  await console_.waitForText('#view-transaction .problem', 'The server refused this.');
});

test('a transaction that is too long is not sent', async () => {
  const then = Array.from({ length: 9 }, (_, index) => ({ op: 'put', key: 'bob', value: `${index}`.repeat(1000) }));
  await writeJson(JSON.stringify({ then }));
  await run();
  const fault = await console_.waitForText('#view-transaction .fault', /has 12,\d{3} bytes of JSON/);
  assert.match(fault, /at most 8,192\. "kilokv txn" takes larger ones\./);
  assert.equal(value('bob'), '0');
});

test('after a failure, the page says whether the transaction may have run', async () => {
  const unknown = 'The transaction may have run, or not.';
  const answers = [
    [jsonAnswer(503, { code: 'UNAVAILABLE', reason: 'DRAINING', message: 'it stops' }), unknown],
    [jsonAnswer(400, { code: 'CANCELLED', message: 'it was cancelled' }), unknown],
    [jsonAnswer(503, { code: 'DEADLINE_EXCEEDED', message: 'it took long' }), unknown],
    [textAnswer(503, 'too many pages'), unknown],
    [{ status: 200, contentType: 'application/json', body: '{}' }, unknown],
    [
      jsonAnswer(429, { reason: 'CALLS_FULL', message: 'too many wait', not_run: true }),
      'The transaction has not run.',
    ],
    [jsonAnswer(400, { code: 'INVALID_ARGUMENT', reason: 'ANSWER_TOO_LARGE' }), 'The transaction has run, but'],
  ];
  for (const [answer, text] of answers) {
    const restore = await console_.intercept((path) => path.endsWith('/Execute') && answer);
    await run();
    await console_.waitForText('#view-transaction .result', text);
    await restore();
  }
  // The last answer is no refusal, and a new run takes away what was said before.
  assert.equal((await console_.texts('#view-transaction .panel > .problem')).length, 0);
  await run();
  await console_.waitForText('#view-transaction .result', 'committed');
});

test('an old problem does not stay beside a new one', async () => {
  const refused = jsonAnswer(400, { code: 'INVALID_ARGUMENT', message: 'the first problem', not_run: true });
  const restore = await console_.intercept((path) => path.endsWith('/Execute') && refused);
  await run();
  await console_.waitForText('#view-transaction .problem', 'the first problem');
  await restore();
  await writeJson('{"then": [');
  await run();
  await console_.waitForText('#view-transaction .fault', 'This is no JSON');
  assert.equal(await console_.text('#view-transaction .problem'), '');
});

const WAITING =
  '{"guards": [{"key": "door", "is": "ge", "value": 1, "when_false": "wait"}], "wait_timeout_ms": 60000, "then": [{"op": "add", "key": "door", "delta": -1}]}';

test('a transaction waits, and ends when its guard holds', async () => {
  await writeJson(WAITING);
  await run();
  await console_.waitForText('#view-transaction .progress', 'Waiting for');
  await until(() => JSON.parse(server.kilokv('--output', 'json', 'status')).parked === 1, 'a parked transaction');
  server.transaction({ then: [{ op: 'put', key: 'door', value: 1 }] });
  const text = await console_.waitForText('#view-transaction .result', 'committed');
  assert.match(text, /first tried in batch/);
  assert.equal(value('door'), '0');
});

test('a person gives up', async () => {
  await writeJson(WAITING);
  await run();
  await console_.press('Give up');
  await console_.waitForText('#view-transaction .result', 'You gave up.');
  await until(() => JSON.parse(server.kilokv('--output', 'json', 'status')).parked === 0, 'no parked transaction');
});

test('a parked transaction is shown and cancelled', async () => {
  const client = server.startWaiting('gate\u202e');
  const code = new Promise((resolve) => client.once('exit', resolve));
  await console_.view('waiting');
  await console_.waitForText('#view-waiting tbody tr', 'gate\\u202e');
  await console_.press('Cancel', '#view-waiting');
  const question = await console_.waitForText('dialog', 'Cancel this transaction?');
  assert.ok(question.includes('gate\\u202e'));
  await console_.press('Let it wait');
  assert.equal(JSON.parse(server.kilokv('--output', 'json', 'status')).parked, 1);
  await console_.press('Cancel', '#view-waiting');
  await console_.press('Cancel the transaction', 'dialog');
  await console_.waitForText('#view-waiting', 'No transaction waits.');
  assert.notEqual(await code, 0);
});

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));
