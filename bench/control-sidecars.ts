// One process of simulated sidecars for bench:control, forked by bench/control/fleet.ts: the sidecar's own stream client
// and keeper of configurations, many times over, without a data path behind them. It notes when each policy came into
// force on each sidecar, on the clock that all processes of the machine share.
import process from 'node:process';
import type { StateFrame } from '../contract/stream.ts';
import { openLog } from '../sidecar/log.ts';
import { ConfigKeeper } from '../sidecar/policy/config-keeper.ts';
import type { ConfigTarget, PushedConfig } from '../sidecar/policy/pushed-config.ts';
import { StreamSource } from '../sidecar/policy/stream-source.ts';
import { GONE, sharedNowMs } from './control/fleet-message.ts';
import type { FleetAnswer, FleetCommand, SimulatedPod } from './control/fleet-message.ts';

const log = openLog('silent');
const sidecars: SimulatedSidecar[] = [];
/** When, by `<uid> <generation>`: one time for each sidecar. */
const inForce = new Map<string, number[]>();

class SimulatedSidecar implements ConfigTarget {
  /** When the operator's word was first in force here since the last mark; undefined = not yet. */
  programmedMs: number | undefined;
  #generations: ReadonlyMap<string, number> = new Map();
  #arrived: ReadonlyMap<string, number> | undefined;

  constructor({ url, ca }: { readonly url: string; readonly ca: string }, pod: SimulatedPod) {
    const { namespace, name, uid, tokenFile } = pod;
    new StreamSource({
      ...{ url, ca, tokenFile, pod: { namespace, name, uid }, version: '0.1.0', log },
      keeper: new ConfigKeeper(this, log),
      report: () => this.report(),
      onInForce: () => {
        this.#note();
      },
      onFailure: () => undefined,
      random: Math.random,
    });
  }

  async apply({ bundle }: PushedConfig): Promise<readonly []> {
    this.#arrived = new Map(bundle.policies.map(({ uid, generation }) => [uid, generation]));
    return [];
  }

  report(): Pick<StateFrame, 'store' | 'clientIpIsProxy'> {
    return { store: 'none', clientIpIsProxy: [] };
  }

  /** The answer to the push goes out right after. */
  #note(): void {
    const after = this.#arrived;
    if (after === undefined) return;
    this.#arrived = undefined;
    const nowMs = sharedNowMs();
    const before = this.#generations;
    this.#generations = after;
    for (const [uid, generation] of after) {
      if (before.get(uid) !== generation) note(`${uid} ${String(generation)}`, nowMs);
    }
    for (const uid of before.keys()) if (!after.has(uid)) note(`${uid} ${GONE}`, nowMs);
    this.programmedMs ??= nowMs;
  }
}

function note(key: string, nowMs: number): void {
  const times = inForce.get(key);
  if (times === undefined) inForce.set(key, [nowMs]);
  else times.push(nowMs);
}

function obey(command: FleetCommand): readonly number[] {
  switch (command.kind) {
    case 'open':
      for (const pod of command.pods) sidecars.push(new SimulatedSidecar(command, pod));
      return [];
    case 'times':
      return inForce.get(command.key) ?? [];
    case 'mark':
      for (const one of sidecars) one.programmedMs = undefined;
      return [];
    case 'programmed':
      return sidecars.flatMap(({ programmedMs }) => programmedMs ?? []);
  }
}

process.on('message', (message) => {
  // The other end is bench/control/fleet.ts.
  const command = message as FleetCommand;
  process.send?.({ id: command.id, times: obey(command) } satisfies FleetAnswer);
});
// However the bench ends, its sidecars end with it.
process.on('disconnect', () => process.exit());
