// Endpoints where no KiloKV server is: connect() ends soon, and says what is wrong.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import test from 'node:test';

import { DeadlineExceededError, UnavailableError, connect } from '../../src/index.js';

const HTTP = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

// Listens until the test ends. Returns the endpoint.
async function listening(t, onConnection) {
  const sockets = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    onConnection(socket);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${server.address().port}`;
}

async function refusedWithin(ms, options, kind, words) {
  const began = Date.now();
  await assert.rejects(connect(options), (error) => {
    assert.ok(error instanceof kind, `${error.name}: ${error.message}`);
    assert.match(error.message, words);
    assert.ok(error.message.includes(options.endpoint), error.message);
    return true;
  });
  assert.ok(Date.now() - began < ms, `it took ${Date.now() - began} ms`);
}

test('a wrong endpoint is an error at once', async (t) => {
  const web = await listening(t, (socket) => socket.end(HTTP));
  await refusedWithin(5000, { endpoint: web }, UnavailableError, /answers, but does not speak gRPC/);
  await refusedWithin(5000, { endpoint: 'no-such-host.invalid:1' }, UnavailableError, /cannot be resolved/);
  await refusedWithin(5000, { endpoint: '127.0.0.1:1' }, UnavailableError, /the connection is refused/);
});

test('what does not answer ends within the time to connect', async (t) => {
  const connectTimeoutMs = 500;
  const silent = await listening(t, () => {});
  await refusedWithin(5000, { endpoint: silent, connectTimeoutMs }, DeadlineExceededError, /no answer from/);
  const closing = await listening(t, (socket) => socket.destroy());
  await refusedWithin(5000, { endpoint: closing, connectTimeoutMs }, UnavailableError, /was closed/);
});
