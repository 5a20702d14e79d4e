// Scans: the pairs of a range at one boundary, page by page.
import { copyOf, toBytes, toInteger, toUint64 } from './arguments.js';
import { callOptions } from './call_options.js';
import { makeError, misuse } from './make_errors.js';
import { message } from './protocol.js';
import { valueOf } from './results.js';

const NAMES = ['from', 'to', 'prefix', 'reverse', 'limit', 'pagePairs', 'boundary'];
const UINT32_MAX = 2 ** 32 - 1;

// The first key after all keys that begin with `prefix`; empty: there is none.
function endOfPrefix(prefix) {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length -= 1;
  const end = Buffer.from(prefix.subarray(0, length));
  if (length > 0) end[length - 1] += 1;
  return end;
}

export function rangeOf({ from = '', to = '', prefix }) {
  if (prefix === undefined) return { from: toBytes(from, 'from'), to: toBytes(to, 'to') };
  if (from !== '' || to !== '') throw misuse('give prefix, or from and to, not both', { field: 'prefix' });
  const begin = toBytes(prefix, 'prefix');
  return { from: begin, to: endOfPrefix(begin) };
}

function pairOf({ key, value, version, expiresAtUs }) {
  return { key: copyOf(key), value: valueOf(value), version, expiresAtUs: expiresAtUs === 0n ? null : expiresAtUs };
}

// A scan that a program reads with `for await`: pair by pair, or page by page with pages(). It can be read once.
export class Scan {
  #connection;
  #request;
  #call;
  #limit;
  #begun = false;

  constructor(connection, options) {
    this.#call = callOptions(options, NAMES);
    const { reverse = false, limit, pagePairs = 0, boundary = 0n } = options;
    if (typeof reverse !== 'boolean') throw misuse('reverse must be true or false', { field: 'reverse' });
    this.#connection = connection;
    this.#limit = limit === undefined ? Infinity : toInteger(limit, 'limit', 1, Number.MAX_SAFE_INTEGER);
    this.#request = {
      range: rangeOf(options),
      reverse,
      limit: toInteger(pagePairs, 'pagePairs', 0, UINT32_MAX),
      boundary: toUint64(boundary, 'boundary'),
      keepBoundary: true,
    };
    // Of the first page, after it was read: the scan shows the state after this whole batch.
    this.boundary = null;
    this.boundaryVersion = null;
    this.batchTimeUs = null;
  }

  async *[Symbol.asyncIterator]() {
    for await (const page of this.pages()) yield* page;
  }

  // Yields lists of pairs. A list can be empty. Ends the scan on the server if the program stops early.
  async *pages() {
    if (this.#begun) throw misuse('a scan can be read once: begin another one');
    this.#begun = true;
    let left = this.#limit;
    let page = null;
    let complete = false;
    try {
      do {
        page = await this.#readPage(left);
        const pairs = page.pairs.map(pairOf);
        if (pairs.length > left) pairs.length = left;
        left -= pairs.length;
        complete = !page.more;
        yield pairs;
      } while (page.more && left > 0);
    } finally {
      if (page && !complete && page.reader.length > 0) await this.#giveUpBoundary();
    }
  }

  async #readPage(left) {
    const asked = this.#request.limit;
    // One more than the program wants would be read in vain.
    if (left < Infinity && (asked === 0 || left < asked)) this.#request.limit = Math.min(left, UINT32_MAX);
    let page;
    try {
      page = await this.#read();
    } catch (error) {
      if (error.field !== 'limit' || this.#request.limit === 0) throw error;
      this.#request.limit = 0; // the limit is more than the server has in a page
      page = await this.#read();
    }
    if (this.#request.reverse && !page.reverse)
      throw makeError('UNIMPLEMENTED', 'the server does not know reverse scans');
    this.boundary ??= page.boundary;
    this.boundaryVersion ??= page.boundaryVersion;
    this.batchTimeUs ??= page.batchTimeUs;
    this.#request.boundary = page.boundary;
    this.#request.reader = page.reader;
    const { from, to } = this.#request.range;
    this.#request.range = this.#request.reverse ? { from, to: page.nextTo } : { from: page.nextFrom, to };
    return page;
  }

  #read() {
    const { timeoutMs, signal, traceparent } = this.#call;
    const request = message('ScanRequest', { ...this.#request, range: message('KeyRange', this.#request.range) });
    const deadline = this.#connection.deadline(timeoutMs);
    return this.#connection.call('Scan', request, { deadline, signal, traceparent });
  }

  // Reads one more page, and does not ask to keep the boundary. If the call fails, the server drops the boundary when
  // it is too old.
  async #giveUpBoundary() {
    Object.assign(this.#request, { keepBoundary: false, limit: 1 });
    await this.#read().catch(() => {});
  }
}
