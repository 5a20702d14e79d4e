// Attaching to a session. A long list of requests comes in several answers.
import { randomBytes } from 'node:crypto';

import { numbers, message } from './protocol.js';
import { RowResults, contradiction } from './results.js';
import { toHex } from './arguments.js';
import { makeError } from './make_errors.js';

// More transactions than any server accepts in a request. A list that says so is wrong, and would take much memory.
const TRANSACTIONS_MAX = 2 ** 24;

const STATES = numbers('KnownRequest.State', {
  decided: 'STATE_DECIDED',
  partly_decided: 'STATE_PARTLY_DECIDED',
  parked: 'STATE_PARKED',
  queued: 'STATE_QUEUED',
});
const stateNames = new Map(Object.entries(STATES).map(([name, number]) => [number, name]));

// The requests that the server knows, by their numbers.
class KnownRequests {
  #list = [];

  // Adds a request, or further results to the last one.
  add(known) {
    if (known.transactions > TRANSACTIONS_MAX) throw contradiction('a list of requests');
    let last = this.#list.at(-1);
    if (!last || last.number < known.number) {
      last = { number: known.number, transactions: known.transactions, rows: new RowResults(known.transactions) };
      this.#list.push(last);
    }
    if (last.number !== known.number || last.transactions !== known.transactions)
      throw contradiction('a list of requests');
    last.state = stateNames.get(known.state) ?? 'queued'; // of what is accepted, it says least
    last.decided = known.decided;
    last.parked = known.parked;
    last.queued = known.queued;
    last.rows.add(known.results);
  }

  list() {
    return this.#list.map(({ number, state, transactions, decided, parked, queued, rows }) => {
      return { number, state, transactions, decided, parked, queued, results: rows.list() };
    });
  }
}

// Calls until the list is complete. Returns the last answer, and the requests.
async function listAll(connection, fields, deadline, signal) {
  const known = new KnownRequests();
  let request = fields;
  for (;;) {
    // It may arrive twice. Then the token keeps the holder, and a list changes nothing.
    const answer = await connection.call('AttachSession', message('AttachSessionRequest', request), {
      deadline,
      signal,
    });
    for (const one of answer.requests) known.add(one);
    if (!answer.more) return { answer, requests: known.list() };
    const { nextNumber, nextResult, holder } = answer;
    const from = [request.fromNumber ?? 0n, request.fromResult ?? 0n];
    const goesOn = nextNumber > from[0] || (nextNumber === from[0] && nextResult > from[1]);
    if (!goesOn || holder === 0n) throw contradiction('a list of requests');
    request = { ...request, holder, fromNumber: nextNumber, fromResult: nextResult };
  }
}

// Takes over the session. Returns what the answer says, and the identity of the session for this client.
export async function attach(connection, id, numbersUsed, deadline, signal) {
  const { answer, requests } = await listAll(connection, { session: id, attempt: randomBytes(8) }, deadline, signal);
  const { holder, leaseUs, acknowledgedThrough, frozen, incarnation } = answer;
  const used = [numbersUsed, requests.at(-1)?.number ?? 0n, acknowledgedThrough];
  const inheritedThrough = used.reduce((a, b) => (a > b ? a : b));
  const identity = { id, leaseUs, holder, acknowledgedThrough, inheritedThrough };
  return { identity, requests, acknowledgedThrough, frozen, incarnation: toHex(incarnation) };
}

export async function listRequests(connection, id, holder, deadline, signal) {
  if (holder === 0n) {
    const text =
      'this client has opened the session, and knows its requests: only a client that has attached can ask for them';
    throw makeError('FAILED_PRECONDITION', text, { notRun: true });
  }
  return (await listAll(connection, { session: id, holder }, deadline, signal)).requests;
}

// A session that this client holds now, and what has become of the requests of the client before it.
export class AttachedSession {
  constructor(session, { requests, acknowledgedThrough, frozen, incarnation }) {
    this.session = session;
    this.requests = requests; // those that the server knows, by their numbers
    this.acknowledgedThrough = acknowledgedThrough;
    this.frozen = frozen;
    this.incarnation = incarnation;
  }

  // The state of any number. It is final if it is decided or not_known.
  stateOf(number) {
    const wanted = BigInt(number);
    if (wanted <= this.acknowledgedThrough) return 'acknowledged';
    return this.requests.find((known) => known.number === wanted)?.state ?? 'not_known';
  }
}
