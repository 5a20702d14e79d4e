// A server of the protocol that answers what a test wants, for answers that a real server never gives.
import { Server, ServerCredentials } from '@grpc/grpc-js';

import { encode, message, methods } from '../../src/protocol.js';

const KINDS = { ExecuteBatch: { responseStream: true }, Session: { requestStream: true, responseStream: true } };

// `handlers`: by the name of the method, as those of @grpc/grpc-js. Requests and answers are bytes. Without a handler
// of its own, Status says that the server is ready, and OpenSession opens one.
export async function startFakeServer(t, handlers) {
  const all = {
    Status: (call, callback) =>
      callback(
        null,
        encode('StatusResponse', message('StatusResponse', { server: message('ServerSection', { state: 2 }) })),
      ),
    OpenSession: (call, callback) =>
      callback(
        null,
        encode(
          'OpenSessionResponse',
          message('OpenSessionResponse', { session: Buffer.alloc(16, 1), leaseUs: 60_000_000n }),
        ),
      ),
    CloseSession: (call, callback) => callback(null, Buffer.alloc(0)),
    ...handlers,
  };
  const server = new Server();
  const bytes = (value) => value;
  const definition = {};
  for (const name of Object.keys(all)) {
    definition[name] = {
      path: methods[name].path,
      requestStream: false,
      responseStream: false,
      ...KINDS[name],
      requestSerialize: bytes,
      requestDeserialize: bytes,
      responseSerialize: (value) => Buffer.from(value),
      responseDeserialize: bytes,
    };
  }
  server.addService(definition, all);
  const port = await new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  t.after(() => server.forceShutdown());
  return `127.0.0.1:${port}`;
}
