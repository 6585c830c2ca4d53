// Against a table in memory: kernels and programs that this machine does not have.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../contract/errors.ts';
import { redirectPorts, type Pod, type Ran } from './redirection.ts';

const PAIRS = [{ from: 8080, to: 15_100 }];
const ROOT = 'CapEff:\t0000000000001000\n';
const ROUTED = 'fd000018000700000000000000000001 02 40 00 80     eth0\n';

type Fault = (call: string) => string | undefined;

/** The nat tables of a kernel, as the programs show them. */
class FakeTables {
  /** `program call` in order. */
  readonly calls: string[] = [];
  readonly #rules = new Map<string, string[]>();
  readonly #fault: Fault;

  /** `fault` gives what is said instead of doing a call. */
  constructor(fault: Fault = () => undefined) {
    this.#fault = fault;
  }

  readonly run = (program: string, args: readonly string[]): Promise<Ran> => {
    const call = args.slice(4).join(' ');
    this.calls.push(`${program} ${call}`);
    const said = this.#fault(`${program} ${call}`);
    if (said !== undefined)
      return Promise.resolve(said === '' ? { kind: 'not-run', said } : ended(1, said));
    const stdout = this.#apply(program, args.slice(4));
    return Promise.resolve(stdout === undefined ? ended(1, 'Bad rule') : ended(0, '', stdout));
  };

  rules(program: string): readonly string[] {
    return this.#rules.get(program) ?? [];
  }

  #apply(program: string, [flag = '', ...rest]: readonly string[]): string | undefined {
    const rules = this.#rules.get(program) ?? [];
    this.#rules.set(program, rules);
    const rule = `-A ${rest.join(' ')}`;
    switch (flag) {
      case '-N':
        rules.push(`-N ${rest.join(' ')}`);
        break;
      case '-A':
        rules.push(rule);
        break;
      case '-I':
        rules.push(rule.replace('PREROUTING 1', 'PREROUTING'));
        break;
      case '-C':
        return rules.includes(rule) ? '' : undefined;
      case '-S':
        return rules.join('\n');
      default:
        this.#rules.set(
          program,
          rules.filter((one) => !one.includes(rest.join(' '))),
        );
    }
    return '';
  }
}

function ended(code: number, said: string, stdout = ''): Ran {
  return { kind: 'ended', code, stdout, said };
}

function podWith(tables: FakeTables, changes: Partial<Pod> = {}): Pod {
  return { uid: 0, processStatus: ROOT, ipv6Addresses: ROUTED, run: tables.run, ...changes };
}

async function failureOf(pod: Pod): Promise<Readonly<Record<string, unknown>>> {
  try {
    await redirectPorts(PAIRS, pod);
  } catch (error) {
    assert(error instanceof WeirError);
    assert.equal(error.code, 'REDIRECT_FAILED');
    return error.details;
  }
  return assert.fail('nothing was refused');
}

/** Every call of the program fails. */
function without(...programs: readonly string[]): Fault {
  return (call) =>
    programs.some((program) => call.startsWith(program)) ? 'Protocol not supported' : undefined;
}

describe('the redirection of a pod', () => {
  it('is written by nf_tables in both families, and proven', async () => {
    const tables = new FakeTables();

    const outcome = await redirectPorts(PAIRS, podWith(tables));

    assert.deepEqual(outcome, [
      { family: 4, kind: 'in-force', program: 'iptables-nft', isChanged: true },
      { family: 6, kind: 'in-force', program: 'ip6tables-nft', isChanged: true },
    ]);
    const checks = tables.calls.filter((call) => call.includes(' -C '));
    assert.equal(checks.length, 4);
  });

  it('is left as it is when it is in order', async () => {
    const tables = new FakeTables();
    await redirectPorts(PAIRS, podWith(tables));
    const before = tables.calls.length;

    const outcome = await redirectPorts(PAIRS, podWith(tables));

    assert.ok(outcome.every((one) => one.kind === 'in-force' && !one.isChanged));
    assert.ok(tables.calls.slice(before).every((call) => / -[SC]\b/.test(call)));
  });

  it('falls back to legacy where a program is missing, and where only a rule is refused', async () => {
    const missing = new FakeTables((call) => (call.startsWith('iptables-nft') ? '' : undefined));
    const noTarget = new FakeTables((call) =>
      /^ip6?tables-nft -A/.test(call) ? 'RULE_APPEND failed' : undefined,
    );

    const [four] = await redirectPorts(PAIRS, podWith(missing));
    const both = await redirectPorts(PAIRS, podWith(noTarget));

    assert.equal(four?.kind === 'in-force' && four.program, 'iptables-legacy');
    assert.deepEqual(
      both.map((one) => one.kind === 'in-force' && one.program),
      ['iptables-legacy', 'ip6tables-legacy'],
    );
    // What was begun is taken away again.
    assert.deepEqual(noTarget.rules('iptables-nft'), []);
  });

  it('is refused when no program can write it, in the words of each', async () => {
    const tables = new FakeTables(without('iptables-nft', 'iptables-legacy'));

    const details = await failureOf(podWith(tables));

    assert.equal(details['iptables-nft'], 'iptables-nft -S: Protocol not supported (exit 1)');
    assert.equal(details['iptables-legacy'], 'iptables-legacy -S: Protocol not supported (exit 1)');
    assert.match(String(details['remedy']), /takeover/);
  });

  it('is refused when a rule is not found afterwards, and is then taken away', async () => {
    const tables = new FakeTables((call) =>
      call.includes('-C WEIR_REDIRECT') ? 'Bad rule' : undefined,
    );

    const details = await failureOf(podWith(tables));

    assert.match(String(details['iptables-nft']), /-C WEIR_REDIRECT .*--dport 8080.*Bad rule/);
    assert.deepEqual(tables.rules('iptables-nft'), []);
    assert.deepEqual(tables.rules('iptables-legacy'), []);
  });

  it('is refused when the table differs from what the checks say', async () => {
    // A program that says yes to every check, and a kernel that drops what is appended.
    const tables = new FakeTables();
    const run: Pod['run'] = (program, args) =>
      args.includes('-C') || args.includes('-A')
        ? Promise.resolve(ended(0, ''))
        : tables.run(program, args);

    const details = await failureOf({ ...podWith(tables), run });

    assert.match(String(details['iptables-nft']), /chain WEIR_REDIRECT holds nothing/);
  });

  it('does without ip6tables only where no routed IPv6 address is', async () => {
    const fault = without('ip6tables');

    const [, six] = await redirectPorts(
      PAIRS,
      podWith(new FakeTables(fault), { ipv6Addresses: '' }),
    );
    const details = await failureOf(podWith(new FakeTables(fault)));

    assert.match(six?.kind === 'skipped' ? six.why : '', /no IPv6 address.*Protocol not supported/);
    assert.ok('ip6tables-nft' in details);
  });

  it('asks iptables nothing without the capability', async () => {
    const tables = new FakeTables();

    const details = await failureOf(podWith(tables, { processStatus: 'CapEff:\t0\n', uid: 7 }));

    assert.match(String(details['remedy']), /user 7 /);
    assert.deepEqual(tables.calls, []);
  });
});
