// TLS, logins, and the words for connections that fail.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after, before } from 'node:test';

import {
  LoginMissingError,
  LoginWrongError,
  RightMissingError,
  UnauthenticatedError,
  UnavailableError,
} from '../../src/errors.js';
import { Transaction, connect } from '../../src/index.js';
import { makeAuthority, makeCertificate } from '../support/certificates.js';
import { Server, runProgram, sleep } from '../support/server.js';

let folder;
let authority;
let ours;
let elsewhere;
let alice;

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'kilokv-certificates-'));
  authority = makeAuthority(folder, 'ca');
  makeAuthority(folder, 'stranger');
  ours = makeCertificate(folder, 'ca', 'server', 'server');
  elsewhere = makeCertificate(folder, 'ca', 'other', 'other');
  alice = makeCertificate(folder, 'ca', 'alice', 'client');
});
after(() => rmSync(folder, { recursive: true }));

async function start(t, flags) {
  const server = await new Server(flags).start();
  t.after(() => server.remove());
  return server;
}

const tlsFlags = ({ certFile, keyFile }) => ['--tls-cert', certFile, '--tls-key', keyFile];
const failure = (promise) => promise.then(assert.fail, (error) => error);

test('TLS with an authority, and what is wrong without it', async (t) => {
  const { endpoint } = await start(t, tlsFlags(ours));
  const db = await connect({ endpoint, tls: { caFile: authority } });
  assert.equal((await db.execute(new Transaction().put('k', 1))).outcome, 'COMMITTED');
  await db.close();

  const named = await connect({ endpoint: endpoint.replace('127.0.0.1', 'localhost'), tls: { caFile: authority } });
  await named.close();

  const plain = await failure(connect({ endpoint }));
  assert.ok(plain instanceof UnauthenticatedError, String(plain));
  assert.match(plain.message, /uses TLS, and this client does not/);

  const stranger = await failure(connect({ endpoint, tls: { caFile: join(folder, 'stranger.pem') } }));
  assert.ok(stranger instanceof UnauthenticatedError, String(stranger));
  assert.match(stranger.message, /certificate of the server at .* is not accepted/);
});

test('a client with TLS at a server without it', async (t) => {
  const { endpoint } = await start(t, []);
  const error = await failure(connect({ endpoint, tls: { caFile: authority }, connectTimeoutMs: 2000 }));
  assert.ok(error instanceof UnauthenticatedError, String(error));
  assert.match(error.message, /does not use TLS, and this client does/);
});

test('the name of the server must be that of its certificate', async (t) => {
  const { endpoint } = await start(t, tlsFlags(elsewhere));
  const error = await failure(connect({ endpoint, tls: { caFile: authority } }));
  assert.ok(error instanceof UnauthenticatedError, String(error));
  const db = await connect({ endpoint, tls: { caFile: authority, serverName: 'other.example' } });
  await db.close();
});

test('tokens, rights, and a login by a certificate', async (t) => {
  const token = join(folder, 'admin.token');
  const { endpoint } = await start(t, [
    ...tlsFlags(ours),
    '--tls-client-ca',
    authority,
    '--login',
    'on',
    '--bootstrap-file',
    token,
  ]);
  const tls = { caFile: authority, ...alice };
  const admin = await connect({ endpoint, tls, tokenFile: token });
  t.after(() => admin.close());
  assert.equal((await admin.status()).state, 'ready');
  const flags = [
    '--endpoint',
    endpoint,
    '--tls-ca',
    authority,
    '--tls-cert',
    alice.certFile,
    '--tls-key',
    alice.keyFile,
  ];
  const kilokv = (...command) => runProgram('kilokv', [...flags, '--token-file', token, ...command]);
  kilokv('role', 'grant', 'teller', '--read', 'account/', '--write', 'account/');
  kilokv('user', 'set', 'alice', '--role', 'teller', '--certificate', 'alice');

  const db = await connect({ endpoint, tls });
  t.after(() => db.close());
  const session = await db.openSession();
  assert.equal((await session.execute(new Transaction().put('account/alice', 5))).outcome, 'COMMITTED');
  const error = await failure(session.execute(new Transaction().put('bonus', 5)));
  assert.ok(error instanceof RightMissingError, String(error));
  assert.ok(error.neverRan);
  await assert.rejects(db.listSessions(), RightMissingError);
  assert.equal((await db.get('account/alice')).value, 5n);

  const wrong = await failure(connect({ endpoint, tls, token: `kilokv_${'0'.repeat(16)}_${'0'.repeat(64)}` }));
  assert.ok(wrong instanceof LoginWrongError, String(wrong));
  kilokv('token', 'create', 'alice', '--file', join(folder, 'alice.token'));
  const byToken = await connect({ endpoint, tls, token: readFileSync(join(folder, 'alice.token'), 'utf8').trim() });
  assert.equal((await byToken.get('account/alice')).value, 5n);
  await byToken.close();
});

test('a login that is missing', async (t) => {
  const token = join(folder, 'second.token');
  const { endpoint } = await start(t, ['--login', 'on', '--bootstrap-file', token]);
  assert.ok((await failure(connect({ endpoint }))) instanceof LoginMissingError);
  process.env.KILOKV_CLIENT_TOKEN_FILE = token;
  t.after(() => delete process.env.KILOKV_CLIENT_TOKEN_FILE);
  const db = await connect({ endpoint });
  await db.close();
});

test('nothing listens', async () => {
  const began = Date.now();
  const error = await failure(connect({ endpoint: '127.0.0.1:9' }));
  assert.ok(error instanceof UnavailableError, String(error));
  assert.match(error.message, /nothing listens at 127.0.0.1:9/);
  assert.ok(Date.now() - began < 3000, 'it ended at once');
  const unknown = await failure(connect({ endpoint: 'no-such-host.invalid:7070', connectTimeoutMs: 2000 }));
  assert.match(unknown.message, /cannot be resolved/);
});

test('something else listens', async (t) => {
  const other = createServer((socket) => {
    socket.on('error', () => {});
    socket.end('HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n');
  });
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const error = await failure(connect({ endpoint: `127.0.0.1:${other.address().port}`, connectTimeoutMs: 1500 }));
  assert.equal(error.code, 'UNAVAILABLE');
  assert.doesNotMatch(error.message, /undefined|\[object/);
});

test('a client can wait for a server that starts', async (t) => {
  const server = await start(t, []);
  const { endpoint } = server;
  await server.kill();
  const connecting = connect({ endpoint, waitForServerMs: 20_000 });
  await sleep(500);
  await server.start({ wait: false });
  const db = await connecting;
  assert.equal((await db.status()).state, 'ready');
  await db.close();
  await server.kill();
  const error = await failure(connect({ endpoint, waitForServerMs: 500 }));
  assert.equal(error.code, 'UNAVAILABLE');
});
