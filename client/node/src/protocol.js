// The messages of proto/kilokv/v1, from their descriptors in protocol.binpb (scripts/make_protocol.js makes it).
//
// Two things could change the meaning of a request in silence: a field with a wrong name, which the encoder would leave
// out, and a number of an enum that is not that of the protocol. So message() refuses names that the protocol does not
// have, and numbers() gives the numbers of the protocol, and refuses a table that does not name all of them.
import { readFileSync } from 'node:fs';

import { create, createFileRegistry, fromBinary, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const PACKAGE = 'kilokv.v1';

const registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(new URL('./protocol.binpb', import.meta.url))),
);

function found(description, name) {
  if (!description) throw new Error(`the protocol has no ${name}`);
  return description;
}

const schemas = new Map();

// The description of a message, such as Transaction, and the names of its fields in JavaScript.
function schemaOf(name) {
  let entry = schemas.get(name);
  if (!entry) {
    const schema = found(registry.getMessage(`${PACKAGE}.${name}`), name);
    entry = { schema, names: new Set(schema.members.map((member) => member.localName)) };
    schemas.set(name, entry);
  }
  return entry;
}

// Makes a message. Its fields have the names of the protocol in camel case. Throws if the protocol lacks one of them.
export function message(name, fields) {
  const { schema, names } = schemaOf(name);
  for (const field of Object.keys(fields)) {
    if (!names.has(field)) throw new Error(`${name} has no field ${field}`);
  }
  return create(schema, fields);
}

// Returns the bytes of a message that message() has made.
export function encode(name, made) {
  return toBinary(schemaOf(name).schema, made);
}

export function decode(name, bytes) {
  return fromBinary(schemaOf(name).schema, bytes);
}

// The fields of a message, in the order of the protocol: number, name in JavaScript, and type.
export function fieldsOf(name) {
  return schemaOf(name).schema.fields;
}

// The number of a field.
export function fieldNumber(name, field) {
  return found(schemaOf(name).schema.field[field], `${name}.${field}`).number;
}

// All names and numbers of an enum.
export function enumNames(name) {
  return found(registry.getEnum(`${PACKAGE}.${name}`), name).values.map((value) => [value.name, value.number]);
}

// The numbers of an enum by names of our own. `names`: our name -> that of the protocol. Throws if the protocol lacks
// one of them, or has one that the table lacks. The value 0 need not be named if it is the one that means nothing.
export function numbers(name, names) {
  const known = new Map(enumNames(name));
  const result = {};
  for (const [own, theirs] of Object.entries(names)) {
    if (!known.has(theirs)) throw new Error(`${name} of the protocol has no ${theirs}`);
    result[own] = known.get(theirs);
    known.delete(theirs);
  }
  for (const [theirs, number] of known) {
    if (number !== 0 || !theirs.endsWith('_UNSPECIFIED')) throw new Error(`${name} of the protocol has ${theirs}, too`);
  }
  return Object.freeze(result);
}

// The methods of the service by name: path, and the functions that turn messages into bytes and back. A request may be
// bytes already, and an answer stays bytes where `raw` asks for it.
const service = found(registry.getService(`${PACKAGE}.KiloKV`), 'KiloKV');
export const methods = Object.freeze(
  Object.fromEntries(
    service.methods.map((method) => [
      method.name,
      {
        path: `/${service.typeName}/${method.name}`,
        serialize: (request) => Buffer.from(request instanceof Uint8Array ? request : toBinary(method.input, request)),
        deserialize: (bytes) => fromBinary(method.output, bytes),
        request: method.input.name,
        answer: method.output.name,
      },
    ]),
  ),
);
