// The inside of a session (session.js has its public part): requests in flight, the stream, acknowledgements, retries,
// and the lease. PendingRequest says which states a request has.
//
// Invariants:
//   - A request ends once, by #end(), which takes it out of #pending.
//   - There is at most one stream at a time.
//   - #queue has the requests in the state queued, and no others.
//   - A number is acknowledged after its results have been handed to the program (acknowledgements.js).
import { Acknowledgements } from './acknowledgements.js';
import { Backoff } from './backoff.js';
import { Timer, monotonicUs, now } from './clock.js';
import { splitAnswer } from './column_codec.js';
import { abortError, changed, errorOfMessage, isTooLargeForGrpc, makeError, ofManySendings } from './make_errors.js';
import { PendingRequest } from './pending_request.js';
import { decode, encode, message } from './protocol.js';
import { contradiction } from './results.js';
import { SendQueue } from './send_queue.js';
import { SendWindow } from './send_window.js';

const ATTEMPTS_KEPT = 4096;

// A request that is sent again under the same number is applied once. So it is retried unless it was clearly refused.
function retryable(error, ofStream) {
  switch (error.code) {
    case 'UNAVAILABLE':
      return true;
    case 'RESOURCE_EXHAUSTED': // no delay: waiting does not help
      return error.retryAfterUs !== 0n;
    case 'CANCELLED':
    case 'DEADLINE_EXCEEDED':
    case 'INTERNAL':
    case 'UNKNOWN':
      return ofStream;
    default:
      return false;
  }
}

// Whether resume() may send the request again, which ended with this error. No: it was refused for good, or never sent.
function canGoOn(error) {
  return error.mayHaveRun || (error.attempts !== 0 && (!error.neverRan || retryable(error, false)));
}

// Whether the server has too much to do, so that it would refuse other requests as well.
const isForLoad = (error) => error.reason === 'QUEUE_FULL' || error.reason === 'SESSION_FULL';

// What a stream without an error means: the server has ended it.
const streamEnded = () => makeError('UNAVAILABLE', 'the server has ended the stream');

export class SessionState {
  #connection;
  #leaseMs;
  #inFlightMax;
  #pending = new Map();
  #queue = new SendQueue();
  #window = new SendWindow();
  #windowRefusal = null; // the refusal that closed the window last; none while the window opens quickly
  #inFlight = 0; // requests that are not queued
  #attempts = new Map(); // of the last numbers that have ended: how often they were sent, and whether by unary calls
  #stream = null;
  #blocked = false; // the stream takes no more before it has sent something
  #greeted = false; // its first message, which names the session, was sent
  #answered = false; // the server has answered on it
  #reconnecting = null; // the timer that will open the stream again
  #backoff;
  #renewalTimer = null;
  #restTimer = null; // until the window has room again
  #closing = false;
  #ended = null; // the error with which the session has ended
  #onIdle = null; // called when the stream has ended

  constructor(connection, { id, leaseUs, holder = 0n, acknowledgedThrough = 0n, inheritedThrough = 0n }, inFlightMax) {
    this.#connection = connection;
    this.id = id;
    this.holder = holder;
    this.acknowledgements = new Acknowledgements(acknowledgedThrough, inheritedThrough);
    this.#leaseMs = Number(leaseUs) / 1000;
    this.#inFlightMax = inFlightMax;
    this.#backoff = new Backoff(connection.options);
    this.#renewIn(this.#leaseMs / 3);
  }

  get connection() {
    return this.#connection;
  }

  get closed() {
    return this.#closing;
  }

  get ended() {
    return this.#ended;
  }

