// The channel of a client, and its calls with deadlines and retries.
import { Client, Metadata, connectivityState } from '@grpc/grpc-js';

import { Backoff } from './backoff.js';
import { deadlineAfter, now, sleepUntil } from './clock.js';
import { abortError, changed, errorOfStatus, makeError, withoutPromise } from './make_errors.js';
import { decode, methods } from './protocol.js';
import { contradiction } from './results.js';
import { channelCredentials, explainHandshake, explainMissingTls } from './security.js';

// When a call is made again.
export const Retry = Object.freeze({
  whenRefused: 'whenRefused', // only if the server is full, and said that nothing of it ran, and when to try again
  always: 'always', // also if the outcome is unknown: the call may run twice
  whereSomeoneListens: 'whereSomeoneListens', // the same, but not if no KiloKV server can be at the endpoint
});

// gRPC waits longer and longer before it connects again, by default up to two minutes. A server that restarts is back
// much sooner. The client sends a ping only while a call is open and the connection is silent.
function channelOptions({ tls }) {
  return {
    'grpc.initial_reconnect_backoff_ms': 50,
    'grpc.max_reconnect_backoff_ms': 1000,
    'grpc.dns_min_time_between_resolutions_ms': 1000,
    'grpc.keepalive_time_ms': 30_000,
    'grpc.keepalive_timeout_ms': 10_000,
    'grpc.keepalive_permit_without_calls': 0,
    'grpc.use_local_subchannel_pool': 1, // each client has its own connection
    'grpc.service_config_disable_resolution': 1,
    'grpc.max_receive_message_length': -1, // the server limits its answers
    'grpc.max_send_message_length': -1, // the server refuses what is too large, and names the setting
    ...(tls ? {} : { 'grpc.enable_http_proxy': 0 }), // a token goes to this machine only, and through no proxy
    ...(tls?.serverName ? { 'grpc.ssl_target_name_override': tls.serverName } : {}),
  };
}

// Of explain().
const nothingListens = (error) => error.code === 'UNAVAILABLE' && /nothing listens/.test(error.message);
// No KiloKV server is at the endpoint: to try again soon does not help.
const isWrongEndpoint = (error) =>
  error.code === 'UNAVAILABLE' && /nothing listens|cannot be resolved|does not speak gRPC/.test(error.message);

// A message of the transport in our own words. Empty if the message comes from the server.
function explain(text, endpoint) {
  if (/ECONNREFUSED/.test(text)) return `nothing listens at ${endpoint}: the connection is refused`;
  if (/Name resolution failed|ENOTFOUND|EAI_AGAIN/.test(text)) {
    return `the host of ${endpoint} cannot be resolved: check its name`;
  }
  if (/Protocol error|HTTP\/1|Parse Error|ERR_HTTP2_ERROR/.test(text)) {
    return `something at ${endpoint} answers, but does not speak gRPC: is the port wrong, or does it use TLS?`;
  }
  if (
    /Connection dropped|ECONNRESET|EPIPE|GOAWAY|RST_STREAM|socket hang up|[Kk]eepalive|No connection established$/.test(
      text,
    ) ||
    /Last error: Failed to connect/.test(text)
  ) {
    const causes = 'the server ended, restarts, or refused the connection, and then its log says why';
    return `the connection to ${endpoint} was closed: ${causes}`;
  }
  const reason = /No connection established\. Last error: (.*?)(?:\.? Resolution note:.*)?$/s.exec(text)?.[1];
  return reason ? `cannot connect to ${endpoint}: ${reason}` : '';
}

// The ErrorDetail of a status, or null. A malformed one counts as none.
function detailOf(metadata) {
  const bytes = metadata.get('kilokv-error-bin')[0];
  try {
    return bytes === undefined ? null : decode('ErrorDetail', bytes);
  } catch {
    return null;
  }
}

export class Connection {
  #client;
  #askedForTls = false;
  #closed = false;
  #readers = new Set(); // those that are open

