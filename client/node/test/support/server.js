// Starts real servers for tests. Each has a temporary folder of its own. After a kill it starts on the same folder and
// port.
//
// The programs are found in $KILOKV_BIN_DIR, or in build/release/bin.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const programs = process.env.KILOKV_BIN_DIR ?? join(root, 'build/release/bin');
const START_MS = 60_000;

export const judge = join(root, 'tests/judge/judge.py');

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Polls until the condition is true.
export async function until(condition, what, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await sleep(10);
  }
}

export class Server {
  #flags;
  #process = null;
  #log;
  #portFile;

  constructor(flags = []) {
    if (!existsSync(join(programs, 'kilokvd'))) {
      throw new Error(`no kilokvd in ${programs}: build the server, or set KILOKV_BIN_DIR`);
    }
    this.folder = mkdtempSync(join(tmpdir(), 'kilokv-node-'));
    this.endpoint = null;
    this.starts = 0;
    this.#flags = flags;
    this.#log = join(this.folder, 'kilokvd.log');
    this.#portFile = join(this.folder, 'port');
  }

  // `wait`: until it is ready.
  async start({ wait = true } = {}) {
    const port = this.endpoint?.split(':')[1] ?? '0';
    rmSync(this.#portFile, { force: true });
    const out = openSync(this.#log, 'a');
    this.#process = spawn(
      join(programs, 'kilokvd'),
      [
        ...['--listen', `127.0.0.1:${port}`, '--http-listen', 'off', '--port-file', this.#portFile],
        ...['--data-dir', join(this.folder, 'data'), '--log-level', 'warning', ...this.#flags],
      ],
      { stdio: ['ignore', out, out] },
    );
    this.starts += 1;
    if (!wait) return this;
    await until(() => this.#isReady(), 'the start of kilokvd', START_MS / 1000);
    this.endpoint = `127.0.0.1:${readFileSync(this.#portFile, 'utf8').trim()}`;
    return this;
  }

  #isReady() {
    if (this.#process.exitCode !== null) throw new Error(`kilokvd has ended: ${readFileSync(this.#log, 'utf8')}`);
    return existsSync(this.#portFile) && readFileSync(this.#portFile, 'utf8').endsWith('\n');
  }

  // Ends it with a signal, and waits for its end.
  async end(signal) {
    const ended = this.#process;
    this.#process = null;
    if (!ended || ended.exitCode !== null) return;
    const exit = new Promise((resolve) => ended.once('exit', resolve));
    ended.kill(signal);
    await exit;
  }

  kill() {
    return this.end('SIGKILL');
  }

  // Ends it, and removes its folder.
  async remove() {
    await this.kill();
    rmSync(this.folder, { recursive: true });
  }
}

// Runs a program of KiloKV, and returns what it prints.
export function runProgram(name, flags, options = {}) {
  return execFileSync(join(programs, name), flags, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options,
  });
}
