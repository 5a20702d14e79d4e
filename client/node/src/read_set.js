// Commits with large read sets. A transaction may begin with more version guards than fit in one request. Then their
// keys are uploaded first, in chunks, under the number of the request. The server joins both to one transaction.
import { Backoff } from './backoff.js';
import { monotonicUs, now, sleepUntil } from './clock.js';
import { changed, isTooLargeToSend, makeError, ofManySendings } from './make_errors.js';
import { GuardKind, OnFalse } from './kinds.js';
import { message } from './protocol.js';
import { RowResults } from './results.js';

const GUARDS_MAX = 1024; // default of the server's --guards-max
const CHUNK_BYTES = 2 ** 20; // about the bytes of one message
const CHUNK_BYTES_MIN = 2 ** 12; // smallest chunk, for a server with a lower limit
const KEY_BYTES = 16; // most bytes of a key in a message, its own not counted

// How many guards at the begin of the transaction can be uploaded. 0: it is not alone in its request, or it may wait.
export function uploadableGuards(work) {
  if (work.size !== 1 || !work.messages) return 0;
  const { guards, waitTimeoutUs } = work.messages[0];
  if (waitTimeoutUs !== 0n || guards.some((guard) => guard.onFalse === OnFalse.WAIT)) return 0;
  const end = guards.findIndex((guard) => guard.kind !== GuardKind.version);
  return end < 0 ? guards.length : end;
}

export function needsUpload(work) {
  const uploadable = uploadableGuards(work);
  if (uploadable === 0) return false;
  const { guards } = work.messages[0];
  if (guards.length > GUARDS_MAX) return true;
  const bytes = guards.reduce((sum, guard) => sum + guard.key.length + KEY_BYTES, 0);
  return bytes > CHUNK_BYTES;
}

class Commit {
  #state;
  #connection;
  #transaction;
  #keys;
  #deadline;
  #options;
  #chunkBytes = CHUNK_BYTES;

  // `resumed`: an earlier sending of this number may have run.
  constructor(state, work, number, resumed, deadline, options) {
    this.#state = state;
    this.#connection = state.connection;
    this.#transaction = work.messages[0];
    this.#keys = uploadableGuards(work);
    this.#deadline = deadline;
    this.#options = options;
    this.number = number;
    this.attempts = state.attempts(number);
    this.mayHaveRun = resumed;
    this.sessionGone = false;
    this.invokeUs = monotonicUs();
    this.returnUs = null;
  }

  async run() {
    try {
      return await this.#runUntilEnd();
    } catch (failure) {
      let error = failure;
      if (this.mayHaveRun) error = ofManySendings(error);
      else if (this.attempts === 0) error = changed(error, { notRun: true });
      throw changed(error, { request: this.number, attempts: this.attempts });
    }
  }

  async #runUntilEnd() {
    const backoff = new Backoff(this.#connection.options);
    for (;;) {
      try {
        await this.#upload();
        return await this.#execute();
      } catch (error) {
        // The server does not have the keys, so they are uploaded again. If the session is gone, the first chunk fails.
        if (error.code !== 'FAILED_PRECONDITION' || this.sessionGone) throw error;
        const again = now() + backoff.next(error.retryAfterUs);
        if (again >= this.#deadline) throw error;
        await sleepUntil(again, this.#options.signal);
      }
    }
  }

  async #upload() {
    for (let begin = 0; begin < this.#keys;) {
      const [chunk, end] = this.#chunk(begin);
      try {
        await this.#call('UploadReadSet', chunk);
        begin = end;
      } catch (error) {
        if (isTooLargeToSend(error) && this.#chunkBytes > CHUNK_BYTES_MIN) {
          this.#chunkBytes /= 2;
          continue;
        }
        this.sessionGone = error.code === 'FAILED_PRECONDITION' && begin === 0;
        throw changed(error, { mayHaveRun: false }); // only an upload was lost, which runs nothing
      }
    }
  }

  // The keys from `begin` on that fit in a message, and their end.
  #chunk(begin) {
    const keys = [];
    const versions = [];
    let end = begin;
    for (let bytes = 0; end < this.#keys && bytes < this.#chunkBytes; ++end) {
      const { key, operand } = this.#transaction.guards[end];
      keys.push(key);
      versions.push(operand.value);
      bytes += key.length + KEY_BYTES;
    }
    return [message('UploadReadSetRequest', { id: this.#id(), offset: BigInt(begin), keys, versions }), end];
  }

  async #execute() {
    const { guards, then, else: otherwise, precedence, expireRunsElse } = this.#transaction;
    const fields = { guards: guards.slice(this.#keys), then, else: otherwise, precedence, expireRunsElse };
    const request = message('ExecuteRequest', {
      id: this.#id(),
      transaction: message('Transaction', fields),
      uploadedKeys: BigInt(this.#keys),
    });
    let answer;
    try {
      answer = await this.#call('Execute', request, () => {
        this.attempts += 1;
      });
    } catch (error) {
      if (!error.neverRan) this.mayHaveRun = true;
      throw error;
    }
    const results = new RowResults(1);
    results.add([answer.result]);
    this.returnUs = monotonicUs();
    return results.at(0);
  }

  // Retries every call, because in a session everything may be sent again.
  #call(name, request, onAttempt) {
    if (this.#state.closed) throw makeError('CANCELLED', 'the session was closed before the answer came');
    const { signal, traceparent } = this.#options;
    return this.#connection.call(name, request, { deadline: this.#deadline, signal, traceparent, onAttempt });
  }

  #id() {
    const { id, holder, acknowledgements } = this.#state;
    return message('RequestId', {
      session: id,
      holder,
      number: this.number,
      acknowledgedThrough: acknowledgements.through,
    });
  }
}

// Begins the commit of a transaction with an upload, in a session. `number`: null for a new request. Returns the
// commit; its promise ends with the result, or with a KiloKVError.
export function commitWithUpload(state, number, work, deadline, options) {
  const begun = state.beginCall(number);
  const commit = new Commit(state, work, begun, number !== null, deadline, options);
  commit.promise = commit.run().then(
    (result) => {
      state.endCall(begun, commit.attempts, null, false);
      options.onResult?.(result, 0);
      return work.single ? result : [result];
    },
    (error) => {
      state.endCall(begun, commit.attempts, error, commit.sessionGone);
      throw error;
    },
  );
  return commit;
}
