// The monotonic clock of this process, in milliseconds, and timers on it.

export const now = () => performance.now();

// The same clock in microseconds, for histories.
export const monotonicUs = () => BigInt(Math.round(performance.now() * 1000));

export const deadlineAfter = (milliseconds) => now() + milliseconds;

// The longest time that a timer of Node can take, about 24 days.
const NODE_MS_MAX = 2 ** 31 - 1;

// Calls back at a time, or soon after it. A timer of Node alone may be early after the program was busy, and cannot
// wait for months. `keepsRunning` false: the program may end before it.
export class Timer {
  #time;
  #callback;
  #keepsRunning;
  #timer;

  constructor(time, callback, { keepsRunning = true } = {}) {
    this.#time = time;
    this.#callback = callback;
    this.#keepsRunning = keepsRunning;
    this.#arm();
  }

  cancel() {
    clearTimeout(this.#timer);
  }

  #arm() {
    const left = Math.min(Math.max(Math.ceil(this.#time - now()), 0), NODE_MS_MAX);
    this.#timer = setTimeout(() => {
      if (now() < this.#time) this.#arm();
      else this.#callback();
    }, left);
    if (!this.#keepsRunning) this.#timer.unref();
  }
}

// Resolves at the given time, or as soon as the signal aborts.
export function sleepUntil(time, signal) {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      timer.cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = new Timer(time, end);
    signal?.addEventListener('abort', end, { once: true });
  });
}
