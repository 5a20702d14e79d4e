// The server is killed and comes back: the page says so, tries again by itself, and goes on.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { ConsolePage } from '../support/page.js';
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
  const recovers = async (request) => {
    if (!request.url().includes('/console/api/call/')) return request.continue();
    return request.respond({ status: 503, contentType: 'application/json', body: JSON.stringify({ error }) });
  };
  console_.page.on('request', recovers);
  await console_.page.setRequestInterception(true);
  await console_.waitForText('.banner', 'The server is not ready: the server recovers');
  await console_.waitForText('.state', 'not ready');
  console_.page.off('request', recovers);
  await console_.page.setRequestInterception(false);
  await console_.waitForText('.banner', 'The server is back.');
});

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));
