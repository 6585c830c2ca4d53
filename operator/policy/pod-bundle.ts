// The bundle of a pod: the versions in force of all policies that select it, told for which ports, which workload and
// among how many pods. Pods of one workload get the very same bundle, so it is made once and kept.
import { LRUCache } from 'lru-cache';
import type { Bundle, CompiledPolicy } from '../../contract/bundle.ts';
import { bundleOf } from '../../crds/compile.ts';
import { hashOf } from '../../crds/content-hash.ts';
import { applies, matchPolicy, sharingGroup, type PolicyMatch } from './policy-match.ts';
import type { PodRecord } from './pod-record.ts';
import type { GoodVersion } from './policy-record.ts';
import type { PodView, World } from './world.ts';

export interface PodBundle {
  /** Its version covers `held`. */
  readonly bundle: Bundle;
  /** Uids of policies of which the sidecar keeps what it has. */
  readonly held: readonly string[];
}

/** One per kind of pod: a cluster that needs more makes some bundles anew, ~1 ms each. */
const BUNDLES_MAX = 1_000;

/** How many pods share a bucket, by sharing group; `revision` rises when an answer may be another one. */
export interface GroupSizes {
  readonly revision: number;
  sizeOf(group: string): number;
}

interface Memo {
  readonly revisions: string;
  readonly bundle: PodBundle;
}

export class PodBundles {
  readonly #world: World;
  readonly #sizes: GroupSizes;
  readonly #made = new LRUCache<string, PodBundle>({ max: BUNDLES_MAX });
  /** By kind of pod: 1 000 pods are asked for after one edit, and most are of few kinds. */
  readonly #latest = new LRUCache<string, Memo>({ max: BUNDLES_MAX });

  /** `sizes` absent = as they are in the world. */
  constructor(world: World, sizes: GroupSizes = new WorldSizes(world)) {
    this.#world = world;
    this.#sizes = sizes;
  }

  /** Undefined for a pod that is unknown, has no sidecar or has ended. */
  bundleFor(uid: string): PodBundle | undefined {
    const pod = this.#world.pod(uid);
    if (pod?.record.injection === undefined || pod.record.isTerminal) return undefined;
    const revisions = `${String(this.#world.revision)} ${String(this.#sizes.revision)}`;
    const latest = this.#latest.get(pod.kind);
    if (latest?.revisions === revisions) return latest.bundle;
    const bundle = this.#make(pod);
    this.#latest.set(pod.kind, { revisions, bundle });
    return bundle;
  }

  /** What a pod that does not exist yet would get, itself counted. */
  bundleForNew(pod: PodRecord, workload: string): PodBundle {
    const parts: Part[] = [];
    for (const policy of this.#world.policiesIn(pod.namespace)) {
      const match = matchPolicy(policy, pod);
      if (match === undefined || policy.good === undefined || !applies(match)) continue;
      const { good, key } = policy;
      const sizeOf = (group: string): number => this.#sizes.sizeOf(group) + 1;
      parts.push(partOf({ good, key, match, workload }, sizeOf));
    }
    return this.#assembled(parts, pod.namespace);
  }

  #make({ record, workload }: PodView): PodBundle {
    const parts: Part[] = [];
    for (const [key, { match }] of this.#world.pairingsOf(record.uid)) {
      const good = this.#world.policy(key)?.good;
      if (good === undefined || !applies(match)) continue;
      const sizeOf = (group: string): number => this.#sizes.sizeOf(group);
      parts.push(partOf({ good, key, match, workload: workload.id }, sizeOf));
    }
    return this.#assembled(parts, record.namespace);
  }

  #assembled(parts: readonly Part[], namespace: string): PodBundle {
    const held = this.#world.heldIn(namespace);
    const signature = JSON.stringify([parts.map(signatureOf).toSorted(), held]);
    const known = this.#made.get(signature);
    if (known !== undefined) return known;
    const made = assemble(parts, held);
    this.#made.set(signature, made);
    return made;
  }
}

function partOf(
  pairing: {
    readonly good: GoodVersion;
    readonly key: string;
    readonly match: PolicyMatch;
    readonly workload: string;
  },
  sizeOf: (group: string) => number,
): Part {
  const { good, key, match, workload } = pairing;
  const group = sharingGroup(good.compiled, key, workload);
  return {
    good,
    workload: good.compiled.scope === 'Workload' ? workload : undefined,
    // A pod that is about to end may be the last one, and counts no more.
    replicas: group === undefined ? 1 : Math.max(1, sizeOf(group)),
    ports: match.ports,
  };
}

class WorldSizes implements GroupSizes {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  get revision(): number {
    return this.#world.revision;
  }

  sizeOf(group: string): number {
    return this.#world.groupSize(group);
  }
}

interface Part {
  readonly good: GoodVersion;
  readonly workload: string | undefined;
  readonly replicas: number;
  readonly ports: readonly number[] | undefined;
}

// The hash covers name, uid and generation.
function signatureOf({ good, workload = '', replicas, ports = [] }: Part): string {
  return [good.hash, workload, replicas, ports.join(',')].join(' ');
}

function assemble(parts: readonly Part[], held: readonly string[]): PodBundle {
  const bundle = bundleOf(parts.map(compiledFor));
  if (held.length === 0) return { bundle, held };
  const version = hashOf(JSON.stringify([bundle.version, held]));
  return { bundle: { ...bundle, version }, held };
}

function compiledFor({ good, workload, replicas, ports }: Part): CompiledPolicy {
  return {
    ...good.compiled,
    replicas,
    ...(workload === undefined ? {} : { workload }),
    ...(ports === undefined ? {} : { ports }),
  };
}
