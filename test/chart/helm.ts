// The chart as Helm renders it, and Helm's own words about it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import { readClusterConfig } from '../cluster/config.ts';
import { openClients } from '../cluster/programs.ts';

export const CHART: string = path.join(import.meta.dirname, '..', '..', 'charts', 'weir');
export const RELEASE_NAMESPACE = 'weir-system';
/** With two cores busy; a hung helm is a failure. */
const TIMEOUT_MS = 120_000;

export interface HelmResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** Runs helm to its end; a refusal is a result, not a rejection. */
export async function runHelm(
  args: readonly string[],
  { kubeconfig = '' }: { readonly kubeconfig?: string } = {},
): Promise<HelmResult> {
  const { helm } = await openClients(readClusterConfig().home, () => undefined);
  const flags = kubeconfig === '' ? [] : [`--kubeconfig=${kubeconfig}`];
  const child = spawn(helm, [...args, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [[code], stdout, stderr] = await Promise.all([
    ended,
    text(child.stdout),
    text(child.stderr),
  ]);
  return { code: code ?? -1, stdout, stderr };
}

/** As `--set` and friends; the release is `weir` in `weir-system`. */
export async function template(flags: readonly string[] = []): Promise<string> {
  const args = ['template', 'weir', CHART, '--namespace', RELEASE_NAMESPACE, ...flags];
  const { code, stdout, stderr } = await runHelm(args);
  assert.equal(code, 0, stderr);
  return stdout;
}

export async function render(flags: readonly string[] = []): Promise<readonly Manifest[]> {
  const documents = parseAllDocuments(await template(flags));
  return documents
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}

/** The only one of its kind and name. */
export function find(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter(
    (one) => one.kind === kind && (name === undefined || one.metadata.name === name),
  );
  const [only] = found;
  assert(only !== undefined && found.length === 1, `${found.length} of ${kind} ${name ?? ''}`);
  return only;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly resources?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export interface PodTemplate {
  readonly metadata: Manifest['metadata'];
  readonly spec: {
    readonly containers: readonly Container[];
    readonly securityContext?: Readonly<Record<string, unknown>>;
    readonly terminationGracePeriodSeconds?: number;
    readonly enableServiceLinks?: boolean;
    readonly [field: string]: unknown;
  };
}

/** The pods that the manifests would start, by the name of what starts them. */
export function podTemplates(manifests: readonly Manifest[]): ReadonlyMap<string, PodTemplate> {
  const found = new Map<string, PodTemplate>();
  for (const one of manifests) {
    if (one.kind === 'Pod') found.set(one.metadata.name, one as unknown as PodTemplate);
    const { template } = (one['spec'] ?? {}) as { template?: PodTemplate };
    if (template !== undefined) found.set(one.metadata.name, template);
  }
  return found;
}

/** Variables with a value of the container `operator`. */
export function operatorEnvironment(
  manifests: readonly Manifest[],
): Readonly<Record<string, string>> {
  const pod = podTemplates(manifests).get('weir-operator');
  const env = pod?.spec.containers[0]?.env ?? [];
  return Object.fromEntries(
    env.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
  );
}
