// What integration tests share: a server for a file of tests, and clients that end with their test.
import { after, before } from 'node:test';

import { connect } from '../../src/index.js';
import { Server } from './server.js';

// A server that lives as long as the tests of this file. Returns an object with `server` and a function that connects.
export function useServer(flags = []) {
  const place = {
    server: null,
    // A client that the test closes at its end.
    async client(t, options = {}) {
      const db = await connect({ endpoint: place.server.endpoint, ...options });
      t.after(() => db.close());
      return db;
    },
    async session(t, options = {}) {
      const db = await place.client(t);
      return { db, session: await db.openSession(options) };
    },
  };
  before(async () => {
    place.server = await new Server(flags).start();
  });
  after(() => place.server.remove());
  return place;
}

let names = 0;

// Keys of this test alone.
export function freshKey(name = 'key') {
  names += 1;
  return `${name}/${names}`;
}
