// The monotonic clock of this process, in milliseconds, and timers on it.

export const now = () => performance.now();

// The same clock in microseconds, for histories.
export const monotonicUs = () => BigInt(Math.round(performance.now() * 1000));

// The longest time that a timer of Node can take, about 24 days. Longer deadlines become this one.
const TIMER_MS_MAX = 2 ** 31 - 1;

export const deadlineAfter = (milliseconds) => now() + Math.min(milliseconds, TIMER_MS_MAX);

// Calls back at the given time, at once if it has passed. Returns the timer, for clearTimeout().
export const callAt = (time, callback) =>
  setTimeout(callback, Math.min(Math.max(Math.ceil(time - now()), 0), TIMER_MS_MAX));

// Resolves at the given time, or as soon as the signal aborts.
export function sleepUntil(time, signal) {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = callAt(time, end);
    signal?.addEventListener('abort', end, { once: true });
  });
}
