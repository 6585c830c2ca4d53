// Plain scalars as kubectl reads them: YAML 1.1 in the dialect of go-yaml v2, which sigs.k8s.io/yaml carries.
// `off` is false, `010` is 8, `1_000` is 1000; base 60 (`1:30`) and timestamps are strings there.

const WORDS = new Map<string, boolean | null | number>([
  ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'].map(
    (word) => [word, true] as const,
  ),
  ...['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'].map(
    (word) => [word, false] as const,
  ),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
  ...['.inf', '.Inf', '.INF', '+.inf', '+.Inf', '+.INF'].map((word) => [word, Infinity] as const),
  ...['-.inf', '-.Inf', '-.INF'].map((word) => [word, -Infinity] as const),
  ...['.nan', '.NaN', '.NAN'].map((word) => [word, NaN] as const),
]);

const INTEGER = /^([-+]?)(0[xX][0-9A-Fa-f]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;
/** Numbers are shorter; a longer one would only be slow to read. */
const NUMBER_LENGTH_MAX = 64;

/** The value of a plain (unquoted) scalar. Infinities and not-a-number have no place in JSON, and no field takes them. */
export function plainScalar(source: string): string | number | boolean | null {
  const word = WORDS.get(source);
  if (word !== undefined) return word;
  if (source.length > NUMBER_LENGTH_MAX || !/^[-+.0-9]/.test(source)) return source;
  const digits = source.replaceAll('_', '');
  const integer = INTEGER.exec(digits);
  if (integer !== null) return integerOf(integer[1] === '-', String(integer[2]));
  return FLOAT.test(digits) ? Number(digits) : source;
}

function integerOf(isNegative: boolean, digits: string): number {
  const octal = /^0[0-7]+$/.test(digits);
  const size = Number(octal ? `0o${digits.slice(1)}` : digits);
  return isNegative ? -size : size;
}
