// Role: starts real servers with their pages over HTTP, and programs that load them. After a kill, a server starts on the
// same folder and ports.
//
// The programs are found in $KILOKV_BIN_DIR, or in build/release/bin.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const programs = process.env.KILOKV_BIN_DIR ?? join(root, 'build/release/bin');

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export const SLOWER = process.env.KILOKV_SANITIZED ? 6 : 1; // every time that a test waits at most

// Polls until the condition is true.
export async function until(condition, what, seconds = 30) {
  const end = Date.now() + seconds * 1000 * SLOWER;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await sleep(50);
  }
}

async function ended(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once('exit', resolve));
}

export class Server {
  #flags;
  #process;
  #log;
  #seen = 0; // bytes of the log before the last start
  #clients = []; // processes that load it

  constructor(flags = []) {
    if (!existsSync(join(programs, 'kilokvd')))
      throw new Error(`no kilokvd in ${programs}: build the server, or set KILOKV_BIN_DIR`);
    this.folder = mkdtempSync(join(tmpdir(), 'kilokv-console-'));
    this.#flags = flags;
    this.#log = join(this.folder, 'kilokvd.log');
    this.tokenFile = join(this.folder, 'admin.token'); // with --login on
  }

  static async start(flags) {
    const server = new Server(flags);
    await server.start();
    return server;
  }

  async start() {
    const out = openSync(this.#log, 'a');
    this.#seen = readFileSync(this.#log).length;
    const flags = [
      ...['--listen', this.endpoint ?? '127.0.0.1:0', '--http-listen', this.pages ?? '127.0.0.1:0'],
      ...['--data-dir', join(this.folder, 'data'), ...this.#flags],
      ...(this.#flags.includes('--login') ? ['--bootstrap-file', this.tokenFile] : []),
    ];
    this.#process = spawn(join(programs, 'kilokvd'), flags, { stdio: ['ignore', out, out] });
    this.endpoint = (await until(() => this.#said(/kilokvd ready.*?endpoint=(\S+)/), 'the start of kilokvd', 60))[1];
    this.pages = this.#said(/serves pages over HTTP http_endpoint=(\S+)/)[1];
    this.url = `http://${this.pages}/console/`;
    await until(() => this.#answers(), 'the pages');
  }

  // What the log says since the last start.
  #said(pattern) {
    const text = readFileSync(this.#log).subarray(this.#seen).toString();
    if (this.#process.exitCode !== null) throw new Error(`kilokvd has ended: ${text}`);
    return pattern.exec(text);
  }

  async #answers() {
    try {
      return (await fetch(`${this.url}api/session`)).ok;
    } catch {
      return false;
    }
  }

  async kill() {
    this.#process.kill('SIGKILL');
    await ended(this.#process);
  }

  // Waits until the process has ended by itself.
  end() {
    return ended(this.#process);
  }

  async remove() {
    for (const client of this.#clients) client.kill('SIGKILL');
    await this.kill();
    for (const client of this.#clients) await ended(client);
    rmSync(this.folder, { recursive: true });
  }

  #environment() {
    return existsSync(this.tokenFile) ? { ...process.env, KILOKV_CLIENT_TOKEN_FILE: this.tokenFile } : process.env;
  }

  // Runs `kilokv`, and returns what it prints.
  kilokv(...flags) {
    const how = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], env: this.#environment() };
    return execFileSync(join(programs, 'kilokv'), ['--endpoint', this.endpoint, ...flags], how);
  }

  // Runs a transaction, as `kilokv txn` reads it.
  transaction(transaction) {
    const how = { encoding: 'utf8', input: JSON.stringify(transaction), env: this.#environment() };
    return JSON.parse(execFileSync(join(programs, 'kilokv'), ['txn', '--endpoint', this.endpoint], how));
  }

  // Sends a transaction that waits, and does not wait for its end.
  startWaiting(key, { timeoutMs = 120_000 } = {}) {
    const guards = [{ key, is: 'ge', value: 1, when_false: 'wait' }];
    const text = JSON.stringify({ guards, then: [{ op: 'get', key }], wait_timeout_ms: timeoutMs });
    const child = this.#client('kilokv', ['--timeout', '120s', 'txn'], 'pipe');
    child.stdin.end(text);
    return child;
  }

  // Loads the server in the background until the test ends.
  load(program, ...flags) {
    return this.#client(program, flags, 'ignore');
  }

  #client(program, flags, stdin) {
    const all = [...flags, '--endpoint', this.endpoint];
    const child = spawn(join(programs, program), all, { stdio: [stdin, 'ignore', 'ignore'], env: this.#environment() });
    this.#clients.push(child);
    return child;
  }
}

export const base64 = (text) => Buffer.from(text, 'utf8').toString('base64');
