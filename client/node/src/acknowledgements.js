// Which numbers of a session the client is through with. The server may drop the results of all numbers up to
// `through`.
//
// A number is acknowledged after its results have been handed to the program. For the last RESUME_WINDOW numbers,
// `through` stays below a number whose outcome is unknown, so that the program can resume it. It stays below the
// numbers of earlier holders of the session (those up to `inheritedThrough`), until the program lets go of them, or for
// RESUME_WINDOW numbers.
const RESUME_WINDOW = 1024n;

export class Acknowledgements {
  #endedBeyond = new Set(); // numbers above `through` that have ended
  #givenUp = new Set(); // numbers that ended with an unknown outcome, or were refused for the moment
  #open = new Set(); // numbers of requests that have not ended

  constructor(through, inheritedThrough) {
    this.through = through;
    this.inheritedThrough = inheritedThrough;
    this.next = inheritedThrough + 1n; // the number of the next new request
  }

  // Takes the next number.
  begin() {
    const number = this.next;
    this.next += 1n;
    this.#open.add(number);
    return number;
  }

  // Whether a request with this number can be sent again.
  canResume(number) {
    return number < this.next && number > this.through && !this.#open.has(number) && !this.#endedBeyond.has(number);
  }

  resume(number) {
    this.#givenUp.delete(number);
    this.#open.add(number);
  }

  // `canGoOn`: the number is kept for a resumption. Otherwise the next settle() can acknowledge it.
  end(number, canGoOn) {
    this.#open.delete(number);
    if (number <= this.through) return;
    if (canGoOn) this.#givenUp.add(number);
    else this.#endedBeyond.add(number);
    for (const old of this.#givenUp) {
      if (old + RESUME_WINDOW >= this.next) continue;
      this.#givenUp.delete(old);
      if (old > this.through) this.#endedBeyond.add(old);
    }
    if (this.through < this.inheritedThrough && this.inheritedThrough + RESUME_WINDOW < this.next) {
      this.letGoOfInherited(this.inheritedThrough);
    }
  }

  // The program needs nothing more of the numbers of earlier holders up to this one. Those that are open stay, and all
  // after them.
  letGoOfInherited(number) {
    let through = number < this.inheritedThrough ? number : this.inheritedThrough;
    for (const open of this.#open) {
      if (open <= through) through = open - 1n;
    }
    if (through <= this.through) return;
    this.through = through;
    for (const set of [this.#givenUp, this.#endedBeyond]) {
      for (const old of set) if (old <= through) set.delete(old);
    }
  }

  // Acknowledges the numbers that have ended, up to the first one that has not.
  settle() {
    while (this.#endedBeyond.delete(this.through + 1n)) this.through += 1n;
  }
}
