// The key browser, with keys and values that try to become something else than text.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { ConsolePage } from '../support/page.js';
import { Server, base64, until } from '../support/server.js';

const IMAGE = '<img src=x onerror="window.broken = true">';
const SCRIPT = '<script>window.broken = true</script>';

let server;
let console_;

const put = (key, value) => ({ op: 'put', key, value });
const bytes = (...list) => ({ b64: Buffer.from(list).toString('base64') });
const text = (one) => ({ b64: base64(one) });

before(async () => {
  server = await Server.start();
  server.transaction({
    then: [
      put(IMAGE, text(SCRIPT)),
      put('odd/javascript:alert(1)', text('"><svg onload=window.broken=true>')),
      put(text('odd/evil\u202egpj.exe'), text('\u2066isolated\u2069 \u200e\u200f')),
      put(text('odd/line\nbreak\x00\x1b[31m'), text('a\r\nb\tc')),
      put(
        { b64: Buffer.concat([Buffer.from('odd/bad'), Buffer.from([0xff, 0xc0, 0x80])]).toString('base64') },
        bytes(0, 1, 2, 0xfe),
      ),
      put('odd/back\\slash', text('\\x00 is text')),
      put(text('odd/日本'), text('ключ')),
      put('odd/number', 1),
      { ...put('odd/short', 7), ttl_us: 3_600_000_000 },
    ],
  });
  // 2^63 - 1 is no number of JavaScript, so its text is put together here.
  server.kilokv('put', 'odd/largest', '9223372036854775807');
  server.kilokv('put', '--', 'odd/least', '-9223372036854775808');
  server.transaction({
    then: Array.from({ length: 120 }, (_, index) => put(`page/${String(index).padStart(3, '0')}`, index)),
  });
  // The answers of the console are bounded, so a page can have one of these, and none of the vast one.
  const long = 'x'.repeat(30_000);
  for (let index = 0; index < 6; index += 1) server.transaction({ then: [put(`long/${index}`, long)] });
  server.transaction({ then: [put('vast', 'x'.repeat(500_000))] });
  console_ = await ConsolePage.open(server, { view: 'keys' });
});

after(async () => {
  await console_?.browser.close();
  await server?.remove();
});

async function show(prefix, { mode = 'prefix', size = '50' } = {}) {
  await console_.choose('Show', mode);
  await console_.fill('Key or prefix', prefix);
  await console_.choose('Pairs in a page', size);
  await console_.press('Show keys');
  // Until the rows of the page before have gone.
  const fits = (row) => (mode === 'from' ? row >= prefix : row.startsWith(prefix));
  await until(async () => (await rows()).every(fits), `rows of ${prefix}`);
}

const rows = () => console_.texts('#view-keys tbody tr');

test('keys and values stay text', async () => {
  await show('');
  await console_.waitForText('#view-keys tbody', IMAGE);
  const all = await console_.waitForText('#view-keys tbody', SCRIPT);
  assert.ok(all.includes(IMAGE));
  const inTable = await console_.page.$$eval('#view-keys tbody *', (nodes) => nodes.map(({ localName }) => localName));
  assert.ok(!inTable.includes('img') && !inTable.includes('script') && !inTable.includes('svg'));
  assert.equal(await console_.page.evaluate(() => window.broken), undefined);
});

test('what cannot be seen is escaped', async () => {
  await show('odd/');
  const all = await console_.waitForText('#view-keys tbody', 'odd/number');
  const shown = [
    'odd/evil\\u202egpj.exe',
    '\\u2066isolated\\u2069 \\u200e\\u200f',
    'odd/line\\x0abreak\\x00\\x1b[31m',
    'a\\x0d\\x0ab\\x09c',
    'odd/bad\\xff\\xc0\\x80',
    '000102fe',
    'odd/back\\\\slash',
    '\\\\x00 is text',
    'odd/日本',
    'ключ',
    '9223372036854775807',
    '-9223372036854775808',
    '"><svg onload=window.broken=true>',
  ];
  for (const one of shown) assert.ok(all.includes(one), `${one} in ${all}`);
  const raw = await console_.page.$eval('#view-keys', (node) => node.textContent);
  assert.doesNotMatch(raw, /[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00-\x09\x0b-\x1f]/);
  await console_.screenshot('keys-strange');
});

test('an expiry is shown', async () => {
  const all = await rows();
  assert.match(
    all.find((row) => row.startsWith('odd/short')),
    /in (59m \d+s|1h 0m)/,
  );
  assert.match(
    all.find((row) => row.startsWith('odd/number')),
    /never/,
  );
});

test('a key with escapes can be asked for as it is shown', async () => {
  await show('odd/bad\\xff\\xc0\\x80', { mode: 'key' });
  await console_.waitForText('#view-keys', /Page 1: 1 pair /);
  assert.match((await rows())[0], /^odd\/bad\\xff\\xc0\\x80/);
  await console_.fill('Key or prefix', 'odd/wrong\\q');
  await console_.press('Show keys');
  await console_.waitForText('#view-keys .fault', 'There is no escape');
});

test('pages follow each other', async () => {
  await show('page/');
  await console_.waitForText('#view-keys', 'Page 1: 50 pairs');
  await console_.press('Next page');
  await console_.waitForText('#view-keys', 'Page 2: 50 pairs');
  assert.match((await rows())[0], /^page\/050/);
  await console_.press('Next page');
  await console_.waitForText('#view-keys', 'Page 3: 20 pairs');
  assert.match((await rows()).at(-1), /^page\/119/);
  await console_.press('Previous page');
  await console_.waitForText('#view-keys', 'Page 2: 50 pairs');
  await show('page/110', { mode: 'from' });
  await console_.waitForText('#view-keys tbody', 'page/112');
  assert.match((await rows())[0], /^page\/110/);
});

test('no keys', async () => {
  await show('nothing/');
  await console_.waitForText('#view-keys', 'There are no such keys.');
});

test('long values make pages shorter', async () => {
  await show('long/');
  await console_.waitForText('#view-keys tbody', 'long/0');
  await console_.waitForText('#view-keys', 'The page has fewer pairs, because the values are long.');
  await console_.press('Show all 29.3 KiB', '#view-keys tbody');
  await console_.waitForText('dialog', /Value of long\/0, 29\.3 KiB/);
  await console_.press('Hex');
  await console_.waitForText('dialog pre', /^7878/);
  await console_.press('Close');
  const isLast = () =>
    console_.page.$$eval('#view-keys button', (all) => all.find((one) => one.innerText === 'Next page').disabled);
  let seen = (await rows()).length;
  for (let page = 2; !(await isLast()); page += 1) {
    await console_.press('Next page');
    await console_.waitForText('#view-keys', `Page ${page}:`);
    seen += (await rows()).length;
  }
  assert.equal(seen, 6);
});

test('a value that is too large for the console is said to be', async () => {
  await console_.fill('Key or prefix', 'vast');
  await console_.press('Show keys');
  await console_.waitForText('#view-keys .problem', 'The next entry alone is too large for this page');
});

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));
