// The numbers of the requests of a session that are ready to be sent. The lowest number goes first, so the oldest
// request that was refused goes before younger ones. A request that may wait for other transactions does not need room
// in the window (send_window.js). So it passes those that do.

// Numbers in ascending order.
class Numbers {
  #numbers = [];

  get first() {
    return this.#numbers[0];
  }

  insert(number) {
    const at = this.#placeOf(number);
    if (this.#numbers[at] !== number) this.#numbers.splice(at, 0, number);
  }

  erase(number) {
    const at = this.#placeOf(number);
    if (this.#numbers[at] === number) this.#numbers.splice(at, 1);
  }

  clear() {
    this.#numbers = [];
  }

  #placeOf(number) {
    let low = 0;
    let high = this.#numbers.length;
    if (high > 0 && number > this.#numbers[high - 1]) return high; // a new request
    if (high > 0 && number === this.#numbers[0]) return 0; // the next one
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
