// What the examples in JavaScript share: the command line and the connection.
//
//   PROGRAM [--endpoint HOST:PORT] VERB ARGUMENT...   runs one command
//   PROGRAM [--endpoint HOST:PORT]                    runs the commands that standard input has, one in each line
//
// Each command prints one line. Each command may be sent again, also by another process, after any crash:
// docs/recipes.md says why. The exit code is 0 if no command ended with an error, 1 if one did or no server was there,
// and 2 if the flags are wrong.
import { createInterface } from 'node:readline';

import { connect, KiloKVError, SessionUnknownError } from 'kilokv';

/** The program was given something that is no command. */
class WrongCommand extends Error {
  code = 'INVALID_ARGUMENT';
}

export function wrongCommand() {
  return new WrongCommand('no such command, or wrong arguments: see --help');
}

/** The integer of a word. Throws if the word is no integer of 64 bits, or if it is less than `least`. */
export function integer(word, least = -(2n ** 63n)) {
  const number = /^-?\d+$/.test(word) ? BigInt(word) : null;
  if (number === null || number < least || number >= 2n ** 63n) throw wrongCommand();
  return number;
}

/** The milliseconds of a word. */
export function milliseconds(word, least) {
  return Number(integer(word, least));
}

/** The end of the range of all keys that begin with `prefix`, which ends with a slash. */
export function endOf(prefix) {
  return `${prefix.slice(0, -1)}0`; // the character after the slash
}

// Runs commands: command(session, words) returns the line to print. The server applies each request of the session once,
// also if the connection breaks or the server restarts.
class Runner {
  #db;
  #command;
  #session = null;

  constructor(db, command) {
    this.#db = db;
    this.#command = command;
  }

  /** Runs a command and prints its line. Returns whether it ended without an error. */
  async run(words) {
    try {
      console.log(await this.#runAgain(words));
      return true;
    } catch (error) {
      if (!(error instanceof KiloKVError || error instanceof WrongCommand)) throw error;
      console.log(`error ${error.code}: ${error.message}`);
      return false;
    }
  }

  async #runAgain(words) {
    try {
      return await this.#runOnce(words);
    } catch (error) {
      if (!(error instanceof SessionUnknownError)) throw error;
      // A program that slept for longer than the lease of its session has lost it. The command may have run before. It
      // may be sent again, because keys in the database tell whether it ran, and not only the session.
      this.#session = null;
      return this.#runOnce(words);
    }
  }

  async #runOnce(words) {
    // A slash ends each part of a key. Names with slashes could give the keys of other names.
    const wrong = words.find((word) => word.includes('/'));
    if (wrong !== undefined) throw new WrongCommand(`a name has no slash: ${wrong}`);
    this.#session ??= await this.#db.openSession();
    return this.#command(this.#session, words);
  }
}

async function* commandsOf(input) {
  for await (const line of createInterface({ input })) {
    const words = line.split(/\s+/).filter(Boolean);
    if (words.length > 0) yield words;
  }
}

/** Runs what the command line says, and sets the exit code. */
export async function main(usage, command) {
  let words = process.argv.slice(2);
  let endpoint;
  if (words[0] === '--help') {
    process.stdout.write(usage);
    return;
  }
  if (words[0]?.startsWith('--')) {
    if (words[0] !== '--endpoint' || words.length < 2) {
      process.stderr.write(usage);
      process.exitCode = 2;
      return;
    }
    [, endpoint, ...words] = words;
  }
  let db;
  try {
    db = await connect({ endpoint, connectTimeoutMs: 30_000, waitForServerMs: 30_000 }); // it may be starting again
  } catch (error) {
    console.error(`no server: ${error.code}: ${error.message}`);
    process.exitCode = 1;
    return;
  }
  const runner = new Runner(db, command);
  const commands = words.length > 0 ? [words] : commandsOf(process.stdin);
  for await (const one of commands) {
    if (!(await runner.run(one))) process.exitCode = 1;
  }
  await db.close();
}
