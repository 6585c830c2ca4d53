// The rules of a redirected pod, and how to get to them from what the nat table holds. They stand in a chain of our own
// that PREROUTING enters first: what comes from outside passes there, what the pod's containers say to each other or to
// others does not. There is no rule about OUTPUT and none about users: nothing that leaves the pod is touched.
import type { PortPair } from './port-pair.ts';

const CHAIN = 'WEIR_REDIRECT';

export type Family = 4 | 6;
/** Which interface of the kernel the program speaks to. */
export type Backend = 'nft' | 'legacy';
export const backends: readonly Backend[] = ['nft', 'legacy'];

/** Arguments of one call of iptables, after those that every call has. */
export type Call = readonly string[];

/** Seconds to wait for the lock that another call holds: each call takes milliseconds. */
const LOCK_SECONDS = '5';

export function programOf(family: Family, backend: Backend): string {
  return `${family === 4 ? 'iptables' : 'ip6tables'}-${backend}`;
}

export function argumentsOf(call: Call): readonly string[] {
  return ['-w', LOCK_SECONDS, '-t', 'nat', ...call];
}

/** Asks for every chain and rule of the table. */
export const LIST: Call = ['-S'];

/** What is in the nat table, as far as it concerns us. */
export interface NatTable {
  readonly hasChain: boolean;
  /** Rules of our chain, in order, without the words that only some versions print. */
  readonly rules: readonly string[];
  /** Rules of PREROUTING, in the same form. */
  readonly prerouting: readonly string[];
}

/** Reads the answer to `LIST`. */
export function readNatTable(listing: string): NatTable {
  const lines = listing.split('\n').map((line) => line.trim());
  const rulesOf = (chain: string): readonly string[] =>
    lines
      .filter((line) => line.startsWith(`-A ${chain} `))
      .map((line) => line.slice(`-A ${chain} `.length).replace(' -m tcp ', ' '));
  return {
    hasChain: lines.includes(`-N ${CHAIN}`),
    rules: rulesOf(CHAIN),
    prerouting: rulesOf('PREROUTING'),
  };
}

const JUMP: Call = ['-p', 'tcp', '-j', CHAIN];

function ruleOf({ from, to }: PortPair): Call {
  return ['-p', 'tcp', '--dport', String(from), '-j', 'REDIRECT', '--to-ports', String(to)];
}

/** The calls that lead from the table to the wanted rules; none when they are there. */
export function planCalls(pairs: readonly PortPair[], table: NatTable): readonly Call[] {
  const isJumpInPlace = isJumpFirst(table);
  if (isJumpInPlace && holdsRules(pairs, table)) return [];
  return [
    [table.hasChain ? '-F' : '-N', CHAIN],
    ...pairs.map((pair) => ['-A', CHAIN, ...ruleOf(pair)]),
    // Last, so that a chain that could not be filled is never entered. First in PREROUTING: a rule of somebody else's
    // that takes every connection would leave none for ours.
    ...(isJumpInPlace ? [] : [...removedJumps(table), ['-I', 'PREROUTING', '1', ...JUMP]]),
  ];
}

/** Takes out what is ours, for a table that could not be brought in order. */
export function planRemoval(table: NatTable): readonly Call[] {
  if (!table.hasChain) return [];
  return [...removedJumps(table), ['-F', CHAIN], ['-X', CHAIN]];
}

function removedJumps({ prerouting }: NatTable): readonly Call[] {
  return prerouting.filter(isJump).map(() => ['-D', 'PREROUTING', ...JUMP]);
}

/** One for each rule: asks whether it is there. */
export function planChecks(pairs: readonly PortPair[]): readonly Call[] {
  return [['-C', 'PREROUTING', ...JUMP], ...pairs.map((pair) => ['-C', CHAIN, ...ruleOf(pair)])];
}

/**
 * What differs from the wanted rules, in words; undefined = nothing. It says more than the checks do: ip6tables-legacy
 * 1.8.9 was seen to find a rule for another port.
 */
export function whyNotInForce(pairs: readonly PortPair[], table: NatTable): string | undefined {
  if (!isJumpFirst(table)) return `the first rule of PREROUTING is not ${JUMP.join(' ')}`;
  if (holdsRules(pairs, table)) return undefined;
  const listed = table.rules.length === 0 ? 'nothing' : table.rules.join('; ');
  return `chain ${CHAIN} holds ${listed}`;
}

function isJump(rule: string): boolean {
  return rule === JUMP.join(' ');
}

function isJumpFirst({ prerouting: [first = '', ...others] }: NatTable): boolean {
  return isJump(first) && !others.some(isJump);
}

function holdsRules(pairs: readonly PortPair[], { rules }: NatTable): boolean {
  const wanted = pairs.map((pair) => ruleOf(pair).join(' '));
  return rules.length === wanted.length && wanted.every((rule, index) => rules[index] === rule);
}
