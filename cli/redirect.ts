// `weir redirect`: the init container of a pod in redirect mode. It ends with success only when every rule is proven.
import type { PortPair } from '../sidecar/redirect/port-pair.ts';
import { parsePairs } from '../sidecar/redirect/port-pair.ts';
import { argumentsOf, planCalls, programOf, type Call } from '../sidecar/redirect/nat-table.ts';
import type { FamilyOutcome } from '../sidecar/redirect/redirection.ts';

export interface RedirectOptions {
  readonly forward?: readonly string[];
  readonly probe?: readonly string[];
  readonly dryRun?: boolean;
  readonly output: 'text' | 'json';
}

/** Throws CONFIG_INVALID and REDIRECT_FAILED. */
export async function runRedirect(
  { forward = [], probe = [], dryRun, output }: RedirectOptions,
  write: (text: string) => void,
): Promise<void> {
  const pairs = parsePairs({ forward, probe });
  if (dryRun === true) {
    const commands = commandsFor(pairs);
    const text = commands.map((command) => command.join(' ')).join('\n');
    write(output === 'json' ? json({ commands }) : `${text}\n`);
    return;
  }
  const [{ redirectPorts }, { openPod }] = await Promise.all([
    import('../sidecar/redirect/redirection.ts'),
    import('../sidecar/redirect/iptables.ts'),
  ]);
  const families = await redirectPorts(pairs, await openPod());
  write(output === 'json' ? json({ pairs, families }) : describe(pairs, families));
}

/** As they are run in a pod without rules whose kernel has nf_tables. */
function commandsFor(pairs: readonly PortPair[]): readonly Call[] {
  const calls = planCalls(pairs, { hasChain: false, rules: [], prerouting: [] });
  return ([4, 6] as const).flatMap((family) =>
    calls.map((call) => [programOf(family, 'nft'), ...argumentsOf(call)]),
  );
}

function describe(pairs: readonly PortPair[], families: readonly FamilyOutcome[]): string {
  const listed = pairs.map(({ from, to }) => `${from} to ${to}`).join(', ');
  return families
    .map((one) =>
      one.kind === 'skipped'
        ? `IPv${one.family}: left out: ${one.why}\n`
        : `IPv${one.family}: ${one.isChanged ? 'redirected' : 'redirected already'} by ${one.program}: ${listed}\n`,
    )
    .join('');
}

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
