#!/usr/bin/env node
// Runs the tests: `npm test` runs those that take a minute at most, and `npm test -- unit crash` those that are named.
// Flags go to the tests: `npm test -- crash --kills 50`.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const KINDS = ['unit', 'integration', 'crash'];
const folder = fileURLToPath(new URL('.', import.meta.url));

if (!existsSync(`${folder}../node_modules/@grpc/grpc-js`)) {
  console.error('the packages of the Node client are missing: run `npm ci --prefix client/node`');
  process.exit(1);
}

const first = process.argv.findIndex((argument) => argument.startsWith('--'));
const kinds = process.argv.slice(2, first < 0 ? undefined : first);
const unknown = kinds.filter((kind) => !KINDS.includes(kind));
if (unknown.length > 0) {
  console.error(`unknown tests: ${unknown.join(' ')}; there are ${KINDS.join(' ')}`);
  process.exit(2);
}

const files = (kinds.length > 0 ? kinds : KINDS).flatMap((kind) =>
  readdirSync(`${folder}${kind}`)
    .filter((name) => name.endsWith('_test.js'))
    .map((name) => `${folder}${kind}/${name}`),
);
const flags = first < 0 ? '' : process.argv.slice(first).join(' ');
const environment = { ...process.env, KILOKV_TEST_FLAGS: flags };
const done = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit', env: environment });
process.exit(done.status ?? 1);
