// How many requests a session has in flight at a time.
//
// A refusal costs the server about as much as a short request that runs. A session that sends everything again and
// again takes the processor from what runs. So if the server refuses a request because it has too much to do, the
// window closes to what the session has sent and has no answer to. While the window is full, an answer opens it:
//   - by a part of a place, so that a window of answers makes one place
//   - by a whole place, if the last refusal is more than a second old A session that has nothing in flight after a
//     refusal has no answer to wait for. It rests as long as the server asks.
//
// The C++ client does the same (client/lib/src/send_window.hpp, which names the source and the deviations from it).
const QUIET_MS = 1000;

export class SendWindow {
  #held = 0;
  #size = Infinity;
  #refusedAt = -Infinity;
  #restUntil = -Infinity;

  hasRoom(now) {
    return !this.#full && (this.#held > 0 || now >= this.#restUntil);
  }

  take() {
    this.#held += 1;
  }

  // A request with a place is not in flight any more, or the session cannot know whether it is.
  leave() {
    this.#held -= 1;
  }

  leaveAnswered(now) {
    if (this.#full) this.#size += this.isQuiet(now) ? 1 : 1 / this.#size;
    this.leave();
  }

  // Whether the last refusal is so old that the window opens quickly.
  isQuiet(now) {
    return now - this.#refusedAt > QUIET_MS;
  }

  // `delayMs`: as the server asked. Returns whether the session rests now: nothing but the time gives it room again.
  leaveRefused(now, delayMs) {
    this.leave();
    this.#size = Math.max(1, Math.min(this.#size, this.#held));
    this.#refusedAt = now;
    if (this.#held === 0) this.#restUntil = now + delayMs;
    return this.#held === 0;
  }

  get #full() {
    return this.#held + 1 > this.#size;
  }
}
