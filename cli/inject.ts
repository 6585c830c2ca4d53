// `weir inject -f FILE…`: gives the pods in manifests their sidecar by the same function as the webhook, for those who
// want to see it in their repository or have no webhook. The manifests go to standard output, what was done to standard
// error, so that the one can be piped into kubectl while a person reads the other.
import { readFile } from 'node:fs/promises';
import { annotations } from '../contract/names.ts';
import { WeirError } from '../contract/errors.ts';
import { imageReference } from '../operator/injection/image-reference.ts';
import type { InjectionConfig, PodSurroundings } from '../operator/injection/injection-config.ts';
import type { Outcome } from '../operator/injection/injection-outcome.ts';
import { diffJson } from '../operator/injection/json-patch.ts';
import { mutate } from '../operator/injection/mutate.ts';
import { optInOf } from '../operator/injection/opt-in.ts';
import { readPod } from '../operator/injection/pod.ts';
import { readManifests } from './manifest-files.ts';
import { readManifest, type Manifest, type ManifestDocument } from './manifest-text.ts';
import { labelsOf, namespaceLabels, servicesFor, workloadsOf, type Workload } from './workloads.ts';

export interface InjectOptions {
  /** Files, folders, or `-` for standard input. */
  readonly filename: readonly string[];
  readonly image: string;
  readonly redirectImage?: string | undefined;
  /** `https://HOST:PORT`. */
  readonly operator: string;
  /** File with the PEM texts of the CAs that sidecars trust. */
  readonly operatorCa: string;
  readonly mode: 'auto' | 'takeover' | 'redirect';
  /** `1.36`. */
  readonly serverVersion: string;
  /** For objects that name none. */
  readonly namespace: string;
  /** Those as well that do not ask. */
  readonly all?: boolean;
  readonly output: 'yaml' | 'json';
}

export interface InjectStreams {
  readonly version: string;
  readonly readInput: () => Promise<string>;
  readonly write: (text: string) => void;
  readonly writeError: (text: string) => void;
}

/** Gives the exit code: 0 done, 1 when something that was asked for could not be injected, or a file be read. */
export async function runInject(options: InjectOptions, streams: InjectStreams): Promise<number> {
  const config = await configOf(options, streams.version);
  const { manifests, failures } = await readManifests(options.filename, streams.readInput);
  for (const failure of failures) streams.writeError(`weir: ${failure}`);
  if (failures.length > 0) return 1;
  const done = injectAll(manifests, config, options);
  for (const { workload, outcome } of done) streams.writeError(describe(workload, outcome));
  if (done.some(({ isRequired, outcome }) => isRequired && outcome.kind === 'refused')) {
    streams.writeError('nothing is printed: a pod that requires its sidecar would start without\n');
    return 1;
  }
  streams.write(print(manifests, options.output));
  return done.some(({ outcome }) => outcome.kind === 'refused') ? 1 : 0;
}

interface Done {
  readonly workload: Workload;
  readonly outcome: Outcome;
  readonly isRequired: boolean;
}

function injectAll(
  manifests: readonly Manifest[],
  config: InjectionConfig,
  options: InjectOptions,
): readonly Done[] {
  const documents = manifests.flatMap((manifest) => manifest.documents);
  const values = documents.map(({ value }) => value);
  return documents.flatMap((document) =>
    workloadsOf(document.value, options.namespace).map((workload) =>
      injectOne(document, workload, { config, around: surroundingsOf(values, workload, options) }),
    ),
  );
}

function surroundingsOf(
  values: readonly unknown[],
  { namespace, pod }: Workload,
  options: InjectOptions,
): PodSurroundings {
  const asked = options.all === true ? { [annotations.inject]: 'enabled' } : {};
  return {
    namespace,
    namespaceLabels: { ...asked, ...namespaceLabels(values, namespace) },
    services: servicesFor(values, { namespace, labels: labelsOf(pod) }, options.namespace),
  };
}

interface Scene {
  readonly config: InjectionConfig;
  readonly around: PodSurroundings;
}

