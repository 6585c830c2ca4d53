// Writes the redirect rules of a pod and proves that they are there. The pod must not start when there is any doubt:
// without its rules it would serve, look healthy and limit nothing. A rule is therefore asked for one by one, and then
// the whole table is read again. A table that is in order already is not touched: no moment without rules.
import { WeirError } from '../../contract/errors.ts';
import {
  argumentsOf,
  backends,
  LIST,
  planCalls,
  planChecks,
  planRemoval,
  programOf,
  readNatTable,
  whyNotInForce,
  type Backend,
  type Call,
  type Family,
  type NatTable,
} from './nat-table.ts';
import { hasNetAdmin, hasRoutedIpv6, remedyForPrivilege } from './pod-network.ts';
import type { PortPair } from './port-pair.ts';

/** How a program ended. */
export type Ran =
  | {
      readonly kind: 'ended';
      readonly code: number;
      readonly stdout: string;
      readonly said: string;
    }
  /** It could not be run, or did not end in time. */
  | { readonly kind: 'not-run'; readonly said: string };

/** What the rules are written with. */
export interface Pod {
  readonly uid: number;
  /** Text of /proc/self/status. */
  readonly processStatus: string;
  /** Text of /proc/net/if_inet6; empty where the kernel has no IPv6. */
  readonly ipv6Addresses: string;
  readonly run: (program: string, args: readonly string[]) => Promise<Ran>;
}

export type FamilyOutcome =
  | {
      readonly family: Family;
      readonly kind: 'in-force';
      readonly program: string;
      /** False = the rules were there already. */
      readonly isChanged: boolean;
    }
  /** The pod has no address of the family that anybody could route to. */
  | { readonly family: Family; readonly kind: 'skipped'; readonly why: string };

/** Both families in order. Throws REDIRECT_FAILED naming the rule, what was said and what to do. */
export async function redirectPorts(
  pairs: readonly PortPair[],
  pod: Pod,
): Promise<readonly FamilyOutcome[]> {
  if (!hasNetAdmin(pod.processStatus)) {
    const said = 'this process has no effective NET_ADMIN';
    throw new WeirError('REDIRECT_FAILED', { said, remedy: remedyForPrivilege(pod.uid) });
  }
  const four = await writeFamily(4, pairs, pod);
  if (four.kind === 'failed') throw failureOf(four.failures);
  const six = await writeFamily(6, pairs, pod);
  if (six.kind !== 'failed') return [four, six];
  if (hasRoutedIpv6(pod.ipv6Addresses)) throw failureOf(six.failures);
  const why = `no IPv6 address beyond the link, and ${six.failures.map(describe).join('; ')}`;
  return [four, { family: 6, kind: 'skipped', why }];
}

interface Failure {
  readonly program: string;
  /** The call that failed, or what is wrong with the table. */
  readonly rule: string;
  readonly said: string;
}

type Written =
  | Extract<FamilyOutcome, { kind: 'in-force' }>
  | { readonly kind: 'failed'; readonly failures: readonly Failure[] };

async function writeFamily(
  family: Family,
  pairs: readonly PortPair[],
  { run }: Pod,
): Promise<Written> {
  const failures: Failure[] = [];
  for (const backend of backends) {
    const outcome = await writeTable(tableOf(family, backend, run), pairs);
    if (outcome.kind === 'in-force') return { family, ...outcome };
    failures.push(outcome);
  }
  return { kind: 'failed', failures };
}

/** One table of the kernel behind one program. */
interface Table {
  readonly program: string;
  readonly call: (call: Call) => Promise<{ readonly stdout: string } | Failed>;
}

interface Failed extends Failure {
  readonly kind: 'failed';
}

function tableOf(family: Family, backend: Backend, run: Pod['run']): Table {
  const program = programOf(family, backend);
  return {
    program,
    async call(call) {
      const ran = await run(program, argumentsOf(call));
      if (ran.kind === 'ended' && ran.code === 0) return { stdout: ran.stdout };
      const code = ran.kind === 'ended' ? ` (exit ${ran.code})` : '';
      return failed(program, call.join(' '), `${ran.said}${code}`);
    },
  };
}

function failed(program: string, rule: string, said: string): Failed {
  return { kind: 'failed', program, rule, said };
}

async function writeTable(
  table: Table,
  pairs: readonly PortPair[],
): Promise<Failed | { kind: 'in-force'; program: string; isChanged: boolean }> {
  const { program } = table;
  const before = await listed(table);
  if ('kind' in before) return before;
  const calls = planCalls(pairs, before);
  const failure = (await firstFailure(table, calls)) ?? (await whyDoubtful(table, pairs));
  if (failure === undefined) return { kind: 'in-force', program, isChanged: calls.length > 0 };
  await remove(table);
  return failure;
}

async function listed(table: Table): Promise<NatTable | Failed> {
  const answer = await table.call(LIST);
  return 'kind' in answer ? answer : readNatTable(answer.stdout);
}

async function firstFailure(table: Table, calls: readonly Call[]): Promise<Failed | undefined> {
  for (const call of calls) {
    const answer = await table.call(call);
    if ('kind' in answer) return answer;
  }
  return undefined;
}

async function whyDoubtful(table: Table, pairs: readonly PortPair[]): Promise<Failed | undefined> {
  const missing = await firstFailure(table, planChecks(pairs));
  if (missing !== undefined) return missing;
  const after = await listed(table);
  if ('kind' in after) return after;
  const difference = whyNotInForce(pairs, after);
  if (difference === undefined) return undefined;
  return failed(table.program, LIST.join(' '), difference);
}

/** Half a set of rules must not stand beside the whole one of another program. What fails here has been said before. */
async function remove(table: Table): Promise<void> {
  const left = await listed(table);
  if ('kind' in left) return;
  await firstFailure(table, planRemoval(left));
}

function describe({ program, rule, said }: Failure): string {
  return `${program} ${rule}: ${said === '' ? 'no word' : said}`;
}

const REMEDY =
  'the node needs nf_tables or ip_tables with NAT, and the image iptables (redirect-init has it); without them use weir.dev/mode: takeover';

function failureOf(failures: readonly Failure[]): WeirError {
  const tried = Object.fromEntries(failures.map((one) => [one.program, describe(one)]));
  return new WeirError('REDIRECT_FAILED', { ...tried, remedy: REMEDY });
}
