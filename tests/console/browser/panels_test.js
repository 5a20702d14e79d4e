// Each view of the console while a load runs: it shows numbers that move, light and dark, wide and narrow.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { ConsolePage, VIEWS } from '../support/page.js';
import { Server, until } from '../support/server.js';

let server;
let console_;

before(async () => {
  server = await Server.start(['--slow-transaction', '200ms']);
  const bank = ['run', '--workload', 'bank', '--keys', '2000', '--distribution', 'zipf:0.99'];
  server.load('kilokv-bench', ...bank, '--rate', '4000', '--batch-size', '64', '--duration', '300s');
  server.load('kilokv-bank', 'demo', '--duration', '300s', '--clients', '2', '--accounts', '450');
  server.startWaiting('door/open');
  console_ = await ConsolePage.open(server);
});

after(async () => {
  await console_?.browser.close();
  await server?.remove();
});

const tile = (name) =>
  console_.page.$$eval(
    '.tiles > div',
    (tiles, wanted) => tiles.find((one) => one.innerText.startsWith(wanted))?.lastChild.innerText,
    name,
  );

test('the overview shows the load', async () => {
  await until(async () => /^[1-9]/.test(await tile('transactions/s')), 'transactions per second');
  await until(async () => /ms|µs|s$/.test(await tile('p99 latency')), 'the latency');
  assert.equal(await tile('parked').then((text) => Number(text.replaceAll(',', '')) >= 1), true);
  for (const legend of ['committed', 'p99.9', 'mean size', 'execution', 'sync', 'rest']) {
    await console_.waitForText('.legend', new RegExp(`${legend.replace('.', '\\.')}\\s*[\\d,.]+`));
  }
  const facts = await console_.text('#view-overview .facts');
  for (const fact of [
    'strategy',
    'runs on',
    'batches: ',
    'all parts together',
    'log since the checkpoint',
    'records',
  ]) {
    assert.ok(facts.includes(fact), fact);
  }
  assert.equal(await console_.text('.state'), 'ready');
});

test('the charts are drawn', async () => {
  const painted = await console_.page.$$eval('.plot canvas', (canvases) =>
    canvases.map((canvas) =>
      canvas
        .getContext('2d')
        .getImageData(0, 0, canvas.width, canvas.height)
        .data.some((byte) => byte !== 0),
    ),
  );
  assert.deepEqual(painted, [true, true, true, true]);
});

test('the numbers move', async () => {
  const first = await console_.text('#view-overview .facts');
  await until(async () => (await console_.text('#view-overview .facts')) !== first, 'other numbers', 10);
});

test('hot keys', async () => {
  await console_.view('hot');
  const text = await console_.waitForText('#view-hot', 'acct0000');
  assert.match(text, /Writes\s+[\d,.]+\/s of all keys/);
  await console_.waitForText('#view-hot', /Waits[^]*demo-[0-9a-f]+-(empty|pocket)/);
});

test('parked transactions show their key', async () => {
  await console_.view('waiting');
  const row = await console_.waitForText('#view-waiting tbody tr', 'door/open');
  assert.match(row, /ipv4:127\.0\.0\.1:\d+/);
  assert.match(row, /1m \d+s/);
});

test('slow transactions show their stages', async () => {
  await console_.view('slow');
  await console_.waitForText('#view-slow tbody tr', /waiting[^]*waited \d/);
  await console_.waitForText('#view-slow .chips', /waiting [1-9]/);
});

test('sessions and connections', async () => {
  await console_.view('clients');
  await console_.waitForText('#view-clients', /Sessions\s+\d+/);
  await console_.waitForText('#view-clients', /[0-9a-f]{8}\s+no login/);
  await console_.waitForText('#view-clients', /ipv4:127\.0\.0\.1:\d+\s+no login/);
});

test('the bank shows accounts, the total and movements', async () => {
  await console_.view('bank');
  await console_.waitForText('#view-bank', /total\s+[\d,]+\.\d\d/);
  await console_.waitForText('#view-bank', /accounts\s+45\d/); // more than an answer has
  await console_.waitForText('#view-bank', /demo-[0-9a-f]+-customer-\d+/);
  await console_.waitForText('#view-bank', /transfer\s+[\d,.]+\s+demo-/);
  assert.ok(!(await console_.text('#view-bank')).includes('Kill the server'), 'only for a demo');
  const before = await console_.text('#view-bank .tiles');
  await until(async () => (await console_.text('#view-bank .tiles')) !== before, 'a newer batch', 10);
});

test('pictures, light and dark', async () => {
  for (const scheme of ['light', 'dark']) {
    await console_.colours(scheme);
    for (const name of VIEWS) {
      await console_.view(name);
      await until(async () => (await console_.text(`#view-${name}`)).length > 100, `the view ${name}`);
      await console_.page.evaluate(
        () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
      );
      await console_.screenshot(`${name}-${scheme}`);
    }
  }
});

test('the theme can be chosen', async () => {
  await console_.colours('light');
  const background = () => console_.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await console_.press('Theme: system');
  await console_.press('Theme: light');
  const dark = await background();
  assert.notEqual(dark, light);
  await console_.page.reload();
  await console_.waitFor('[role=tab][aria-selected=true]');
  assert.equal(await background(), dark);
  await console_.press('Theme: dark');
  assert.equal(await background(), light);
});

test('a narrow window scrolls only downwards', async () => {
  await console_.narrow();
  for (const name of VIEWS) {
    await console_.view(name);
    await until(async () => (await console_.text(`#view-${name}`)).length > 100, `the view ${name}`);
    assert.equal(await console_.sidewaysScroll(), 0, name);
    await console_.screenshot(`${name}-narrow`);
  }
});

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));