function injectOne(
  document: ManifestDocument,
  workload: Workload,
  { config, around }: Scene,
): Done {
  const read = readPod(workload.pod);
  if (read.kind === 'unreadable') {
    const outcome = { kind: 'refused', reason: 'Unreadable', message: read.problem } as const;
    return { workload, outcome, isRequired: false };
  }
  const { pod } = read;
  const outcome = mutate(pod, config, around);
  if (outcome.kind === 'injected') document.change(workload.path, diffJson(pod, outcome.pod));
  const isRequired = optInOf(pod.metadata, around.namespaceLabels).kind === 'required';
  return { workload, outcome, isRequired };
}

function describe({ name, namespace }: Workload, outcome: Outcome): string {
  const title = `${name} in ${namespace}`;
  switch (outcome.kind) {
    case 'injected': {
      const { mode, native, ports } = outcome.status;
      const listed = ports.map(
        (one) => `${one.name ?? one.port} (${one.port} behind ${one.listen})`,
      );
      const form = native ? 'native' : 'ordinary';
      const notes = outcome.notes.map(({ reason, message }) => `  ${reason}: ${message}\n`);
      return `${title}: injected, ${mode}, ${form} sidecar, ports ${listed.join(', ')}\n${notes.join('')}`;
    }
    case 'skipped':
      return `${title}: skipped, ${outcome.reason}: ${outcome.message}\n`;
    case 'refused':
      return `${title}: not injected, ${outcome.reason}: ${outcome.message}\n`;
  }
}

function print(manifests: readonly Manifest[], output: 'yaml' | 'json'): string {
  const parts = manifests.map((manifest) => manifest.print()).filter((part) => part.trim() !== '');
  const text = parts
    .map((part, index) => (index === 0 || /^\s*(#.*\n)*---/.test(part) ? part : `---\n${part}`))
    .map((part) => (part.endsWith('\n') ? part : `${part}\n`))
    .join('');
  if (output === 'yaml') return text;
  const read = readManifest(text, '');
  const documents = read.kind === 'manifest' ? read.manifest.documents : [];
  const items = documents.map(({ value }) => value).filter((value) => value !== null);
  return `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, undefined, 2)}\n`;
}

async function configOf(options: InjectOptions, version: string): Promise<InjectionConfig> {
  const { image, redirectImage, operator: operatorUrl, mode } = options;
  refuseImages({ '--image': image, '--redirect-image': redirectImage });
  const [, minor] = /^v?1\.([0-9]{1,3})(\..*)?$/.exec(options.serverVersion) ?? [];
  if (minor === undefined) throw wrong('--server-version', options.serverVersion, 'such as 1.36');
  if (!/^https:\/\/[^\s/]+$/.test(operatorUrl)) {
    throw wrong('--operator', operatorUrl, 'https://HOST:PORT');
  }
  const operatorCa = await readFile(options.operatorCa, 'utf8').catch((cause: unknown) => {
    throw wrong('--operator-ca', options.operatorCa, 'a file with certificates in PEM form', cause);
  });
  if (!operatorCa.includes('-----BEGIN CERTIFICATE-----')) {
    throw wrong('--operator-ca', options.operatorCa, 'a file with certificates in PEM form');
  }
  return {
    ...{ version, image, redirectImage, imagePullSecrets: [], operatorUrl, operatorCa, mode },
    ...{ serverMinor: Number(minor), onNoConfig: 'deny', logLevel: 'info', drainSeconds: 5 },
    workers: 0,
    resources: {
      requests: { cpu: '20m', memory: '128Mi' },
      limits: { memory: '256Mi' },
      cpuLimit: '1',
    },
  };
}

function wrong(where: string, given: string, right: string, cause?: unknown): WeirError {
  return new WeirError('CONFIG_INVALID', { where, given, right }, { cause });
}

function refuseImages(images: Readonly<Record<string, string | undefined>>): void {
  for (const [flag, image] of Object.entries(images)) {
    if (image === undefined || imageReference.pattern.test(image)) continue;
    throw wrong(flag, image, imageReference.values);
  }
}