  // Sends a request. Without a number it takes the next one. Returns the PendingRequest, whose promise ends with the
  // results, or with a KiloKVError that has `request` and `attempts`.
  submit(number, work, options) {
    this.checkUsable(number);
    const resumed = number !== null;
    const request = new PendingRequest(number, work, options, this.#connection.options);
    if (resumed) this.acknowledgements.resume(number);
    else request.number = this.acknowledgements.begin();
    request.attempts = resumed ? this.attempts(number) : 0;
    request.mayHaveRun = resumed;
    this.#pending.set(request.number, request);
    request.deadlineTimer = new Timer(options.deadline, () => this.#onDeadline(request));
    this.#listenTo(request);
    this.#queue.insert(request.number, request.mayWait);
    this.#pump();
    return request;
  }

  // Throws if the session is over, or the number cannot be resumed. `null` is a new number.
  checkUsable(number) {
    // What was sent before under a number may have run.
    const fate =
      number === null ? { notRun: true } : { mayHaveRun: true, request: number, attempts: this.attempts(number) };
    if (this.#closing) throw makeError('CANCELLED', 'the session is closed', fate);
    if (this.#ended) throw changed(this.#ended, fate);
    if (number === null || this.acknowledgements.canResume(number)) return;
    throw makeError(
      'FAILED_PRECONDITION',
      `request ${number} cannot be resumed: it is in flight, new, or ended for good`,
      fate,
    );
  }

  // Begins a request that does not use the stream but unary calls. endCall() must be called once for it.
  beginCall(number) {
    this.checkUsable(number);
    if (number === null) return this.acknowledgements.begin();
    this.acknowledgements.resume(number);
    return number;
  }

  // `error`: null if the request was answered.
  endCall(number, attempts, error, sessionGone) {
    this.#keepAttempts(number, attempts, true);
    this.#endNumber(number, error);
    if (sessionGone && !this.#ended) this.#endSession(error);
  }

  // How often a request was sent, which is in flight or was one of the last to end.
  attempts(number) {
    return this.#pending.get(number)?.attempts ?? this.#attempts.get(number)?.count ?? 0;
  }

  madeByCalls(number) {
    return this.#attempts.get(number)?.byCalls ?? false;
  }

  // Ends the requests in flight as cancelled. Resolves when the stream has ended.
  async close() {
    if (this.#closing) return;
    this.#closing = true;
    for (const timer of [this.#renewalTimer, this.#reconnecting, this.#restTimer]) timer?.cancel();
    this.#endAll([...this.#pending.values()], makeError('CANCELLED', 'the session was closed before the answer came'));
    if (!this.#stream) return;
    const idle = new Promise((resolve) => {
      this.#onIdle = resolve;
    });
    this.#stream.cancel();
    await idle;
  }

  #listenTo(request) {
    const { signal } = request;
    if (!signal) return;
    const abort = () => {
      request.noteLoss();
      if (request.attempts > 0) this.#cancelOnServer(request.number);
      this.#end(request, abortError(signal));
    };
    signal.addEventListener('abort', abort, { once: true });
    request.stopListening = () => signal.removeEventListener('abort', abort);
  }

  // The program does not wait any more. If this call fails, the transactions go on, as those of every request do.
  #cancelOnServer(number) {
    const transactions = message('CancelTransactions', { session: this.id, holder: this.holder, number });
    const request = message('CancelRequest', { target: { case: 'transactions', value: transactions } });
    this.#connection.call('Cancel', request, { deadline: this.#connection.deadline() }).catch(() => {});
  }

  // Opens a stream if there is something to send and no stream. Sends what the window and the stream have room for.
  #pump() {
    while (!this.#closing && !this.#reconnecting && !this.#blocked) {
      const number = this.#nextToSend();
      if (number === undefined) return;
      this.#stream ??= this.#openStream();
      this.#send(this.#pending.get(number));
    }
  }

  #nextToSend() {
    if (this.#queue.empty || this.#inFlight >= this.#inFlightMax) return undefined;
    return this.#queue.next(this.#window.hasRoom(now()));
  }

  #openStream() {
    this.#greeted = this.#answered = false;
    return this.#connection.openStream('Session', {
      onAnswer: (bytes) => this.#onAnswer(bytes),
      onDrain: () => {
        this.#blocked = false;
        this.#pump();
      },
      onEnd: (error) => this.#onStreamEnd(error ?? streamEnded()),
    });
  }

  #send(request) {
    this.#queue.erase(request.number);
    const greeting = this.#greeted ? {} : { session: this.id, holder: this.holder };
    const head = message('SessionRequest', {
      number: request.number,
      acknowledgedThrough: this.acknowledgements.through,
      traceparent: request.traceparent ?? '',
      ...greeting,
    });
    this.#greeted = true;
    request.attempts += 1;
    request.sent = true;
    request.state = 'sent';
    this.#inFlight += 1;
    if (!request.mayWait) {
      request.inWindow = true;
      this.#window.take();
    }
    request.endDelay();
    this.#blocked = !this.#stream.write(Buffer.concat([encode('SessionRequest', head), request.payload]));
  }

  #onAnswer(bytes) {
    if (this.#closing) return;
    this.#backoff.reset();
    this.#answered = true;
    let answer;
    let error;
    try {
      answer = splitAnswer('SessionResponse', bytes);
      error = answer.error && errorOfMessage(decode('Error', answer.error));
    } catch {
      this.#stream?.cancel(); // what is no answer is like a lost connection
      return;
    }
    const request = this.#pending.get(answer.number);
    if (!request) return; // it was given up meanwhile, or the answer is a repetition
    if (!error) {
      this.#receive(request, answer);
      return;
    }
    if (error.reason === 'SESSION_FENCED' && !this.#ended) this.#endSession(error);
    if (retryable(error, false)) this.#refuse(request, error);
    else this.#end(request, error);
  }

  #receive(request, answer) {
    const { collector } = request;
    let fresh;
    try {
      fresh = collector.add(answer);
      if (answer.last && !collector.complete) throw contradiction(`an answer to request ${request.number}`);
    } catch (error) {
      this.#end(request, error.code ? error : contradiction());
      return;
    }
    request.returnUs = monotonicUs();
    if (request.onResult) this.#tellProgram(request, fresh);
    if (!collector.complete || !this.#pending.has(request.number)) return;
    if (request.inWindow) {
      request.inWindow = false;
      this.#window.leaveAnswered(now());
    }
    if (this.#windowRefusal && this.#window.isQuiet(now())) this.#windowRefusal = null;
    this.#end(request, null);
  }

  // What the program throws in onResult() is no error of the request. It ends the program, as in every event listener.
  #tellProgram(request, fresh) {
    for (const index of fresh) {
      try {
        request.onResult(request.collector.at(index), index);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #refuse(request, error) {
    request.refusal = error;
    if (!error.neverRan) request.mayHaveRun = true;
    this.#queue.erase(request.number); // the refusal may be about a sending before a resumption
    request.retryTimer?.cancel();
    if (request.state === 'queued') this.#inFlight += 1;
    request.state = 'delayed';
    request.refusals.count += 1;
    request.refusedAt = now();
    if (request.inWindow) {
      request.inWindow = false;
      if (isForLoad(error)) this.#closeWindow(request.refusedAt, error);
      else this.#window.leave();
    }
    request.again = request.refusedAt + request.backoff.next(error.retryAfterUs);
    request.retryTimer = new Timer(request.again, () => {
      this.#inFlight -= 1;
      request.state = 'queued';
      this.#queue.insert(request.number, request.mayWait);
      this.#pump();
    });
    this.#pump();
  }

  #closeWindow(time, error) {
    const delayMs = Number(error.retryAfterUs) / 1000;
    this.#windowRefusal = error;
    if (this.#window.leaveRefused(time, delayMs)) this.#restTimer = new Timer(time + delayMs, () => this.#pump());
  }

  #onDeadline(request) {
    request.noteLoss();
    this.#end(request, this.#deadlineError(request));
  }

  #deadlineError(request) {
    const name = `request ${request.number}`;
    let error;
    if (!request.sent && !request.mayWait && this.#windowRefusal && !this.#window.hasRoom(now())) {
      const why = `the server had refused another: ${this.#windowRefusal.message}`;
      error = changed(this.#windowRefusal, {}, `the deadline passed before ${name} was sent; ${why}`);
    } else if (request.refusal && (!this.#answered || request.state !== 'sent')) {
      // If the server has answered on the stream, it may still work on what was sent on it.
      const text = `the deadline passed after ${request.attempts} attempts; the last one: ${request.refusal.message}`;
      error = changed(request.refusal, {}, text);
    } else if (!request.sent && !request.mayHaveRun) {
      return makeError(
        'DEADLINE_EXCEEDED',
        `${this.#connection.where('Session')}: ${name} was not sent within its deadline`,
      );
    } else {
      const text = `no answer to ${name} within its deadline; resume it to learn its results`;
      error = makeError('DEADLINE_EXCEEDED', `${this.#connection.where('Session')}: ${text}`);
    }
    if (!request.mayHaveRun || !error.neverRan) return error;
    return makeError('DEADLINE_EXCEEDED', `${error.message}; another sending of the request may have run`, {
      ...error,
      reason: '',
    });
  }

  #onStreamEnd(error) {
    this.#stream = null;
    this.#blocked = false;
    this.#onIdle?.();
    if (this.#closing) return;
    if (!this.#ended && error.code === 'FAILED_PRECONDITION') this.#endSession(error);
    const failed = this.#culprits(error);
    this.#queue.clear();
    for (const [number, request] of this.#pending) {
      if (request.state === 'delayed' || failed.includes(request)) continue;
      if (request.state === 'sent') {
        request.refusal = error;
        request.mayHaveRun = true;
        this.#inFlight -= 1;
      }
      this.#leaveWindow(request);
      request.state = 'queued';
      this.#queue.insert(number, request.mayWait);
    }
    if (!this.#queue.empty) this.#reconnectAt(now() + this.#backoff.next(error.retryAfterUs));
    this.#endAll(failed, this.#ended ?? error);
  }

  // The requests that end because their stream was lost with this error.
  #culprits(error) {
    const all = [...this.#pending.values()];
    if (this.#ended) return all;
    if (retryable(error, true)) return [];
    const sent = all.filter((request) => request.state === 'sent');
    // One message was too large for gRPC. It must be the largest one. The others only shared its stream.
    if (!isTooLargeForGrpc(error) || sent.length === 0) return sent;
    return [sent.reduce((a, b) => (b.payload.length > a.payload.length ? b : a))];
  }

  #reconnectAt(time) {
    this.#connection.connectAgain();
    this.#reconnecting?.cancel();
    this.#reconnecting = new Timer(time, () => {
      this.#reconnecting = null;
      this.#pump();
    });
  }

  // The error is about the session. So it does not say of any request whether it ran.
  #endSession(error) {
    this.#ended = changed(error, { notRun: false, mayHaveRun: false });
    this.#renewalTimer?.cancel();
  }

  #endAll(requests, error) {
    for (const request of requests) {
      if (!isTooLargeForGrpc(error)) request.noteLoss(); // gRPC refused this message before the server saw it
      this.#end(request, error);
    }
  }

  // Every request ends here. So this is the place where the error of the last sending becomes that of the request.
  #end(request, error) {
    const { number } = request;
    if (this.#pending.get(number) !== request) return;
    this.#leaveWindow(request);
    if (request.state !== 'queued') this.#inFlight -= 1;
    this.#queue.erase(number);
    this.#pending.delete(number);
    request.deadlineTimer?.cancel();
    request.retryTimer?.cancel();
    request.stopListening();
    this.#keepAttempts(number, request.attempts, false);
    const told = error ? this.#errorOfRequest(request, error) : null;
    this.#endNumber(number, told);
    if (told) request.reject(told);
    else request.resolve(request.collector.value());
    this.#pump(); // the window may have room now
  }

  // The program gets the results first. Then the server may drop them.
  #endNumber(number, error) {
    this.acknowledgements.end(number, error !== null && canGoOn(error));
    setImmediate(() => this.acknowledgements.settle());
  }

  #errorOfRequest(request, error) {
    let told = error;
    if (request.mayHaveRun) told = ofManySendings(error);
    else if (request.attempts === 0) told = changed(error, { notRun: true });
    const results = request.collector.list();
    return changed(told, { request: request.number, attempts: request.attempts, results });
  }

  #leaveWindow(request) {
    if (request.inWindow) this.#window.leave();
    request.inWindow = false;
  }

  #keepAttempts(number, count, byCalls) {
    this.#attempts.delete(number);
    this.#attempts.set(number, { count, byCalls });
    if (this.#attempts.size > ATTEMPTS_KEPT) this.#attempts.delete(this.#attempts.keys().next().value);
  }

  #renewIn(delayMs) {
    const time = now() + Math.max(delayMs, 100);
    this.#renewalTimer = new Timer(time, () => this.#renewLease(), { keepsRunning: false });
  }

  async #renewLease() {
    const request = message('KeepSessionAliveRequest', { session: this.id, holder: this.holder });
    const deadline = now() + Math.max(this.#leaseMs / 3, 1000);
    let error = null;
    try {
      await this.#connection.call('KeepSessionAlive', request, { deadline });
    } catch (failure) {
      error = failure;
    }
    if (this.#closing || this.#ended) return;
    if (error?.code === 'FAILED_PRECONDITION') {
      this.#endSession(error);
      return;
    }
    // Trying again soon does not help against a login that does not count any more.
    const soon = error && error.code !== 'UNAUTHENTICATED' && error.code !== 'PERMISSION_DENIED';
    this.#renewIn(soon ? Math.min(this.#leaseMs / 10, 1000) : this.#leaseMs / 3);
  }
}
