// The numbers of the requests of a session that are ready to be sent. The lowest number goes first, so the oldest
// request that was refused goes before younger ones. A request that may wait for other transactions does not need room
// in the window (send_window.js). So it passes those that do.

// Numbers in ascending order. Most come in at the end, and most leave at the begin. So those that have left at the
// begin are removed from the array only from time to time.
const COMPACT_AT = 1024;

class Numbers {
  #numbers = [];
  #begin = 0;

  get first() {
    return this.#numbers[this.#begin];
  }

  insert(number) {
    const at = this.#placeOf(number);
    if (this.#numbers[at] !== number) this.#numbers.splice(at, 0, number);
  }

  erase(number) {
    const at = this.#placeOf(number);
    if (this.#numbers[at] !== number) return;
    if (at !== this.#begin) this.#numbers.splice(at, 1);
    else this.#begin += 1;
    if (this.#begin < COMPACT_AT || this.#begin * 2 < this.#numbers.length) return;
    this.#numbers = this.#numbers.slice(this.#begin);
    this.#begin = 0;
  }

  clear() {
    this.#numbers = [];
    this.#begin = 0;
  }

  // The place of the number, or where it belongs.
  #placeOf(number) {
    let low = this.#begin;
    let high = this.#numbers.length;
    if (low < high && number === this.#numbers[low]) return low; // the next one to send
    if (low < high && number > this.#numbers[high - 1]) return high; // a new request
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#numbers[middle] < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export class SendQueue {
  #plain = new Numbers();
  #waiting = new Numbers();

  insert(number, mayWait) {
    (mayWait ? this.#waiting : this.#plain).insert(number);
  }

  erase(number) {
    this.#plain.erase(number);
    this.#waiting.erase(number);
  }

  clear() {
    this.#plain.clear();
    this.#waiting.clear();
  }

  // The number to send next; undefined: none. `hasRoom`: whether the window has room.
  next(hasRoom) {
    const plain = hasRoom ? this.#plain.first : undefined;
    const waiting = this.#waiting.first;
    if (plain === undefined || waiting === undefined) return plain ?? waiting;
    return plain < waiting ? plain : waiting;
  }

  get empty() {
    return this.#plain.first === undefined && this.#waiting.first === undefined;
  }
}