  constructor(options) {
    this.options = options;
    this.#client = new Client(options.endpoint, channelCredentials(options), channelOptions(options));
  }

  close() {
    this.#closed = true;
    for (const reader of this.#readers) reader.cancel();
    this.#client.close();
  }

  // The deadline of a call. If the call has no timeout, it is the default timeout plus the time for which transactions
  // may wait on the server.
  deadline(timeoutMs, waitMs = 0) {
    return deadlineAfter(timeoutMs ?? this.options.requestTimeoutMs + waitMs);
  }

  where(name) {
    return `${name} at ${this.options.endpoint}`;
  }

  // Makes a call, with retries. Returns the answer. The error is that of the last attempt. If an earlier attempt may
  // have run, the error does not say that nothing ran.
  async call(name, request, { deadline, retry = Retry.always, traceparent, signal, onAttempt }) {
    return this.withRetries({ deadline, retry, signal }, () => {
      onAttempt?.();
      return this.#unary(name, request, { deadline, traceparent, signal });
    });
  }

  // Calls `attempt` until it succeeds, as `retry` says. `attempt` rejects with a KiloKVError.
  async withRetries({ deadline, retry, signal }, attempt) {
    const backoff = new Backoff(this.options);
    for (let mayHaveRun = false; ;) {
      if (signal?.aborted) throw abortError(signal, { notRun: !mayHaveRun, mayHaveRun });
      if (this.#closed) throw makeError('CANCELLED', 'the client is closed', { notRun: !mayHaveRun, mayHaveRun });
      let error;
      try {
        return await attempt();
      } catch (failure) {
        error = failure;
      }
      if (error.code === 'UNAVAILABLE') error = await this.#explainTls(error);
      if (!this.#mayRetry(error, retry) || !(await this.#waitBeforeRetry(error, deadline, signal, backoff))) {
        throw mayHaveRun ? withoutPromise(error) : error;
      }
      mayHaveRun ||= !error.neverRan;
    }
  }

  #unary(name, request, { deadline, traceparent, signal }) {
    const { path, serialize, deserialize } = methods[name];
    return new Promise((resolve, reject) => {
      const abort = () => call.cancel();
      const call = this.#client.makeUnaryRequest(
        path,
        serialize,
        deserialize,
        request,
        this.metadata(traceparent),
        this.#callOptions(deadline),
        (error, answer) => {
          signal?.removeEventListener('abort', abort);
          if (!error) resolve(answer);
          else reject(signal?.aborted ? abortError(signal, { mayHaveRun: true }) : this.errorOf(name, error));
        },
      );
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  // Reads a stream of answers to one request. `onAnswer` gets the bytes of each. Rejects with a KiloKVError.
  readStream(name, request, { deadline, traceparent, signal, onAnswer }) {
    const { path, serialize } = methods[name];
    return new Promise((resolve, reject) => {
      const options = this.#callOptions(deadline);
      const call = this.#client.makeServerStreamRequest(
        path,
        serialize,
        (bytes) => bytes,
        request,
        this.metadata(traceparent),
        options,
      );
      const abort = () => call.cancel();
      let failure = null;
      call.on('data', (bytes) => {
        if (failure) return;
        try {
          onAnswer(bytes);
        } catch (error) {
          failure = error.code ? error : contradiction('an answer'); // it is no message of the protocol
          call.cancel();
        }
      });
      call.on('error', () => {}); // `status` tells more
      call.on('status', (status) => {
        signal?.removeEventListener('abort', abort);
        if (failure) reject(failure);
        else if (status.code === 0) resolve();
        else reject(signal?.aborted ? abortError(signal, { mayHaveRun: true }) : this.errorOf(name, status));
      });
      signal?.addEventListener('abort', abort, { once: true });
    });
  }

  // Opens a stream of answers to one request, which the program reads at its own pace. next() resolves to the next
  // answer, and to null at the end. It rejects with a KiloKVError.
  openReader(name, request, signal) {
    if (this.#closed) throw makeError('CANCELLED', 'the client is closed', { notRun: true });
    const { path, serialize, deserialize } = methods[name];
    const call = this.#client.makeServerStreamRequest(path, serialize, deserialize, request, this.metadata(), {});
    call.on('error', () => {}); // the iterator tells it
    const answers = call[Symbol.asyncIterator]();
    const cancel = () => {
      signal?.removeEventListener('abort', cancel);
      this.#readers.delete(reader);
      call.cancel();
    };
    const next = async () => {
      try {
        const { value, done } = await answers.next();
        return done ? null : value;
      } catch (error) {
        throw error.metadata ? this.errorOf(name, error) : contradiction('an answer');
      }
    };
    const reader = { next, cancel };
    this.#readers.add(reader);
    signal?.addEventListener('abort', cancel, { once: true });
    return reader;
  }

  // Opens a stream of bytes in both directions. `onEnd` gets the error with which it ends, and null if there is none.
  openStream(name, { onAnswer, onDrain, onEnd }) {
    const bytes = (value) => value;
    const call = this.#client.makeBidiStreamRequest(methods[name].path, bytes, bytes, this.metadata(), {});
    call.on('data', onAnswer);
    call.on('drain', onDrain);
    call.on('error', () => {}); // `status` tells more
    call.on('status', (status) => onEnd(status.code === 0 ? null : this.errorOf(name, status)));
    return call;
  }

  metadata(traceparent) {
    const metadata = new Metadata();
    if (this.options.token) metadata.set('authorization', `Bearer ${this.options.token}`);
    if (traceparent) metadata.set('traceparent', traceparent);
    return metadata;
  }

  #callOptions(deadline) {
    return { deadline: Date.now() + Math.max(deadline - now(), 0) };
  }

  // Errors of the transport in our own words. Those of the server stay as they are.
  errorOf(name, status) {
    const detail = detailOf(status.metadata);
    const error = errorOfStatus(status, detail, this.where(name));
    const ofTransport = ['UNAVAILABLE', 'DEADLINE_EXCEEDED'].includes(error.code) || /RST_STREAM/.test(error.message);
    if (detail || !ofTransport) return error;
    const explained = explainHandshake(this.options, error);
    if (explained) return explained;
    // When the memory of the server's gRPC is full, it resets streams of any client. The service says nothing then, so
    // this is a lost connection.
    const lost = ['RESOURCE_EXHAUSTED', 'INTERNAL'].includes(error.code);
    const text = error.code === 'DEADLINE_EXCEEDED' ? '' : explain(status.details, this.options.endpoint);
    return changed(error, {}, text || error.message, lost ? 'UNAVAILABLE' : error.code);
  }

  async #explainTls(error) {
    if (this.options.tls || nothingListens(error) || error.reason || this.#askedForTls) return error;
    this.#askedForTls = true;
    return explainMissingTls(this.options, error);
  }

  #mayRetry(error, retry) {
    if (error.code === 'RESOURCE_EXHAUSTED')
      return error.retryAfterUs !== 0n && (error.notRun || retry !== Retry.whenRefused);
    if (error.code !== 'UNAVAILABLE' || retry === Retry.whenRefused) return false;
    return retry === Retry.always || !isWrongEndpoint(error);
  }

  // Returns false if the deadline comes before the next try.
  async #waitBeforeRetry(error, deadline, signal, backoff) {
    const again = now() + backoff.next(error.retryAfterUs);
    if (again >= deadline) return false;
    if (error.code === 'UNAVAILABLE') this.connectAgain();
    await sleepUntil(again, signal);
    return true;
  }

  // After a failed try, a channel may connect again only if the program asks for it.
  connectAgain() {
    const channel = this.#client.getChannel();
    if (channel.getConnectivityState(false) !== connectivityState.SHUTDOWN) channel.getConnectivityState(true);
  }
}
