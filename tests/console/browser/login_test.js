// Logins, and what users without all rights see.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { ConsolePage, VIEWS, jsonAnswer } from '../support/page.js';
import { Server, until } from '../support/server.js';

let server;
let console_;
const tokens = {};

const readToken = (file) => readFileSync(file, 'utf8').trim();

function makeUser(name, ...rights) {
  server.kilokv('role', 'grant', `${name}-role`, ...rights);
  server.kilokv('user', 'set', name, '--role', `${name}-role`);
  const file = join(server.folder, `${name}.token`);
  server.kilokv('token', 'create', name, '--file', file);
  tokens[name] = readToken(file);
}

before(async () => {
  server = await Server.start(['--login', 'on']);
  tokens.admin = readToken(server.tokenFile);
  server.kilokv('role', 'grant', 'data', '--read', '', '--write', '');
  server.kilokv('user', 'set', 'admin', '--role', 'data');
  makeUser('teller', '--read', 'account/', '--write', 'account/');
  makeUser('monitor', '--metrics');
  for (const key of ['account/alice', 'secret/plan']) server.kilokv('put', key, '100');
  console_ = await ConsolePage.open(server, { ready: false });
});

after(async () => {
  await console_?.browser.close();
  await server?.remove();
});

async function logIn(token) {
  await console_.waitFor('form.login');
  await console_.fill('Token', token);
  await console_.press('Log in');
}

async function logOut() {
  await console_.press('Log out');
  await console_.waitFor('form.login');
}

// The token must be nowhere where scripts, or people who look at the screen, find it.
async function tokenIsKept(token) {
  const places = await console_.page.evaluate(() => [
    document.cookie,
    location.href,
    JSON.stringify({ ...localStorage }),
    JSON.stringify({ ...sessionStorage }),
    document.documentElement.outerHTML,
    ...[...document.querySelectorAll('input')].map(({ value }) => value),
  ]);
  for (const place of places) assert.ok(!place.includes(token.slice(-20)));
}

test('nothing is shown before the login', async () => {
  await console_.waitFor('form.login');
  assert.equal((await console_.texts('[role=tab]')).length, 0);
  assert.equal((await console_.texts('main')).length, 0);
  await console_.screenshot('login-light');
  await console_.colours('dark');
  await console_.screenshot('login-dark');
  await console_.colours('light');
});

test('a wrong token is refused', async () => {
  for (const token of ['nonsense', `${tokens.admin.slice(0, -4)}0000`]) {
    await logIn(token);
    await console_.waitForText('.login .fault', 'The server does not accept this token.');
  }
  assert.equal((await console_.texts('[role=tab]')).length, 0);
});

test('the administrator sees all', async () => {
  await logIn(tokens.admin);
  await console_.waitForText('.user', 'admin');
  await tokenIsKept(tokens.admin);
  await console_.waitForText('.tiles', /records\s+2/);
  for (const name of VIEWS.filter((view) => view !== 'bank')) {
    await console_.view(name);
    await until(async () => (await console_.text(`#view-${name}`)).length > 40, name);
    assert.equal(await console_.text(`#view-${name} .problem`), '', name);
  }
});

test('the login outlives a reload', async () => {
  await console_.page.reload();
  await console_.waitForText('.user', 'admin');
});

test('after the logout nothing is left', async () => {
  await console_.view('keys');
  await console_.waitForText('#view-keys tbody', 'secret/plan');
  await logOut();
  assert.equal(await console_.text('.user'), '');
  const html = await console_.page.evaluate(() => document.body.textContent);
  assert.ok(!html.includes('secret/plan'));
  await console_.page.reload();
  await console_.waitFor('form.login');
});

test('a teller sees the keys of accounts, and which rights are missing', async () => {
  await logIn(tokens.teller);
  await console_.waitForText('.user', 'teller');
  await console_.view('overview');
  await console_.waitForText('#view-overview .problem', 'This panel needs the metrics right.');
  await console_.view('waiting');
  await console_.waitForText('#view-waiting .problem', 'This panel needs the admin right');
  await console_.view('clients');
  await console_.waitForText('#view-clients .problem', 'This panel needs the metrics right.');
  await console_.view('keys');
  await console_.waitForText('#view-keys .problem', 'This panel needs the right to read');
  await console_.screenshot('keys-right-missing');
  await console_.fill('Key or prefix', 'account/');
  await console_.press('Show keys');
  await console_.waitForText('#view-keys tbody', /account\/alice\s+100/);
  await console_.view('transaction');
  await console_.fill('key', 'secret/plan', { within: '#view-transaction' });
  await console_.press('Run the transaction');
  await console_.waitForText('#view-transaction .problem', 'This panel needs the right to read each key');
  await console_.fill('key', 'account/alice', { within: '#view-transaction', at: 0 });
  assert.equal(await console_.text('.state'), 'connected');
  await logOut();
});

test('a monitor sees hashes in place of keys', async () => {
  await logIn(tokens.monitor);
  await console_.waitForText('.user', 'monitor');
  for (let count = 0; count < 60; count += 1) server.kilokv('put', 'secret/plan', String(count));
  await console_.view('hot');
  const text = await console_.waitForText('#view-hot', /#[0-9a-f]{16}/);
  assert.ok(!text.includes('secret'));
  await console_.view('overview');
  await console_.waitForText('.tiles', /records\s+2/);
});

test('a login that is taken away leads back to the form', async () => {
  server.kilokv('user', 'remove', 'monitor');
  await console_.waitFor('form.login');
});

async function loseCookie() {
  const devtools = await console_.page.createCDPSession();
  await devtools.send('Network.clearBrowserCookies');
  await devtools.detach();
}

// Only `method` may lead to the form: all other requests of the page get no answer.
async function leadsToForm(method, action) {
  await logIn(tokens.admin);
  await console_.waitForText('.user', 'admin');
  await console_.view('transaction');
  const error = { code: 'UNAUTHENTICATED', reason: 'LOGIN_MISSING', message: 'log in first', not_run: true };
  const answerOf = (path) => {
    if (path.endsWith(`/api/call/${method}`)) return jsonAnswer(401, error);
    return path.includes('/console/api/') ? 'never' : undefined;
  };
  const restore = await console_.intercept(answerOf);
  await loseCookie();
  await action();
  await console_.waitFor('form.login');
  assert.equal((await console_.texts('[role=tab]')).length, 0);
  assert.equal(await console_.text('.user'), '');
  await restore();
}

test('without its cookie, the view of clients leads back to the form', () =>
  leadsToForm('ListConnections', () => console_.page.click('#tab-clients')));

test('without its cookie, a transaction leads back to the form', () =>
  leadsToForm('Execute', () => console_.press('Run the transaction')));

test('nothing went wrong in the page', () => assert.deepEqual(console_.problems, []));
