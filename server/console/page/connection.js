// Role: what the page knows of the server: whether it answers, and who is logged in. Tries again while it does not answer.
import * as api from './api.js';
import { Backoff } from './backoff.js';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// `state`: starting, ok, login (the form is shown), unreachable, or away (it recovers or is about to stop). Each change
// is an event "change".
export class Connection extends EventTarget {
  state = 'starting';
  reason = '';
  session = { login: 'none', user: '', version: '', demo: false };
  downSince = 0;
  #trying = false;

  #become(state, reason = '') {
    if (this.state === state && this.reason === reason) return;
    const wasUp = this.state === 'ok' || this.state === 'starting';
    if (wasUp && (state === 'unreachable' || state === 'away')) this.downSince = Date.now();
    this.state = state;
    this.reason = reason;
    this.dispatchEvent(new Event('change'));
  }

  #readSession(session) {
    this.session = session;
    this.#become(session.login === 'needed' && !session.user ? 'login' : 'ok');
  }

  // Asks until the server answers.
  async start() {
    if (this.#trying) return;
    this.#trying = true;
    const backoff = new Backoff();
    for (;;) {
      try {
        const session = await api.session();
        if (this.state !== 'starting') await this.#checkReady(session);
        this.#trying = false;
        this.#readSession(session);
        return;
      } catch (error) {
        if (!(error instanceof api.ApiError)) throw error;
        this.#become(error.kind === 'unreachable' ? 'unreachable' : 'away', error.message);
        await sleep(backoff.delay());
      }
    }
  }

  // A server that recovers may know sessions already. It is back when it answers calls, if only by a refusal.
  async #checkReady(session) {
    if (session.login === 'needed' && !session.user) return;
    try {
      await api.call('Status');
    } catch (error) {
      if (error.kind === 'unreachable' || error.kind === 'away') throw error;
    }
  }

  // A call has failed. Returns whether the whole page is concerned, and not only the caller.
  report(error) {
    if (error.kind === 'login') {
      this.session = { ...this.session, login: 'needed', user: '' };
      this.#become('login', error.message);
      return true;
    }
    if (error.kind !== 'unreachable' && error.kind !== 'away') return false;
    this.#become(error.kind, error.message);
    void this.start();
    return true;
  }

  async login(token) {
    await api.login(token);
    this.#readSession(await api.session());
  }

  async logout() {
    await api.logout();
    this.#readSession(await api.session());
  }
}
