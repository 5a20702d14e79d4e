// Role: a part of the page that asks the server by itself, again and again while it is visible. A failure is shown in
// the panel, and the other panels go on.
import { ApiError } from './api.js';
import { element, replace, setText, uniqueId } from './dom.js';

const REFUSED = 'The server refused this.';
const TITLES = { busy: 'The server is busy.' };
const WITHOUT_RIGHT_MS = 10_000; // between two looks, until the user has the right

export class Panel {
  #connection;
  #timer;
  #running = false;
  #visible = false;
  #keepsBody;
  #lacksRight = false;
  #problem = element('p', { className: 'problem', role: 'status', hidden: true });

  // `right`: what a user needs for this panel, for the message. `every`: milliseconds between two looks; 0: it looks when
  // it is shown, and else when a person asks. `keepsBody`: the content stays when a right is missing.
  constructor(connection, { title, note, right, every = 2000, className = '', keepsBody = false }) {
    this.#connection = connection;
    this.right = right;
    this.every = every;
    this.#keepsBody = keepsBody;
    const id = uniqueId('panel');
    this.tools = element('div', { className: 'tools' });
    this.count = element('span', { className: 'count' });
    this.body = element('div', { className: 'content' });
    this.node = element(
      'section',
      { className: `panel ${className}`, 'aria-labelledby': id },
      element('header', {}, element('h2', { id }, title), this.count, this.tools),
      note && element('p', { className: 'note' }, note),
      this.#problem,
      this.body,
    );
    connection.addEventListener('change', () => this.#connectionChanged());
  }

  get connection() {
    return this.#connection;
  }

  // Asks the server, and shows the answer. Each panel has its own.
  async refresh() {}

  // The user or the server is another one.
  reset() {}

  show() {
    this.#visible = true;
    void this.#loop();
  }

  hide() {
    this.#visible = false;
    clearTimeout(this.#timer);
  }

  #connectionChanged() {
    if (this.#connection.state === 'login') {
      this.reset();
      this.clearProblem();
    }
    if (this.#connection.state === 'ok') void this.#loop();
  }

  async #loop() {
    clearTimeout(this.#timer);
    if (this.#running) return;
    this.#running = true;
    if (this.#visible && this.#connection.state === 'ok') await this.attempt(() => this.refresh());
    this.#running = false;
    const wait = this.#lacksRight ? Math.max(this.every, WITHOUT_RIGHT_MS) : this.every;
    if (this.#visible && this.every > 0) this.#timer = setTimeout(() => this.#loop(), wait);
  }

  // Runs what asks the server, and shows its failure. Returns whether it succeeded.
  async attempt(action) {
    try {
      await action();
      this.clearProblem();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (!this.#connection.report(error)) this.showProblem(error);
      return false;
    }
  }

  showProblem(error) {
    const lacks = error.kind === 'right';
    this.#lacksRight = lacks;
    const title = lacks
      ? `This panel needs ${this.right ?? 'a right that you lack'}.`
      : (TITLES[error.kind] ?? REFUSED);
    replace(this.#problem, element('strong', {}, title), ' ', element('span', {}, error.message));
    this.#problem.classList.toggle('right', lacks);
    this.#problem.hidden = false;
    this.body.hidden = lacks && !this.#keepsBody;
  }

  clearProblem() {
    this.#lacksRight = false;
    this.#problem.hidden = true;
    this.body.hidden = false;
  }

  setCount(text) {
    setText(this.count, text);
  }
}
