// Hot path.
// Matches of a policy, compiled to functions over the facts of a request. A list is ORed, the fields of one match are
// ANDed, cheap fields are asked first.
import type { CompiledFieldMatch, CompiledMatch } from '../../contract/bundle.ts';
import { bytesOf, textOf } from './byte-string.ts';
import { Networks } from './address.ts';
import { claimHas } from './claim.ts';
import type { RequestFacts } from './request-facts.ts';
import type { RuleTerms } from './rule-terms.ts';

/** Whether something holds for the request at hand. */
export type Test = (facts: RequestFacts) => boolean;

/** True when any of `matches` does; an empty list gives `ifEmpty`. */
export function compileAny(
  matches: readonly CompiledMatch[],
  terms: RuleTerms,
  ifEmpty: Test,
): Test {
  const [first, ...others] = matches.map((match) => compileMatch(match, terms));
  if (first === undefined) return ifEmpty;
  if (others.length === 0) return first;
  return (facts) => first(facts) || others.some((test) => test(facts));
}

export const always: Test = () => true;
export const never: Test = () => false;

function compileMatch(match: CompiledMatch, terms: RuleTerms): Test {
  const { methods, path, hosts, headers, query, clientCIDRs, claims, cel } = match;
  return all([
    ...compiled(methods, methodTest),
    ...compiled(path, (value) => pathTest(value, terms)),
    ...compiled(hosts, hostTest),
    ...compiled(headers, (fields) => all(fields.map((field) => headerTest(field, terms)))),
    ...compiled(query, (fields) => all(fields.map((field) => queryTest(field, terms)))),
    ...compiled(clientCIDRs, (cidrs) => networkTest(cidrs, terms)),
    ...compiled(claims, (wanted) => all(wanted.map((claim) => claimTest(claim, terms)))),
    ...compiled(cel, ({ expression }) => terms.celTest(expression)),
  ]);
}

/** The test of a field of a match; none for a field that was not written. */
function compiled<T>(field: T | undefined, compile: (field: T) => Test): Test[] {
  return field === undefined ? [] : [compile(field)];
}

function all(tests: readonly Test[]): Test {
  const [first, second, ...others] = tests;
  if (first === undefined) return always;
  if (second === undefined) return first;
  if (others.length === 0) return (facts) => first(facts) && second(facts);
  return (facts) => tests.every((test) => test(facts));
}

function methodTest(methods: readonly string[]): Test {
  const [only, ...others] = methods;
  if (others.length === 0) return (facts) => facts.view.method === only;
  const wanted = new Set(methods);
  return (facts) => wanted.has(facts.view.method);
}

function pathTest({ type, value }: NonNullable<CompiledMatch['path']>, terms: RuleTerms): Test {
  const bytes = bytesOf(value);
  switch (type) {
    case 'Exact':
      return (facts) => facts.path === bytes;
    case 'Prefix':
      return prefixTest(bytes.replace(/\/+$/, ''));
    case 'Regex': {
      const expression = terms.expression(value);
      return (facts) => expression.test(textOf(facts.path));
    }
  }
}

/** Whole segments: `/v1` is a prefix of `/v1` and `/v1/x`, not of `/v10`. */
function prefixTest(prefix: string): Test {
  const inner = `${prefix}/`;
  return ({ path }) => path.startsWith(inner) || path === prefix;
}

function hostTest(hosts: readonly string[]): Test {
  const exact = new Set(hosts);
  const suffixes = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(1));
  return ({ host }) =>
    exact.has(host) ||
    suffixes.some((suffix) => host.endsWith(suffix) && host.length > suffix.length);
}

function headerTest(field: CompiledFieldMatch, terms: RuleTerms): Test {
  const fact = terms.names.header(field.name);
  const test = valueTest(field, terms);
  return (facts) => test(facts.header(fact));
}

function queryTest(field: CompiledFieldMatch, terms: RuleTerms): Test {
  const fact = terms.names.query(bytesOf(field.name));
  const test = valueTest(field, terms);
  return (facts) => test(facts.query(fact));
}

type ValueTest = (value: string | undefined) => boolean;

/** An absent field matches nothing, hence everything that is inverted. */
function valueTest(field: CompiledFieldMatch, terms: RuleTerms): ValueTest {
  const test = uprightTest(field, terms);
  if (field.invert) return (value) => value === undefined || !test(value);
  return (value) => value !== undefined && test(value);
}

function uprightTest(
  { type, value }: CompiledFieldMatch,
  terms: RuleTerms,
): (value: string) => boolean {
  const bytes = bytesOf(value);
  switch (type) {
    case 'Exact':
      return (sent) => sent === bytes;
    case 'Prefix':
      return (sent) => sent.startsWith(bytes);
    case 'Present':
      return () => true;
    case 'Regex': {
      const expression = terms.expression(value);
      return (sent) => expression.test(textOf(sent));
    }
  }
}

function networkTest(cidrs: readonly string[], terms: RuleTerms): Test {
  const networks = new Networks(cidrs);
  const client = terms.client;
  return (facts) => networks.has(facts.client(client).address);
}

type ClaimMatch = NonNullable<CompiledMatch['claims']>[number];

/** Without a verified token there is no claim: an inverted match is true then. */
function claimTest({ path, value, invert }: ClaimMatch, terms: RuleTerms): Test {
  const source = terms.tokens;
  if (source === undefined) return invert ? always : never;
  return (facts) => claimHas(facts.claims(source), path, value) !== invert;
}
