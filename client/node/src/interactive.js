// Interactive transactions: the program reads, decides, buffers writes, and commits. commit() sends one transaction. It
// has a guard for every key that was read, and one for every range that was scanned.
//
// Keys are held as strings of latin1, one character for each byte: they compare as the server compares keys.
import { checkOptions, toBytes, toExpiry, toInt64, toInteger, toKeys } from './arguments.js';
import { Backoff } from './backoff.js';
import { now, sleepUntil } from './clock.js';
import { callOptions } from './call_options.js';
import { ConflictError } from './errors.js';
import { abortError, makeError, misuse } from './make_errors.js';
import { Scan, rangeOf } from './scan.js';
import { Transaction } from './transaction.js';

const KEYS_AT_ONCE = 1000;
const ATTEMPTS_MAX = 100;

const textOf = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
const bytesOf = (text) => Buffer.from(text, 'latin1');
const isInRange = (key, from, to) => key >= from && (to === '' || key < to);

// A copy of a value that a program gives or gets, so that nobody changes what the transaction has kept.
const copyOfValue = (value) => (value instanceof Uint8Array ? Buffer.from(value) : value);

export class InteractiveTransaction {
  #connection;
  #get;
  #send;
  #call;
  #reads = new Map(); // key -> { value, version }
  #ranges = []; // { from, to, boundaryVersion }
  #writes = new Map(); // key -> { value, options }; value null: deleted; options: those of a put
  #ended = false;

  // `get`: reads keys: (keys, options) -> Result. `send`: sends a transaction: (transaction, options) -> Result.
  constructor(connection, { get, send }, options) {
    this.#connection = connection;
    this.#get = get;
    this.#send = send;
    this.#call = callOptions(options);
    this.version = null;
  }

  async get(key) {
    return (await this.getMany([key]))[0];
  }

