// A session: each of its requests is applied once, however often it is sent. session_state.js does the work.
import { checkOptions, toHex, toInteger, toUint64 } from './arguments.js';
import { listRequests } from './attach.js';
import { callOptions } from './call_options.js';
import { Retry } from './connection.js';
import { isTooLargeToSend, misuse, withCallerStack } from './make_errors.js';
import { message } from './protocol.js';
import { commitWithUpload, needsUpload, uploadableGuards } from './read_set.js';
import { SessionState } from './session_state.js';
import { workOf } from './work.js';

const CLOSE_TIMEOUT_MS = 1000;
const UINT32_MAX = 2 ** 32 - 1;
export const IN_FLIGHT_MAX = 1024;

// A request that was sent. `results` is the promise of what it answers.
export class Request {
  #session;
  #pending; // a PendingRequest, or a commit with an upload

  // `results`: makes the promise. It gets a function with which the request goes on as another one.
  constructor(session, pending, results) {
    this.#session = session;
    this.#pending = pending;
    this.results = results((next) => {
      this.#pending = next;
      return next.promise;
    });
  }

  get number() {
    return this.#pending.number;
  }

  get attempts() {
    return this.#pending.attempts;
  }

  get invokeUs() {
    return this.#pending.invokeUs;
  }

  get returnUs() {
    return this.#pending.returnUs;
  }

  // How often the server refused it for the moment; null: it was not sent on the stream of the session.
  get refusals() {
    return this.#pending.refusals ?? null;
  }

  cancel(index) {
    return this.#session.cancel(this.number, index);
  }
}

// Cancels what is not decided of a request of a session. Returns how many transactions that were.
export async function cancelRequest(connection, target, index, options) {
  const { timeoutMs, signal } = callOptions(options);
  const indices = index === undefined ? [] : [toInteger(index, 'index', 0, UINT32_MAX)];
  const transactions = message('CancelTransactions', { ...target, indices });
  const request = message('CancelRequest', { target: { case: 'transactions', value: transactions } });
  const answer = await connection.call('Cancel', request, { deadline: connection.deadline(timeoutMs), signal });
  return answer.cancelled;
}

export class Session {
  #state;
  #connection;

  constructor(connection, identity, requestsInFlightMax = IN_FLIGHT_MAX) {
    const inFlightMax = toInteger(requestsInFlightMax, 'requestsInFlightMax', 1, UINT32_MAX);
    this.#connection = connection;
    this.#state = new SessionState(connection, identity, inFlightMax);
  }

  get id() {
    return toHex(this.#state.id);
  }

  get holder() {
    return this.#state.holder;
  }

  // Whether no request can be sent in this session any more.
  get ended() {
    return this.#state.closed || this.#state.ended !== null;
  }

  async execute(transactions, options = {}) {
    return await withCallerStack(this.submit(transactions, options).results);
  }

  submit(transactions, options = {}) {
    return this.#send(null, transactions, options);
  }

  resume(number, transactions, options = {}) {
    return this.#send(toUint64(number, 'number'), transactions, options);
  }

  async cancel(number, index, options = {}) {
    const { id, holder } = this.#state;
    return cancelRequest(this.#connection, { session: id, holder, number: toUint64(number, 'number') }, index, options);
  }

  async knownRequests(options = {}) {
    const { timeoutMs, signal } = callOptions(options);
    return listRequests(
      this.#connection,
      this.#state.id,
      this.#state.holder,
      this.#connection.deadline(timeoutMs),
      signal,
    );
  }

  acknowledgeThrough(number) {
    this.#state.acknowledgements.letGoOfInherited(toUint64(number, 'number'));
  }

  async close(options = {}) {
    checkOptions(options, ['keepOpen'], 'the options of close()');
    if (this.#state.closed) return;
    await this.#state.close();
    if (options.keepOpen) return;
    // An error does not matter here: if the server does not get this call, the session ends with its lease.
    const request = message('CloseSessionRequest', { session: this.#state.id, holder: this.#state.holder });
    const limits = { deadline: this.#connection.deadline(CLOSE_TIMEOUT_MS), retry: Retry.whereSomeoneListens };
    await this.#connection.call('CloseSession', request, limits).catch(() => {});
  }

  // Sends with an upload if it is needed: because of the number of guards, or because the server refused the request.
  #send(number, given, options) {
    const work = workOf(given);
    const call = callOptions(options, ['onResult']);
    const { onResult } = options;
    if (onResult !== undefined && typeof onResult !== 'function')
      throw misuse('onResult must be a function', { field: 'onResult' });
    const deadline = this.#connection.deadline(call.timeoutMs, work.waitMs);
    const state = this.#state;
    const upload = (as) => commitWithUpload(state, as, work, deadline, { ...call, onResult });
    const uploadable = uploadableGuards(work) > 0;
    // How an earlier holder has sent a number is not known. It has decided as this client does.
    const decides = number === null || number <= state.acknowledgements.inheritedThrough;
    if (uploadable && (decides ? needsUpload(work) : state.madeByCalls(number))) {
      const commit = upload(number);
      return new Request(this, commit, () => commit.promise);
    }
    const pending = state.submit(number, work, { ...call, onResult, deadline });
    if (number !== null || !uploadable) return new Request(this, pending, () => pending.promise);
    return new Request(this, pending, (goOnAs) =>
      pending.promise.catch((error) => {
        // The upload has another number. If an earlier sending ran, the transaction would be applied twice.
        if (!isTooLargeToSend(error) || !error.neverRan) throw error;
        return goOnAs(upload(null));
      }),
    );
  }
}
