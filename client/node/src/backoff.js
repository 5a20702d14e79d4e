// Delays between retries. The bound doubles from the minimum to the maximum. Each delay is drawn from the upper half
// below its bound.
export class Backoff {
  #retries = 0;
  #minMs;
  #maxMs;

  constructor({ backoffMinMs, backoffMaxMs }) {
    this.#minMs = backoffMinMs;
    this.#maxMs = backoffMaxMs;
  }

  // The next delay in milliseconds. It is at least `retryAfterUs`, which the server asked for.
  next(retryAfterUs = 0n) {
    const full = Math.min(this.#maxMs, this.#minMs * 2 ** Math.min(this.#retries, 20));
    this.#retries += 1;
    const asked = Number(retryAfterUs) / 1000;
    return Math.max(full / 2, asked) + (Math.random() * Math.max(full, asked)) / 2;
  }

  reset() {
    this.#retries = 0;
  }
}
