// Parts of a policy in plain words: conditions, keys, selectors.
import { kindOfPart } from './key.ts';
import type { KeyPart } from './key.ts';
import type { LabelExpression, LabelSelector } from './label-selector.ts';
import type { ClaimMatch, FieldMatch, Match, PathMatch } from './match.ts';

/** `the path begins with /v1/ and the method is GET, or the host is a.example`. */
export function conditionWords(matches: readonly Match[]): string {
  return matches.map(matchWords).join(', or ');
}

function matchWords(match: Match): string {
  const { methods, path, headers = [], query = [], hosts, clientCIDRs, claims = [], cel } = match;
  return [
    ...anyOf('the method is', methods),
    ...(path === undefined ? [] : [pathWords(path)]),
    ...headers.map((header) => fieldWords('header', header)),
    ...query.map((parameter) => fieldWords('query parameter', parameter)),
    ...anyOf('the host is', hosts),
    ...anyOf('the client is in', clientCIDRs),
    ...claims.map(claimWords),
    ...(cel === undefined ? [] : [`\`${cel.expression}\` holds`]),
  ].join(' and ');
}

function anyOf(intro: string, values: readonly string[] | undefined): string[] {
  return values === undefined ? [] : [`${intro} ${values.join(' or ')}`];
}

function pathWords({ type, value }: PathMatch): string {
  switch (type) {
    case 'Exact':
      return `the path is ${value}`;
    case 'Prefix':
      return `the path begins with ${value}`;
    case 'Regex':
      return `the path matches \`${value}\``;
  }
}

// What a condition says, and what its inversion says.
const COMPARISONS = {
  Exact: ['is', 'is not'],
  Prefix: ['begins with', 'does not begin with'],
  Regex: ['matches', 'does not match'],
  Present: ['is there', 'is absent'],
} as const;

function fieldWords(noun: string, match: FieldMatch): string {
  const { name, type = 'Exact', value, invert = false } = match;
  const comparison = COMPARISONS[type][invert ? 1 : 0];
  const object =
    value === undefined ? '' : ` ${type === 'Regex' ? `\`${value}\`` : JSON.stringify(value)}`;
  return `the ${noun} ${name} ${comparison}${object}`;
}

function claimWords({ path, value, invert }: ClaimMatch): string {
  return `the claim ${path.join(' › ')} is ${invert === true ? 'not ' : ''}${JSON.stringify(value)}`;
}

/** `value of header X-Api-Key and client address`. */
export function keyWords(key: readonly KeyPart[]): string {
  return key.map(partWords).join(' and ');
}

const MARKERS = new Map<string | undefined, string>([
  ['clientIP', 'client address'],
  ['path', 'path'],
  ['method', 'method'],
  ['host', 'host'],
]);

function partWords(part: KeyPart): string {
  const { header, cookie, query, claim, pathSegment, constant, cel } = part;
  if (header !== undefined) return `value of header ${header.name}`;
  if (cookie !== undefined) return `value of cookie ${cookie.name}`;
  if (query !== undefined) return `value of query parameter ${query.name}`;
  if (claim !== undefined) return `value of claim ${claim.path.join(' › ')}`;
  if (pathSegment !== undefined) return `segment ${String(pathSegment.index)} of the path`;
  if (constant !== undefined) return `constant ${JSON.stringify(constant.value)}`;
  if (cel !== undefined) return `value of \`${cel.expression}\``;
  return String(MARKERS.get(kindOfPart(part)));
}

/** `pods with app=api`, or `every opted-in pod of the namespace`. */
export function selectorWords({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const conditions = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(expressionWords),
  ];
  if (conditions.length === 0) return 'every opted-in pod of the namespace';
  return `pods with ${conditions.join(', ')}`;
}

function expressionWords({ key, operator, values = [] }: LabelExpression): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(', ')})`;
    case 'NotIn':
      return `${key} not in (${values.join(', ')})`;
    case 'Exists':
      return `a label ${key}`;
    case 'DoesNotExist':
      return `no label ${key}`;
  }
}
