// Role: calls of the server. Each answer is JSON. Each failure is an ApiError, or an AbortError if the caller gave up.

import { showText } from './keys.js';

const TIMEOUT_MS = 10_000;

// `kind` says what the page does about it:
//   login        nobody is logged in (any more)
//   right        the user lacks a right
//   unreachable  no answer came
//   away         the server recovers, or is about to stop
//   too_large    the answer would be too large: ask for less
//   refused      all others
export class ApiError extends Error {
  constructor(kind, message, details = {}) {
    super(message);
    this.name = 'ApiError';
    this.kind = kind;
    this.details = details;
  }
}

const AWAY = new Set(['RECOVERING', 'DRAINING']);
const TOO_LARGE = new Set(['ANSWER_TOO_LARGE', 'MESSAGE_TOO_LARGE']);

export function kindOfError(status, { code, reason } = {}) {
  const name = (reason ?? '').replace(/^ERROR_REASON_/, '');
  if (status === 401) return 'login';
  if (status === 403 && (name === 'RIGHT_MISSING' || code === 'PERMISSION_DENIED')) return 'right';
  if (TOO_LARGE.has(name) || status === 413) return 'too_large';
  if (AWAY.has(name) || (status === 503 && (code ?? 'UNAVAILABLE') === 'UNAVAILABLE')) return 'away';
  return 'refused';
}

async function errorOf(response) {
  let details = {};
  try {
    details = (await response.json()).error ?? {};
  } catch {
    // The body is no JSON. The code of the answer says enough.
  }
  const message = showText(details.message ?? '') || `The server answered with the HTTP code ${response.status}.`;
  return new ApiError(kindOfError(response.status, details), message, details);
}

async function request(path, options, { signal, timeoutMs = TIMEOUT_MS } = {}) {
  const ended = new AbortController();
  const giveUp = () => ended.abort();
  signal?.addEventListener('abort', giveUp);
  if (signal?.aborted) giveUp();
  const timer = timeoutMs > 0 ? setTimeout(giveUp, timeoutMs) : undefined;
  try {
    const response = await fetch(path, { ...options, signal: ended.signal, cache: 'no-store', redirect: 'error' });
    if (!response.ok) throw await errorOf(response);
    return await response.json();
  } catch (error) {
    if (error instanceof ApiError || signal?.aborted) throw error;
    throw new ApiError('unreachable', 'The server does not answer.');
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}

const get = (path, how) => request(path, { method: 'GET' }, how);

function post(path, body, how) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  return request(path, options, how);
}

export const session = () => get('api/session');
export const metrics = () => get('api/metrics');
export const login = (token) => post('api/login', { token });
export const logout = () => post('api/logout', {});
export const kill = () => post('api/demo/kill', {}, { timeoutMs: 3000 });

// Calls a method of the service, such as Scan. `how`: a signal to give up, and a timeout; 0: none.
export const call = (method, message = {}, how = {}) => post(`api/call/${method}`, message, how);
