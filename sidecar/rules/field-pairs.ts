// Hot path.
// The name=value pairs of query strings and Cookie fields.
import { formDecoded } from './request-target.ts';

type VisitPair = (name: string, value: string) => void;

/** Visits the pairs of a query string in order, decoded. A pair without `=` has an empty value. */
export function eachQueryPair(query: string, visit: VisitPair): void {
  let start = 0;
  while (start < query.length) {
    const mark = query.indexOf('&', start);
    const end = mark < 0 ? query.length : mark;
    // Sliced before `=` is looked for: a search to the end of the query for each pair would cost its square.
    const pair = query.slice(start, end);
    const equals = pair.indexOf('=');
    if (equals < 0) visit(formDecoded(pair), '');
    else visit(formDecoded(pair.slice(0, equals)), formDecoded(pair.slice(equals + 1)));
    start = end + 1;
  }
}

/**
 * Visits the pairs of a Cookie field in order (RFC 6265 §4.2.1). Quotes around a value are not part of it: servers
 * drop them, and `"a"` must not be another client than `a`. A pair without `=` is no cookie.
 */
export function eachCookiePair(field: string, visit: VisitPair): void {
  let start = 0;
  while (start < field.length) {
    const mark = field.indexOf(';', start);
    const end = mark < 0 ? field.length : mark;
    const pair = field.slice(start, end);
    const equals = pair.indexOf('=');
    if (equals >= 0) visit(pair.slice(0, equals).trim(), unquoted(pair.slice(equals + 1).trim()));
    start = end + 1;
  }
}

function unquoted(value: string): string {
  const isQuoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
  return isQuoted ? value.slice(1, -1) : value;
}
