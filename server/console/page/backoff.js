// Role: how long to wait before the next try of a server that does not answer.

const LEAST_MS = 500;
const MOST_MS = 5000;

export class Backoff {
  #next = LEAST_MS;

  delay() {
    const delay = this.#next;
    this.#next = Math.min(this.#next * 1.7, MOST_MS);
    return delay;
  }
}
