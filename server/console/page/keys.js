// Role: shows bytes as text that nobody can misread, and reads such text back.
//
// Keys and values are data of strangers. What is not visible as itself is shown as an escape: control characters,
// characters that change the direction of text, other invisible ones, combining marks that have no character before them,
// and bytes that are no UTF-8. A backslash is doubled, so each text stands for one sequence of bytes only, and
// parseBytes() reads it back.

// Control, format, private and unassigned characters; separators; what fonts leave out; and the empty pattern of Braille.
const INVISIBLE = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;
const COMBINING = /\p{M}/u; // changes the look of the character before it, so it needs one that belongs to the data
const USUAL_ESCAPES = new Set(['\\\\', '\\x09', '\\x0a', '\\x0d']); // those that text has, too
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

const hex = (number, digits) => number.toString(16).padStart(digits, '0');

// Bytes of a base64 text, as the server sends them.
export function fromBase64(text) {
  const binary = atob(text ?? '');
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

export function toBase64(bytes) {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => hex(byte, 2)).join('');
}

// `before`: how the character before this one is shown; empty: there is none.
function showCharacter(character, before) {
  if (character === '\\') return '\\\\';
  const stands = before !== '' && !before.startsWith('\\');
  const isVisible = !INVISIBLE.test(character) && (stands || !COMBINING.test(character));
  if (character === ' ' || isVisible) return character;
  const code = character.codePointAt(0);
  if (code < 0x80) return `\\x${hex(code, 2)}`;
  return code <= 0xffff ? `\\u${hex(code, 4)}` : `\\u{${hex(code, 1)}}`;
}

// How many bytes the character that begins with this byte should have; 0: none begins so.
function lengthOfCharacter(byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

function decodeCharacter(bytes, at) {
  const length = lengthOfCharacter(bytes[at]);
  if (length === 0 || at + length > bytes.length) return undefined;
  try {
    return { length, text: decoder.decode(bytes.subarray(at, at + length)) };
  } catch {
    return undefined;
  }
}

// The text, and how many escapes are in it. Doubled backslashes and the ends of lines do not count.
export function showBytes(bytes) {
  let text = '';
  let escapes = 0;
  let shown = '';
  for (let at = 0; at < bytes.length;) {
    const character = decodeCharacter(bytes, at);
    shown = character ? showCharacter(character.text, shown) : `\\x${hex(bytes[at], 2)}`;
    if (shown.startsWith('\\') && !USUAL_ESCAPES.has(shown)) escapes += 1;
    text += shown;
    at += character ? character.length : 1;
  }
  return { text, escapes };
}

export const showKey = (base64) => showBytes(fromBase64(base64)).text;

// Bytes that are mostly readable are shown as text, others as hexadecimal digits.
export function showValueBytes(bytes) {
  const { text, escapes } = showBytes(bytes);
  return escapes * 4 <= bytes.length ? { text, form: 'text' } : { text: toHex(bytes), form: 'hex' };
}

// Text of a server or of a user name: the same escapes, and backslashes stay single.
export function showText(text) {
  let shown = '';
  const show = (character) => (shown = character === '\\' ? character : showCharacter(character, shown));
  return Array.from(text, show).join('');
}

const ESCAPE = /\\(?:\\|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\})/y;

// The bytes of what a person typed, with the escapes of showBytes(). Throws an Error that says what is wrong.
export function parseBytes(text) {
  const bytes = [];
  for (let at = 0; at < text.length;) {
    if (text[at] !== '\\') {
      const character = String.fromCodePoint(text.codePointAt(at));
      bytes.push(...encoder.encode(character));
      at += character.length;
      continue;
    }
    ESCAPE.lastIndex = at;
    const match = ESCAPE.exec(text);
    const code = match && Number.parseInt(match[2] ?? match[3] ?? '0', 16);
    if (!match || code > 0x10ffff) {
      throw new Error(`There is no escape "${text.slice(at, at + 4)}". Write \\\\ for a backslash, or \\x00, \\u202e.`);
    }
    if (match[1]) bytes.push(Number.parseInt(match[1], 16));
    else bytes.push(...encoder.encode(match[0] === '\\\\' ? '\\' : String.fromCodePoint(code)));
    at += match[0].length;
  }
  return Uint8Array.from(bytes);
}

// The first key after all keys that begin with `prefix`; empty: there is none.
export function endOfPrefix(prefix) {
  let end = prefix.length;
  while (end > 0 && prefix[end - 1] === 0xff) end -= 1;
  const bytes = prefix.slice(0, end);
  if (end > 0) bytes[end - 1] += 1;
  return bytes;
}

// The key that comes directly after this one.
export function nextKey(key) {
  const bytes = new Uint8Array(key.length + 1);
  bytes.set(key);
  return bytes;
}
