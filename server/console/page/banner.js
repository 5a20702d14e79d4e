// Role: says above everything else that the server does not answer, and that it is back.
import { isDown } from './connection.js';
import { element, setText } from './dom.js';

const BACK_MS = 5000;

const secondsSince = (time) => ((Date.now() - time) / 1000).toFixed(1);

function sentence(state, reason) {
  const what = { away: 'is not ready', busy: 'is busy', refused: 'refuses this page' }[state];
  if (!what) return 'The server does not answer.';
  return `The server ${what}: ${reason}${/[.!?…]$/.test(reason) ? '' : '.'}`;
}

export class Banner {
  #connection;
  #timer;
  #text = element('span');
  #wasDown = false;

  constructor(connection) {
    this.#connection = connection;
    this.node = element('div', { className: 'banner', role: 'status', hidden: true }, this.#text);
    connection.addEventListener('change', () => this.#changed());
  }

  #changed() {
    const { state } = this.#connection;
    clearInterval(this.#timer);
    if (isDown(state)) {
      this.#wasDown = true;
      this.#show('down');
      this.#tick();
      this.#timer = setInterval(() => this.#tick(), 500);
    } else if (this.#wasDown) {
      this.#wasDown = false;
      this.#show('back');
      setText(this.#text, `The server is back. It was away for ${secondsSince(this.#connection.downSince)} s.`);
      this.#timer = setTimeout(() => (this.node.hidden = true), BACK_MS);
    }
  }

  #show(kind) {
    this.node.hidden = false;
    this.node.dataset.kind = kind;
  }

  #tick() {
    const { state, reason, downSince } = this.#connection;
    setText(
      this.#text,
      `${sentence(state, reason)} Trying again, for ${secondsSince(downSince)} s so far. What you see is old.`,
    );
  }
}
