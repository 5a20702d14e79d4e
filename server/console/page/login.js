// Role: the form for the login. The token is sent once, and the page keeps nothing of it.
import { ApiError } from './api.js';
import { element, labelled } from './dom.js';

export class Login {
  #connection;
  #token = element('input', { type: 'password', autocomplete: 'off', spellcheck: false, required: true });
  #fault = element('p', { className: 'fault', role: 'alert', hidden: true });
  #button = element('button', { type: 'submit', className: 'main' }, 'Log in');

  constructor(connection) {
    this.#connection = connection;
    this.node = element(
      'form',
      { className: 'panel login', onsubmit: (event) => this.#submit(event), hidden: true },
      element('h2', {}, 'Log in'),
      element(
        'p',
        { className: 'note' },
        'This server asks who you are. Paste the token that an administrator has made for you: kilokv token create NAME.',
      ),
      labelled('Token', this.#token),
      this.#fault,
      this.#button,
    );
  }

  set hidden(hidden) {
    const appears = this.node.hidden && !hidden;
    this.node.hidden = hidden;
    if (appears) this.#token.focus();
    if (hidden) this.#say('');
  }

  #say(text) {
    this.#fault.textContent = text;
    this.#fault.hidden = !text;
  }

  async #submit(event) {
    event.preventDefault();
    const token = this.#token.value.trim();
    this.#button.disabled = true;
    this.#say('');
    try {
      await this.#connection.login(token);
      this.#token.value = '';
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.kind !== 'login' && this.#connection.report(error)) return;
      this.#say(error.kind === 'login' ? `The server does not accept this token. ${error.message}` : error.message);
      this.#token.select();
    } finally {
      this.#button.disabled = false;
    }
  }
}