  async getMany(keys) {
    this.#checkOpen();
    const wanted = toKeys(keys).map(textOf);
    const unknown = new Set(wanted.filter((key) => !this.#writes.has(key) && !this.#reads.has(key)));
    await this.#read([...unknown]);
    return wanted.map((key) => copyOfValue((this.#writes.get(key) ?? this.#reads.get(key)).value));
  }

  // The pairs of a range, with the buffered writes of this transaction. With `limit`, only the part of the range that
  // was read must be unchanged at the commit.
  async scan(options = {}) {
    this.#checkOpen();
    checkOptions(options, ['from', 'to', 'prefix', 'reverse', 'limit'], 'the options of scan()');
    const { reverse = false, limit } = options;
    const most = limit === undefined ? Infinity : toInteger(limit, 'limit', 1, Number.MAX_SAFE_INTEGER);
    const range = rangeOf(options);
    const [from, to] = [textOf(range.from), textOf(range.to)];
    const { pairs, boundaryVersion } = await this.#scanServer({ ...range, reverse }, most, from, to);
    const merged = this.#merge(pairs, from, to, reverse);
    const shown = merged.slice(0, most);
    this.#ranges.push({ ...this.#guardedPart(shown, most, from, to, reverse), boundaryVersion });
    return shown.map(([key, value]) => ({ key: bytesOf(key), value: copyOfValue(value) }));
  }

  put(key, value, options = {}) {
    this.#checkOpen();
    toExpiry(options);
    const bytes = toBytes(key, 'key');
    const kept = typeof value === 'string' ? toBytes(value, 'value') : copyOfValue(value);
    const content = kept instanceof Uint8Array ? kept : toInt64(kept, 'value');
    this.#writes.set(textOf(bytes), { value: content, options: { ...options } });
  }

  delete(key) {
    this.#checkOpen();
    this.#writes.set(textOf(toBytes(key, 'key')), { value: null });
  }

  // Ends the transaction. Throws a ConflictError if something that it has read has changed.
  async commit() {
    this.#checkOpen();
    this.#ended = true;
    if (this.#reads.size === 0 && this.#ranges.length === 0 && this.#writes.size === 0) return;
    const guarded = [...this.#reads.keys(), ...this.#ranges.map(({ from }) => from)];
    const result = await this.#send(this.#build(), this.#call);
    if (result.committed) {
      this.version = result.version;
      return;
    }
    const key = result.outcome === 'GUARD_FAILED' ? guarded[result.failedIndex] : undefined;
    if (key === undefined) throw makeError('INTERNAL', `the commit ended as ${result.outcome}`);
    throw new ConflictError(`a conflict: ${JSON.stringify(key)} has changed since it was read`, bytesOf(key));
  }

  #build() {
    const transaction = new Transaction();
    for (const [key, { version }] of this.#reads) transaction.guardVersion(bytesOf(key), version);
    for (const { from, to, boundaryVersion } of this.#ranges) {
      transaction.guardRangeUnchanged(bytesOf(from), bytesOf(to), boundaryVersion);
    }
    for (const [key, { value, options }] of this.#writes) {
      if (value === null) transaction.delete(bytesOf(key));
      else transaction.put(bytesOf(key), value, options);
    }
    return transaction;
  }

  #checkOpen() {
    if (this.#ended) throw makeError('FAILED_PRECONDITION', 'the interactive transaction has ended', { notRun: true });
  }

  // Reads keys that are not known yet. If the values do not fit in one answer, it reads half as many keys at a time.
  async #read(keys) {
    let atOnce = KEYS_AT_ONCE;
    for (let begin = 0; begin < keys.length;) {
      const part = keys.slice(begin, begin + atOnce);
      let result;
      try {
        result = await this.#get(part.map(bytesOf), this.#call);
      } catch (error) {
        if (error.field !== 'keys' || part.length === 1) throw error;
        atOnce = Math.floor(part.length / 2);
        continue;
      }
      if (result.reads.length !== part.length)
        throw makeError('INTERNAL', 'the server answered a get without all of its reads');
      part.forEach((key, i) =>
        this.#reads.set(key, { value: result.reads[i].value, version: result.reads[i].version }),
      );
      begin += part.length;
    }
  }

  // Reads at least `most` pairs that this transaction has not deleted, or the whole range.
  async #scanServer(range, most, from, to) {
    let deleted = 0;
    for (const [key, { value }] of this.#writes) if (value === null && isInRange(key, from, to)) deleted += 1;
    const limit = most === Infinity ? {} : { limit: most + deleted };
    const scan = new Scan(this.#connection, { ...this.#call, ...range, ...limit });
    const pairs = [];
    for await (const { key, value } of scan) pairs.push([textOf(key), value]);
    return { pairs, boundaryVersion: scan.boundaryVersion };
  }

  // Puts the buffered writes into the pairs of a scan.
  #merge(pairs, from, to, reverse) {
    const merged = new Map(pairs);
    for (const [key, { value }] of this.#writes) {
      if (!isInRange(key, from, to)) continue;
      if (value === null) merged.delete(key);
      else merged.set(key, value);
    }
    const sorted = [...merged].sort(([a], [b]) => (a < b ? -1 : 1));
    return reverse ? sorted.reverse() : sorted;
  }

  // What is beyond the last pair of a full answer does not matter.
  #guardedPart(shown, most, from, to, reverse) {
    if (shown.length < most) return { from, to };
    const edge = shown.at(-1)[0];
    return reverse ? { from: edge, to } : { from, to: `${edge}\0` };
  }
}

// Runs `body` in a new transaction, and commits it, until there is no conflict. Returns what the last body has
// returned.
export async function runInteractive(begin, body, options, backoffOptions) {
  const { attemptsMax = ATTEMPTS_MAX, signal } = options;
  if (typeof body !== 'function') throw misuse('run() needs a function');
  const attempts = toInteger(attemptsMax, 'attemptsMax', 1, Number.MAX_SAFE_INTEGER);
  const backoff = new Backoff(backoffOptions);
  for (let attempt = 1; ; ++attempt) {
    const transaction = begin();
    const value = await body(transaction);
    try {
      await transaction.commit();
      return value;
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      if (attempt >= attempts)
        throw new ConflictError(`all ${attempts} attempts had conflicts; the last one: ${error.message}`, error.key);
    }
    await sleepUntil(now() + backoff.next(), signal);
    if (signal?.aborted) throw abortError(signal, { notRun: true });
  }
}
