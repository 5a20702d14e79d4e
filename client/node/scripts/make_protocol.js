#!/usr/bin/env node
// Makes src/protocol.binpb from proto/kilokv/v1 with protoc. `--check`: changes nothing, and fails if it is not up to
// date.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const kept = fileURLToPath(new URL('../src/protocol.binpb', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'kilokv-protocol-'));
try {
  const made = join(folder, 'protocol.binpb');
  const out = ['--include_imports', `--descriptor_set_out=${made}`, 'kilokv/v1/kilokv.proto'];
  execFileSync('protoc', ['-I', join(root, 'proto'), ...out], { stdio: ['ignore', 'inherit', 'inherit'] });
  if (!process.argv.includes('--check')) {
    writeFileSync(kept, readFileSync(made));
  } else if (!readFileSync(made).equals(readFileSync(kept))) {
    console.error('src/protocol.binpb is not that of proto/kilokv/v1: run `npm run protocol`');
    process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true });
}
