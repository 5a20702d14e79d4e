// Role: calls of the server. Each failure is an ApiError, or an AbortError if the caller gave up. All answers of the
// console are JSON. The layer of HTTP below it, or a proxy, may refuse a request with plain text.

import { showText } from './keys.js';

const TIMEOUT_MS = 10_000;
const LONGEST_TEXT = 200; // characters of an answer that is not JSON

// `kind` says what the page does about it:
//   login        nobody is logged in (any more)
//   right        the user lacks a right
//   unreachable  no answer came
//   away         the server recovers, or is about to stop
//   busy         too many requests run at the same time
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
const PROXY_HAS_NO_SERVER = new Set([502, 504]);
const TOO_LARGE = new Set(['ANSWER_TOO_LARGE', 'MESSAGE_TOO_LARGE']);

export const reasonOf = ({ reason } = {}) => (reason ?? '').replace(/^ERROR_REASON_/, '');

// `details`: the error in the JSON of the answer; undefined: the answer is not JSON.
export function kindOfError(status, details) {
  if (status === 401) return 'login';
  if (details === undefined) {
    if (PROXY_HAS_NO_SERVER.has(status)) return 'unreachable';
    return status === 503 ? 'busy' : 'refused';
  }
  const { code } = details;
  const name = reasonOf(details);
  if (status === 403 && (name === 'RIGHT_MISSING' || code === 'PERMISSION_DENIED')) return 'right';
  if (TOO_LARGE.has(name)) return 'too_large';
  if (AWAY.has(name) || (status === 503 && (code ?? 'UNAVAILABLE') === 'UNAVAILABLE')) return 'away';
  return 'refused';
}

function detailsOf(text) {
  try {
    const error = JSON.parse(text)?.error;
    return typeof error === 'object' && error !== null ? error : undefined;
  } catch {
    return undefined;
  }
}

function shortened(text) {
  const characters = Array.from(text.trim().replace(/\s+/g, ' '));
  return characters.length > LONGEST_TEXT ? `${characters.slice(0, LONGEST_TEXT).join('')}…` : characters.join('');
}

// The error that an answer tells: by its HTTP code, its Content-Type, and its body.
export function errorOfAnswer(status, contentType, text) {
  const details = detailsOf(text);
  const isPage = /\bhtml\b/i.test(contentType ?? ''); // of a proxy: its tags would only confuse
  const said = details ? String(details.message ?? '') : isPage ? '' : shortened(text);
  const message = showText(said) || `The server answered with the HTTP code ${status}.`;
  return new ApiError(kindOfError(status, details), message, details);
}

const errorOf = async (response) =>
  errorOfAnswer(response.status, response.headers.get('content-type'), await response.text());

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
