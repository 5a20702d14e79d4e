// The server is killed and comes back: the page says so, tries again by itself, and goes on.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { ConsolePage, jsonAnswer, textAnswer } from '../support/page.js';
import { Server, sleep, until } from '../support/server.js';

let server;
let console_;

before(async () => {
  server = await Server.start(['--console-kill', 'on']);
  server.transaction({ then: [{ op: 'put', key: 'bank/account/alice', value: 10000 }] });
  console_ = await ConsolePage.open(server);
  await console_.waitForText('.tiles', /records\s+1/);
});

after(async () => {
  await console_?.browser.close();
  await server?.remove();
});

async function goesAndComesBack(kill) {
  await kill();
  await console_.waitForText('.banner', 'The server does not answer.');
  await console_.waitForText('.state', 'no answer');
  await sleep(1500); // some tries fail
  await server.start();
  await console_.waitForText('.banner', /The server is back\. It was away for \d/);
  await until(async () => (await console_.texts('.banner')).length === 0, 'the end of the banner');
}

test('a banner appears and goes', async () => {
  await goesAndComesBack(() => server.kill());
  await console_.waitForText('.state', 'ready');
});

test('the numbers go on', async () => {
  const uptime = async () => /up for\s+([\d.]+) s/.exec(await console_.text('#view-overview .facts'))?.[1];
  const first = await until(uptime, 'the time since the start');
  await until(async () => Number(await uptime()) > Number(first), 'a later time');
});

test('a transaction whose answer was lost is said to be unknown', async () => {
  await console_.view('transaction');
  await console_.page.click('input[value=json]');
  const field = await console_.waitFor('#view-transaction textarea');
  await field.evaluate((node) => {
    node.value =
      '{"guards": [{"key": "door", "is": "ge", "value": 1, "when_false": "wait"}], "wait_timeout_ms": 60000, "then": [{"op": "get", "key": "door"}]}';
  });
  await console_.press('Run the transaction');
  await console_.waitForText('#view-transaction .progress', 'Waiting for');
  await goesAndComesBack(() => server.kill());
  await console_.waitForText('#view-transaction .result', 'No answer came.');
});

test('a person kills the server of a demo', async () => {
  await console_.view('bank');
  await console_.waitForText('#view-bank', /total\s+100\.00/);
  await goesAndComesBack(async () => {
    await console_.press('Kill the server', '#view-bank');
    await console_.waitForText('dialog', 'Kill the server?');
    await console_.press('Go back', 'dialog');
    await console_.press('Kill the server', '#view-bank');
    await console_.press('Kill the server', 'dialog');
    await server.end();
  });
  await console_.waitForText('#view-bank', /total\s+100\.00/);
});

test('a server that recovers is said to', async () => {
  const error = { code: 'UNAVAILABLE', reason: 'RECOVERING', message: 'the server recovers' };
  const restore = await console_.intercept((path) => path.includes('/api/call/') && jsonAnswer(503, error));
  await console_.waitForText('.banner', 'The server is not ready: the server recovers.');
  await console_.waitForText('.state', 'not ready');
  await restore();
  await console_.waitForText('.banner', 'The server is back.');
});

test('a server that is busy keeps the page', async () => {
  await console_.waitForText('.state', 'ready');
  await until(async () => (await console_.texts('.banner')).length === 0, 'the end of the banner');
  const busy = textAnswer(503, 'too many pages are asked for at the same time');
  const restore = await console_.intercept((path) => path.includes('/api/call/') && busy);
  await console_.view('clients');
  const problem = 'The server is busy. too many pages are asked for at the same time';
  await console_.waitForText('#view-clients .problem', problem);
  assert.equal(await console_.text('.state'), 'ready');
  assert.equal((await console_.texts('.banner')).length, 0);
  await restore();
  await until(async () => (await console_.texts('#view-clients .problem')).length === 0, 'the end of the problem');
});

test('a page that begins while the server is busy says so', async () => {
  const busy = textAnswer(503, 'too many pages are asked for at the same time');
  const restore = await console_.intercept((path) => path.endsWith('/api/session') && busy);
  await console_.page.reload();
  await console_.waitForText('.banner', 'The server is busy: too many pages are asked for at the same time.');
  await console_.waitForText('.state', 'busy');
  await restore();
  await console_.waitForText('.state', 'ready');
});

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));

test('the page loads from a server with few connections', async () => {
  const small = await Server.start(['--http-connections-max', '8']);
  try {
    for (let i = 0; i < 3; ++i) {
      const page = await ConsolePage.open(small);
      await page.waitForText('.state', 'ready');
      await page.browser.close();
    }
  } finally {
    await small.remove();
  }
});
