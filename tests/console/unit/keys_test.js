// Bytes that are shown as text, and read back.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  endOfPrefix,
  fromBase64,
  nextKey,
  parseBytes,
  showBytes,
  showText,
  showValueBytes,
  toBase64,
  toHex,
} from '../../../server/console/page/keys.js';
import { identityOfKey } from '../../../server/console/page/shown_key.js';

const utf8 = (text) => new TextEncoder().encode(text);
const show = (text) => showBytes(utf8(text)).text;
const bytes = (...list) => Uint8Array.from(list);

test('plain text is shown as it is', () => {
  assert.equal(show('bank/account/alice 1'), 'bank/account/alice 1');
  assert.equal(show('ключ/日本/😀'), 'ключ/日本/😀');
  assert.equal(show('<img src=x onerror=alert(1)>'), '<img src=x onerror=alert(1)>');
});

test('control characters are escaped', () => {
  assert.equal(show('a\x00b\n\r\t\x1b\x7f'), 'a\\x00b\\x0a\\x0d\\x09\\x1b\\x7f');
  assert.equal(show('\u0085\u009f'), '\\u0085\\u009f');
});

test('characters that change the direction of text are escaped', () => {
  for (const code of [0x200e, 0x200f, 0x061c, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]) {
    assert.equal(show(`a${String.fromCodePoint(code)}b`), `a\\u${code.toString(16).padStart(4, '0')}b`);
  }
});

test('other invisible characters are escaped', () => {
  const invisible = [
    0xa0, 0xad, 0x180e, 0x200b, 0x200c, 0x200d, 0x2028, 0x2029, 0x2060, 0x3000, 0xfeff, 0xe000, 0xfff9,
  ];
  for (const code of invisible)
    assert.equal(show(String.fromCodePoint(code)), `\\u${code.toString(16).padStart(4, '0')}`);
  assert.equal(show('\u{e0041}'), '\\u{e0041}');
});

test('characters that fonts leave out are escaped', () => {
  for (const code of [0x034f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x2800, 0x3164, 0xfe0f, 0xffa0]) {
    const escape = `\\u${code.toString(16).padStart(4, '0')}`;
    const character = String.fromCodePoint(code);
    assert.equal(show(`a${character}b`), `a${escape}b`);
    assert.equal(showText(`a${character}b`), `a${escape}b`);
    assert.deepEqual(parseBytes(show(`a${character}b`)), utf8(`a${character}b`));
  }
  assert.equal(show('\u{e0100}'), '\\u{e0100}');
});

test('combining marks need a character before them', () => {
  assert.equal(show('e\u0301\u0302 \u0301'), 'e\u0301\u0302 \u0301');
  assert.equal(show('\u0301\u0302e\u0301'), '\\u0301\\u0302e\u0301');
  assert.equal(show('a\x00\u0301'), 'a\\x00\\u0301');
  assert.equal(show('\\\u0301'), '\\\\\\u0301');
  assert.equal(show('हिन्दी'), 'हिन्दी');
  assert.equal(showBytes(bytes(0x61, 0xff, 0xcc, 0x81)).text, 'a\\xff\\u0301');
  assert.equal(showText('\u0301a\u0301\n\u0301'), '\\u0301a\u0301\\x0a\\u0301');
  for (const text of ['\u0301', 'e\u0301', '\\\u0301', 'a\x00\u0301\u0301'])
    assert.deepEqual(parseBytes(show(text)), utf8(text));
});

test('a key, a range and a hash are told apart', () => {
  const key = (text) => ({ key: toBase64(utf8(text)) });
  const all = [
    key('foo (range)'),
    { ...key('foo'), is_range: true },
    key('foo'),
    key(''),
    key('#1'),
    { hash: '#1' },
    {},
  ];
  assert.equal(new Set(all.map(identityOfKey)).size, all.length);
  assert.equal(identityOfKey({ ...key('foo'), is_range: false, hash: '' }), identityOfKey(key('foo')));
});

test('bytes that are no UTF-8 are escaped one by one', () => {
  assert.equal(showBytes(bytes(0x61, 0xff, 0xfe, 0x62)).text, 'a\\xff\\xfeb');
  assert.equal(showBytes(bytes(0xc0, 0x80)).text, '\\xc0\\x80'); // overlong
  assert.equal(showBytes(bytes(0xed, 0xa0, 0x80)).text, '\\xed\\xa0\\x80'); // half of a pair of surrogates
  assert.equal(showBytes(bytes(0xe2, 0x82)).text, '\\xe2\\x82'); // the end is missing
  assert.equal(showBytes(bytes(0xf5, 0x80, 0x80, 0x80)).text, '\\xf5\\x80\\x80\\x80');
});

test('a backslash is doubled, so that no text looks like an escape', () => {
  assert.equal(show('\\x00'), '\\\\x00');
  assert.equal(showBytes(utf8('a\\b')).escapes, 0);
});

test('what is shown can be read back', () => {
  const samples = [bytes(), utf8('plain'), utf8('\\x00 \\\\'), utf8('\u202e\u{e0041}😀'), bytes(...Array(256).keys())];
  let seed = 1;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) >> 16;
  for (let count = 0; count < 500; count += 1)
    samples.push(Uint8Array.from({ length: random() % 40 }, () => random() & 255));
  for (const sample of samples) assert.deepEqual(parseBytes(showBytes(sample).text), sample);
});

test('wrong escapes are refused', () => {
  for (const text of ['\\', '\\n', '\\x0', '\\u12', '\\u{110000}', '\\u{}'])
    assert.throws(() => parseBytes(text), /no escape/);
});

test('values that are not text are shown as hexadecimal digits', () => {
  assert.deepEqual(showValueBytes(utf8('line\nline')), { text: 'line\\x0aline', form: 'text' });
  assert.deepEqual(showValueBytes(bytes(0, 1, 2, 0xff)), { text: '000102ff', form: 'hex' });
  assert.equal(toHex(bytes(0xab, 1)), 'ab01');
});

test('texts of the server are escaped, too, and keep single backslashes', () => {
  assert.equal(showText('a\u202eb\\c\n'), 'a\\u202eb\\c\\x0a');
});

test('base64', () => {
  const all = bytes(...Array(256).keys());
  assert.deepEqual(fromBase64(toBase64(all)), all);
  assert.equal(toBase64(utf8('a')), 'YQ==');
});

test('the ends of ranges', () => {
  assert.deepEqual(endOfPrefix(utf8('ab')), utf8('ac'));
  assert.deepEqual(endOfPrefix(bytes(1, 0xff, 0xff)), bytes(2));
  assert.deepEqual(endOfPrefix(bytes(0xff)), bytes());
  assert.deepEqual(endOfPrefix(bytes()), bytes());
  assert.deepEqual(nextKey(utf8('a')), bytes(0x61, 0));
});
