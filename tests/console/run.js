#!/usr/bin/env node
// Runs the tests of the console: `npm test` runs all, and `npm test -- unit` those of one kind. Each file of the browser's
// tests runs alone, because each starts a server and Chromium.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const KINDS = ['unit', 'browser'];
const folder = fileURLToPath(new URL('.', import.meta.url));

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !KINDS.includes(name));
if (unknown.length > 0) {
  console.error(`unknown tests: ${unknown.join(' ')}; there are ${KINDS.join(' ')}`);
  process.exit(2);
}

const filesOf = (kind) =>
  readdirSync(`${folder}${kind}`)
    .filter((name) => name.endsWith('_test.js'))
    .map((name) => `${folder}${kind}/${name}`);
const runs = (wanted.length > 0 ? wanted : KINDS).flatMap((kind) =>
  kind === 'unit' ? [filesOf(kind)] : filesOf(kind).map((file) => [file]),
);

let failed = false;
for (const files of runs) {
  const done = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' });
  failed ||= done.status !== 0;
}
process.exit(failed ? 1 : 0);
