// Role: what the page knows of the server: whether it answers, and who is logged in. Tries again while it does not answer.
import * as api from './api.js';
import { Backoff } from './backoff.js';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const DOWN = new Set(['unreachable', 'away', 'busy', 'refused']);
export const isDown = (state) => DOWN.has(state);

// `state`: starting, ok, login (the form is shown), unreachable, or away (it recovers or is about to stop). It is busy or
// refused if the page has not begun, or has not come back, for this reason. Each change is an event "change".
export class Connection extends EventTarget {
  state = 'starting';
  reason = '';
  session = { login: 'none', user: '', version: '', demo: false };
  downSince = 0;
  #trying = false;

  #become(state, reason = '') {
    if (this.state === state && this.reason === reason) return;
    if (isDown(state) && !isDown(this.state)) this.downSince = Date.now();
    this.state = state;
    this.reason = reason;
    this.dispatchEvent(new Event('change'));
  }

  get needsLogin() {
    return this.session.login === 'needed' && !this.session.user;
  }

  #readSession(session) {
    this.session = session;
    this.#become(this.needsLogin ? 'login' : 'ok');
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
        if (error.kind === 'login') {
          this.#trying = false;
          this.report(error);
          return;
        }
        this.#become(DOWN.has(error.kind) ? error.kind : 'refused', error.message);
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
