// Columns of the protocol as typed arrays. The descriptors of the protocol say which field has which type:
//
//   repeated fixed32  Uint32Array       repeated sfixed64  BigInt64Array      repeated fixed64  BigUint64Array
//   bytes             Buffer            uint32             number             uint64, int64     BigInt
//
// A packed column of fixed width is a sequence of little-endian numbers in the message, so it is copied, not parsed.
import { ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';

import { fieldNumber, fieldsOf } from './protocol.js';

const ARRAYS = new Map([
  [ScalarType.FIXED32, Uint32Array],
  [ScalarType.FIXED64, BigUint64Array],
  [ScalarType.SFIXED64, BigInt64Array],
]);

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
if (!LITTLE_ENDIAN) throw new Error('kilokv needs a machine with little-endian numbers');

// Describes the columns of a message: name -> number, and the class of typed array, or the scalar type, or the message.
function layoutOf(name) {
  const layout = fieldsOf(name).map((field) => {
    const scalar = field.fieldKind === 'list' ? field.scalar : field.fieldKind === 'scalar' ? field.scalar : undefined;
    const array =
      field.fieldKind === 'list' ? ARRAYS.get(scalar) : scalar === ScalarType.BYTES ? Uint8Array : undefined;
    if (field.fieldKind === 'list' && !array) throw new Error(`${name}.${field.name} of the protocol is no column`);
    return { name: field.localName, number: field.number, array, scalar, message: field.message?.name };
  });
  return {
    byNumber: new Map(layout.map((field) => [field.number, field])),
    byName: new Map(layout.map((field) => [field.name, field])),
  };
}

const layouts = new Map(['TransactionColumns', 'ResultColumns', 'ReadColumns'].map((name) => [name, layoutOf(name)]));

// The class of the typed array of each column of TransactionColumns; `undefined` for key_length, which is a number.
export const transactionColumns = new Map(
  [...layouts.get('TransactionColumns').byName].map(([name, field]) => [name, field.array]),
);

// The bytes of a typed array, without a copy.
export function bytesOf(array) {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

// Encodes columns that are typed arrays of the right classes. Columns without elements are left out.
export function encodeTransactionColumns(columns) {
  const writer = new BinaryWriter();
  for (const [name, field] of layouts.get('TransactionColumns').byName) {
    const value = columns[name];
    if (value === undefined || value === 0 || value.length === 0) continue;
    if (field.array) writer.tag(field.number, WireType.LengthDelimited).bytes(bytesOf(value));
    else writer.tag(field.number, WireType.Varint).uint32(value);
  }
  return writer.finish();
}

// Copies the bytes of a packed column into a typed array. The copy aligns them.
function arrayOf(field, bytes) {
  if (field.array === Uint8Array) return Buffer.from(bytes);
  if (bytes.length % field.array.BYTES_PER_ELEMENT !== 0) throw new Error(`${field.name} has a part of an element`);
  const copy = new Uint8Array(bytes); // its memory begins at 0
  return new field.array(copy.buffer, 0, bytes.length / field.array.BYTES_PER_ELEMENT);
}

// Decodes ResultColumns or ReadColumns. A column that is left out is empty, and a number is 0.
export function decodeColumns(name, bytes) {
  const { byNumber, byName } = layouts.get(name);
  const result = {};
  for (const field of byName.values()) {
    if (field.array) result[field.name] = new field.array(0);
    else if (field.message) result[field.name] = null;
    else result[field.name] = 0n;
  }
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const field = byNumber.get(number);
    if (!field) reader.skip(wireType, number);
    else if (field.message) result[field.name] = decodeColumns(field.message, reader.bytes());
    else if (field.array) result[field.name] = arrayOf(field, reader.bytes());
    else result[field.name] = BigInt(field.scalar === ScalarType.INT64 ? reader.int64() : reader.uint64());
  }
  for (const field of byName.values()) result[field.name] ??= decodeColumns(field.message, new Uint8Array(0));
  return result;
}

// Splits an answer that has either rows or columns into its fields, without parsing the columns. `name` is
// SessionResponse or ExecuteBatchResponse. Returns the bytes of each message that it has, and the numbers `number` and
// `last`.
export function splitAnswer(name, bytes) {
  const answer = { number: 0n, last: false, rows: null, columns: null, error: null };
  const names = new Map(
    fieldsOf(name)
      .filter((field) => Object.hasOwn(answer, field.localName))
      .map((field) => [field.number, field.localName]),
  );
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    switch (names.get(number)) {
      case undefined:
        reader.skip(wireType, number);
        break;
      case 'number':
        answer.number = BigInt(reader.uint64());
        break;
      case 'last':
        answer.last = reader.bool();
        break;
      default:
        answer[names.get(number)] = reader.bytes();
    }
  }
  return answer;
}

// Puts a message that is bytes already behind the fields of a request, as its field `field`. So a request is encoded
// once, however often it is sent.
export function payloadOf(name, field, bytes) {
  const writer = new BinaryWriter().tag(fieldNumber(name, field), WireType.LengthDelimited).bytes(bytes);
  return Buffer.from(writer.finish());
}
