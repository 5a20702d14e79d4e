// A watch: the durable writes of a range, in the one serial order, each once.
import { copyOf, toHex, toInteger, toMicroseconds, toText, toUint64 } from './arguments.js';
import { Backoff } from './backoff.js';
import { callOptions } from './call_options.js';
import { now, sleepUntil } from './clock.js';
import { abortError, changed, makeError, misuse } from './make_errors.js';
import { message } from './protocol.js';
import { valueOf } from './results.js';
import { rangeOf } from './scan.js';

const NAMES = ['from', 'to', 'prefix', 'after', 'incarnation', 'reconnectMs', 'idleMs'];
const UINT32_MAX = 2 ** 32 - 1;

// A position, or a version such as the boundaryVersion of a scan.
function positionOf(after) {
  if (after === undefined) return undefined;
  const { version, writes = 0 } = typeof after === 'object' && after !== null ? after : { version: after };
  return message('WatchPosition', {
    version: toUint64(version, 'after'),
    writes: toInteger(writes, 'after.writes', 0, UINT32_MAX),
  });
}

function incarnationOf(text) {
  if (!/^([0-9a-f]{32})?$/.test(toText(text, 'incarnation')))
    throw misuse('the incarnation must be 32 hexadecimal digits', { field: 'incarnation' });
  return Buffer.from(text, 'hex');
}

function writeOf({ key, value, version, batchTimeUs, expiresAtUs, expired, batch, rank }) {
  const expiry = expiresAtUs === 0n ? null : expiresAtUs;
  return { key: copyOf(key), value: valueOf(value), version, batchTimeUs, expiresAtUs: expiry, expired, batch, rank };
}

// A program reads it part by part with `for await`. It has no end of its own.
export class Watch {
  #connection;
  #request;
  #signal;
  #reconnectMs;
  #idleMs;
  #lastAnswer; // when the program was through with it

  constructor(connection, options) {
    const { timeoutMs, signal } = callOptions(options, NAMES);
    if (timeoutMs !== undefined)
      throw misuse('a watch has no timeoutMs: give reconnectMs or a signal', { field: 'timeoutMs' });
    const { after, incarnation = '', reconnectMs = 60_000, idleMs = 10_000 } = options;
    this.#connection = connection;
    this.#signal = signal;
    this.#reconnectMs = Number(toMicroseconds(reconnectMs, 'reconnectMs')) / 1000;
    this.#idleMs = Number(toMicroseconds(idleMs, 'idleMs')) / 1000;
    this.#request = {
      range: message('KeyRange', rangeOf(options)),
      after: positionOf(after),
      incarnation: incarnationOf(incarnation),
    };
  }

  // Goes on after a lost connection, as long as the server comes back in time.
  async *[Symbol.asyncIterator]() {
    const backoff = new Backoff(this.#connection.options);
    this.#lastAnswer = now();
    for (;;) {
      try {
        for await (const part of this.#readStream()) {
          backoff.reset();
          yield part;
        }
      } catch (error) {
        if (this.#signal?.aborted) throw abortError(this.#signal);
        // The server cancels a stream whose client has taken no answer for long. A client that was closed stays so.
        const isLost = error.code === 'UNAVAILABLE' || (error.code === 'CANCELLED' && !error.notRun);
        if (!isLost || now() - this.#lastAnswer >= this.#reconnectMs) throw error;
        this.#connection.connectAgain();
        await sleepUntil(now() + backoff.next(error.retryAfterUs), this.#signal);
        if (this.#signal?.aborted) throw abortError(this.#signal);
      }
    }
  }

  // Yields the parts of one stream. It ends with an error. The request moves on with each answer, before the program
  // gets the part.
  async *#readStream() {
    const stream = this.#connection.openReader('Watch', message('WatchRequest', this.#request), this.#signal);
    let isIdle = false;
    try {
      for (;;) {
        const timer = setTimeout(() => {
          isIdle = true;
          stream.cancel();
        }, this.#idleMs);
        let answer;
        try {
          answer = await stream.next();
        } finally {
          clearTimeout(timer);
        }
        if (answer === null) throw makeError('UNAVAILABLE', 'the server has ended the watch');
        yield this.#partOf(answer);
        this.#lastAnswer = now();
      }
    } catch (error) {
      if (!isIdle) throw error;
      throw changed(error, {}, 'the server has sent nothing of the watch for too long', 'UNAVAILABLE');
    } finally {
      stream.cancel();
    }
  }

  #partOf({ writes, position, unfinished, incarnation }) {
    if (incarnation.length > 0) this.#request.incarnation = incarnation;
    this.#request.after = position;
    return {
      writes: writes.map(writeOf),
      position: { version: position?.version ?? 0n, writes: position?.writes ?? 0 },
      unfinished,
      incarnation: toHex(this.#request.incarnation),
    };
  }
}
