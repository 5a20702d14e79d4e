// Role: JSON with 64-bit integers. JSON.parse() would round those beyond 2^53, so every integer becomes a BigInt here.

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

// A name that no text in `value` has, so it can mark what was not there.
function unusedName(value) {
  const all = JSON.stringify(value);
  let name = '$integer';
  while (all.includes(name)) name += '$';
  return name;
}

export function parseJson(text) {
  let rounded;
  try {
    rounded = JSON.parse(text); // first, so that a message names the place in what the person wrote
  } catch (error) {
    throw new Error(`This is no JSON: ${error.message}`);
  }
  const mark = unusedName(rounded);
  const marked = text.replace(TOKEN, (token) => (/^-?\d+$/.test(token) ? `{"${mark}":"${token}"}` : token));
  const isMarked = (value) => typeof value === 'object' && value !== null && Object.hasOwn(value, mark);
  return JSON.parse(marked, (_, value) => (isMarked(value) ? BigInt(value[mark]) : value));
}

const scalar = (value) => (typeof value === 'bigint' ? String(value) : JSON.stringify(value));

function inner(value) {
  if (Array.isArray(value)) return `[${value.map(inner).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return scalar(value);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}: ${inner(field)}`).join(', ')}}`;
}

// An object with a line for each field, and for each element of the lists in it.
export function writeJson(object) {
  const lines = Object.entries(object)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => {
      const isList = Array.isArray(value) && value.length > 0;
      const text = isList ? `[\n${value.map((one) => `    ${inner(one)}`).join(',\n')}\n  ]` : inner(value);
      return `  ${JSON.stringify(name)}: ${text}`;
    });
  return `{\n${lines.join(',\n')}\n}`;
}
