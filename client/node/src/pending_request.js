// A request of a session that has not ended, and its states:
//   - queued: waits for the stream, or for room in the window
//   - sent: written to the stream
//   - delayed: was refused for the moment, and waits for its retry timer
import { Backoff } from './backoff.js';
import { monotonicUs, now } from './clock.js';

export class PendingRequest {
  state = 'queued';
  attempts = 0;
  invokeUs = monotonicUs();
  returnUs = null;
  refusals = { count: 0, early: 0, askedUs: 0n, waitedUs: 0n };
  again = 0; // state delayed: when to send it again
  refusedAt = null; // state delayed, or queued after it: when the refusal came
  refusal = null; // why the last attempt had no answer; becomes the error at the deadline
  sent = false; // since it was submitted or resumed
  mayHaveRun = false; // an attempt ended without a clear refusal, or an earlier submit sent this number
  inWindow = false; // it has a place in the window of the session
  deadlineTimer = null;
  retryTimer = null;
  stopListening = () => {}; // to the signal of the program

  constructor(number, work, { onResult, traceparent, signal }, options) {
    this.number = number;
    this.payload = work.payload('SessionRequest');
    this.collector = work.collector();
    this.mayWait = work.waitMs > 0;
    this.onResult = onResult;
    this.traceparent = traceparent;
    this.signal = signal;
    this.backoff = new Backoff(options);
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  // For a request that is on the wire, and whose stream ends or whose time is over before its answer comes.
  noteLoss() {
    if (this.state === 'sent') this.mayHaveRun = true;
  }

  // Measures how long the request has waited since its refusal, now that it is sent again.
  endDelay() {
    if (this.refusedAt === null) return;
    const waitedUs = BigInt(Math.round((now() - this.refusedAt) * 1000));
    this.refusedAt = null;
    this.refusals.askedUs += this.refusal.retryAfterUs;
    this.refusals.waitedUs += waitedUs;
    if (waitedUs < this.refusal.retryAfterUs) this.refusals.early += 1;
  }
}
