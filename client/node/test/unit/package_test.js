// The package as its users see it: types, names, formatting, and the files that it has.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

import ts from 'typescript';

import * as kilokv from '../../src/index.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const run = (command, flags, options = {}) =>
  execFileSync(command, flags, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options });

// Runs a program of node_modules. What it prints is in the error.
function runTool(name, ...flags) {
  run(process.execPath, [join(root, 'node_modules', name), ...flags]);
}

// The classes, functions and constants that index.d.ts declares, and the members of each class.
function declared() {
  const source = ts.createSourceFile(
    'index.d.ts',
    readFileSync(join(root, 'index.d.ts'), 'utf8'),
    ts.ScriptTarget.ES2022,
  );
  const names = new Map();
  for (const statement of source.statements) {
    const isExported = statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) continue;
    if (ts.isClassDeclaration(statement)) {
      const methods = statement.members.filter(
        (member) => ts.isMethodDeclaration(member) && ts.isIdentifier(member.name),
      );
      names.set(statement.name.text, new Set(methods.map((member) => member.name.text)));
    } else if (ts.isFunctionDeclaration(statement)) {
      names.set(statement.name.text, null);
    } else if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) names.set(name.text, null);
    }
  }
  return names;
}

test('a program that uses the whole surface compiles, and wrong ones do not', () => {
  runTool('typescript/bin/tsc', '-p', 'test/types');
});

test('the types declare what the package exports, and nothing else', () => {
  const types = declared();
  assert.deepEqual([...types.keys()].sort(), Object.keys(kilokv).sort());
  for (const [name, methods] of types) {
    if (methods === null) continue;
    const owner = kilokv[name];
    const real = [...Object.getOwnPropertyNames(owner.prototype), ...Object.getOwnPropertyNames(owner)].filter(
      (member) => {
        const place =
          Object.getOwnPropertyDescriptor(owner.prototype, member) ?? Object.getOwnPropertyDescriptor(owner, member);
        return typeof place.value === 'function' && member !== 'constructor';
      },
    );
    const internal = name === 'ColumnResults' ? ['add'] : []; // for the answers of the server
    assert.deepEqual([...methods].sort(), real.filter((member) => !internal.includes(member)).sort(), name);
  }
});

test('the formatting is that of prettier', () => {
  runTool('prettier/bin/prettier.cjs', '--check', '--log-level', 'warn', '.');
  const sources = ['src', 'test', 'scripts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true }).map((name) => join(root, folder, String(name))),
  );
  const long = sources
    .filter((name) => /\.[jt]s$/.test(name))
    .flatMap((name) =>
      readFileSync(name, 'utf8')
        .split('\n')
        .map((line, i) => [`${name}:${i + 1}`, line.length]),
    )
    .filter(([, length]) => length > 120);
  assert.deepEqual(long, []);
});

test('the package has what a program needs, and no more', () => {
  const folder = mkdtempSync(join(tmpdir(), 'kilokv-package-'));
  try {
    const [{ filename, files }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder]));
    const names = files.map(({ path }) => path);
    for (const name of ['package.json', 'README.md', 'index.d.ts', 'src/index.js', 'src/protocol.binpb'])
      assert.ok(names.includes(name), name);
    assert.ok(names.every((name) => !name.startsWith('test') && !name.includes('node_modules')));
    run('tar', ['-xf', join(folder, filename), '-C', folder]);
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(join(folder, 'package'), join(folder, 'node_modules/kilokv'));
    symlinkSync(join(root, 'node_modules'), join(folder, 'package/node_modules'));
    writeFileSync(
      join(folder, 'program.mjs'),
      "import { Transaction } from 'kilokv';\nconsole.log(typeof new Transaction().get('a'));\n",
    );
    assert.equal(run(process.execPath, ['program.mjs'], { cwd: folder }), 'object\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
