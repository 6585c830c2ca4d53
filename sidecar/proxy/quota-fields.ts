// When the upstream limits too, the client must see the stricter of the two: a looser number of ours would invite
// requests that the upstream refuses (policy: "the one with the smaller remaining stays").
// Read only when such a field is there at all.
import { isInnerList, parseDictionary, parseList } from 'structured-headers';
import type { Quota } from './gate.ts';

/** `absent`: no conflict. `theirs`: the upstream's fields stay and ours are not sent. `ours`: ours replace them. */
export type QuotaChoice = 'absent' | 'ours' | 'theirs';

/** What a response of the application says, by lower-case name. */
export interface ResponseFields {
  header(name: string): string | undefined;
}

/** Which quota fields the client sees. A field of the upstream that cannot be read stays: it is never loosened. */
export function chooseQuota(
  response: ResponseFields,
  form: Quota['form'],
  remaining: number,
): QuotaChoice {
  const sent = response.header(form === 'RateLimit' ? 'ratelimit' : 'x-ratelimit-remaining');
  if (sent === undefined) return 'absent';
  const theirs = form === 'RateLimit' ? leastRemaining(sent) : plainRemaining(sent);
  return theirs === undefined || theirs <= remaining ? 'theirs' : 'ours';
}

/** Field lines of `fields` that are no quota fields: what is left of ours when theirs stay. */
export function withoutQuota(fields: string): string {
  const lines = fields
    .split('\r\n')
    .filter((line) => line !== '' && !/^(x-)?ratelimit/i.test(line));
  return lines.map((line) => `${line}\r\n`).join('');
}

/** The least `r` of a RateLimit list (draft 08 on), or `remaining` of the dictionary that draft 07 had. */
function leastRemaining(value: string): number | undefined {
  return attempt(() => leastOfList(value)) ?? attempt(() => remainingOfDictionary(value));
}

function leastOfList(value: string): number | undefined {
  let least: number | undefined;
  for (const [, parameters] of parseList(value)) {
    const r = parameters.get('r');
    if (typeof r === 'number' && (least === undefined || r < least)) least = r;
  }
  return least;
}

function remainingOfDictionary(value: string): number | undefined {
  const member = parseDictionary(value).get('remaining');
  if (member === undefined || isInnerList(member)) return undefined;
  return typeof member[0] === 'number' ? member[0] : undefined;
}

function plainRemaining(value: string): number | undefined {
  return /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Undefined when the value is no structured field of that type. */
function attempt(read: () => number | undefined): number | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
