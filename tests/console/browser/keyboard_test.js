// The console without a mouse, and what a screen reader is told.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { ConsolePage, VIEWS } from '../support/page.js';
import { Server } from '../support/server.js';

let server;
let console_;

before(async () => {
  server = await Server.start();
  server.transaction({ then: [{ op: 'put', key: 'bank/account/alice', value: 10000 }] });
  server.startWaiting('door');
  console_ = await ConsolePage.open(server);
  await console_.waitFor('#tab-bank');
});

after(async () => {
  await console_?.browser.close();
  await server?.remove();
});

const press = async (...keys) => {
  for (const key of keys) await console_.page.keyboard.press(key);
};
const focused = () =>
  console_.page.evaluate(() => {
    const node = document.activeElement;
    const style = getComputedStyle(node);
    return {
      id: node.id,
      name: node.localName,
      text: node.innerText,
      ring: style.outlineStyle !== 'none' && style.outlineWidth !== '0px',
    };
  });

test('Tab reaches the views, and arrow keys move among them', async () => {
  await press('Tab');
  assert.equal((await focused()).text, 'To the content');
  await press('Tab', 'Tab');
  assert.deepEqual(await focused(), { id: 'tab-overview', name: 'button', text: 'Overview', ring: true });
  await press('ArrowRight');
  assert.equal((await focused()).id, 'tab-hot');
  await console_.waitFor('#view-hot');
  await press('End');
  assert.equal((await focused()).id, 'tab-bank');
  await press('ArrowRight');
  assert.equal((await focused()).id, 'tab-overview');
  await press('ArrowLeft', 'Home');
  assert.equal((await focused()).id, 'tab-overview');
});

test('every stop of Tab can be seen', async () => {
  for (const name of ['keys', 'transaction', 'waiting']) {
    await console_.view(name);
    await console_.page.focus(`#tab-${name}`);
    for (let stop = 0; stop < 40; stop += 1) {
      await press('Tab');
      const { name: element, ring, text } = await focused();
      if (element === 'body') break;
      assert.ok(ring, `${name}: ${element} ${text}`);
    }
  }
});

test('keys are found without a mouse', async () => {
  await console_.view('keys');
  await (await console_.field('Key or prefix')).focus();
  await console_.page.keyboard.type('bank/');
  await press('Enter');
  await console_.waitForText('#view-keys', 'Page 1: 1 pair ');
});

test('a question takes the focus, and Escape means no', async () => {
  await console_.view('waiting');
  await console_.waitForText('#view-waiting tbody', 'door');
  await console_.page.focus('#view-waiting tbody button');
  await press('Enter');
  await console_.waitForText('dialog', 'Cancel this transaction?');
  assert.equal((await focused()).text, 'Let it wait');
  await press('Escape');
  assert.equal((await console_.texts('dialog')).length, 0);
  assert.equal((await focused()).text, 'Cancel');
  assert.equal(JSON.parse(server.kilokv('--output', 'json', 'status')).parked, 1);
});

const NAMED = new Set([
  'button',
  'textbox',
  'searchbox',
  'combobox',
  'checkbox',
  'radio',
  'tab',
  'table',
  'dialog',
  'image',
  'meter',
  'spinbutton',
]);

function withoutName(node) {
  const here = NAMED.has(node.role) && !node.name ? [`${node.role} ${node.value ?? ''}`] : [];
  return [...here, ...(node.children ?? []).flatMap(withoutName)];
}

test('all that can be used has a name', async () => {
  for (const name of VIEWS) {
    await console_.view(name);
    const tree = await console_.page.accessibility.snapshot({ interestingOnly: false });
    assert.deepEqual(withoutName(tree), [], name);
  }
});

test('ids are used once', async () => {
  const ids = await console_.page.$$eval('[id]', (nodes) => nodes.map(({ id }) => id));
  assert.equal(new Set(ids).size, ids.length);
});

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));
