// Injection as one pure function from a pod to a pod. It may be called again with its own result, by a reinvocation or
// for a template that was copied from a running pod, and then changes nothing.
import type { AppProbe } from '../../contract/app-probe.ts';
import { inPod, ports as firstPorts } from '../../contract/names.ts';
import { appProbesOf, whyNotServed, withSidecarProbes } from './app-probes.ts';
import { drainNotes, holdSeconds, withDrainHook } from './drain-hook.ts';
import type { DrainHookOptions } from './drain-hook.ts';
import { probedPorts, whyUnresolved, withMovedProbes, withNumbers } from './handlers.ts';
import { injectedVolumes, redirectContainer, sidecarContainer } from './injected-containers.ts';
import type { SidecarPlan } from './injected-containers.ts';
import { injectedMetadata, injectionHash } from './injected-metadata.ts';
import type { InjectionConfig, PodSurroundings } from './injection-config.ts';
import { refused, skipped } from './injection-outcome.ts';
import type { Injected, Note, Outcome, Refused, Skipped } from './injection-outcome.ts';
import { readInjectionStatus } from './injection-status.ts';
import type { InjectionStatus, TakenPort } from './injection-status.ts';
import { decideInterception } from './interception.ts';
import { optInOf } from './opt-in.ts';
import { allContainers, runningContainers } from './pod.ts';
import type { Container, Pod, PodSpec } from './pod.ts';
import { brokenRules } from './pod-check.ts';
import { readSettings } from './pod-settings.ts';
import type { PodSettings } from './pod-settings.ts';
import { choosePorts, FreePorts, takePorts } from './taken-ports.ts';
import type { ChosenPort } from './taken-ports.ts';

/** Gives the pod with its sidecar, or why it gets none. The pod that was given is not changed. */
export function mutate(pod: Pod, config: InjectionConfig, surroundings: PodSurroundings): Outcome {
  const without = whyNone(pod, surroundings) ?? whyImpossible(pod);
  if (without !== undefined) return without;
  const read = readSettings(pod.metadata.annotations ?? {}, config);
  if (read.kind === 'invalid') return refused('InvalidAnnotation', read.problem);
  const { settings } = read;
  const clash = whyTaken(pod.spec, settings);
  if (clash !== undefined) return clash;
  const ports = choosePorts(pod.spec, settings);
  if (ports.kind === 'refused') return ports;
  const { ports: chosen } = ports;
  const question = { pod, chosen, settings, config, surroundings };
  const interception = decideInterception(question);
  if (interception.kind === 'refused') return interception;
  const appProbes = probesOfSidecar(pod.spec, settings, chosen);
  const unserved = whyNotServed(appProbes);
  if (unserved !== undefined) return unserved;
  const { mode, isNative, redirectImage, notes } = interception;
  const decided = { mode, isNative, redirectImage };
  const injection = { pod, config, surroundings, settings, chosen, ...decided, appProbes };
  return checked(pod, inject(injection, notes));
}

function probesOfSidecar(
  spec: PodSpec,
  { probes }: PodSettings,
  chosen: readonly ChosenPort[],
): readonly AppProbe[] {
  if (probes === 'kubelet') return [];
  return appProbesOf(spec, new Set(chosen.map(({ port }) => port)));
}

function whyNone(pod: Pod, { namespaceLabels }: PodSurroundings): Skipped | Refused | undefined {
  const status = readInjectionStatus(pod.metadata);
  // An annotation alone may be a copy; the container is what counts.
  if (status !== undefined && hasSidecar(pod.spec)) return afterInjection(pod.spec, status);
  const optIn = optInOf(pod.metadata, namespaceLabels);
  switch (optIn.kind) {
    case 'disabled':
      return skipped('Disabled', 'weir.dev/inject is disabled');
    case 'unsaid':
      return skipped('NotAsked', 'weir.dev/inject is not set');
    case 'invalid':
      return refused(
        'InvalidAnnotation',
        `${optIn.where}: got ${JSON.stringify(optIn.given.slice(0, 80))}; expected enabled, required or disabled`,
      );
    case 'enabled':
    case 'required':
      return undefined;
  }
}

function hasSidecar(spec: PodSpec): boolean {
  return runningContainers(spec).some(({ name }) => name === inPod.sidecar);
}

/** Another injector may have added a container since; a port of ours that it declares too cannot serve both. */
function afterInjection(spec: PodSpec, { ports, admin }: InjectionStatus): Skipped | Refused {
  const own = new Set([admin, ...ports.map(({ listen }) => listen)]);
  const others = runningContainers(spec).filter(({ name }) => name !== inPod.sidecar);
  const clash = others
    .flatMap(({ name, ports: declared = [] }) => declared.map((port) => ({ name, ...port })))
    .find(({ containerPort }) => own.has(containerPort));
  if (clash === undefined) return skipped('AlreadyInjected', 'the pod has its sidecar');
  return refused(
    'PortClash',
    `container ${clash.name}, added after the sidecar, declares port ${clash.containerPort}, which is the sidecar's: give it another port`,
  );
}

function whyImpossible({ spec }: Pod): Refused | undefined {
  if (spec.hostNetwork === true) {
    return refused(
      'HostNetwork',
      'spec.hostNetwork is true: the sidecar would take ports of the node; remove it, or set weir.dev/inject: disabled',
    );
  }
  if (spec.os !== undefined && spec.os.name !== 'linux') {
    return refused('UnsupportedOS', `spec.os.name is ${spec.os.name}: the sidecar runs on linux`);
  }
  return whyUnresolved(spec);
}

const OWN_NAMES: ReadonlySet<string> = new Set([
  ...[inPod.sidecar, inPod.redirectInit, inPod.identityVolume, inPod.cacheVolume],
]);

function whyTaken(spec: PodSpec, { tlsSecret }: PodSettings): Refused | undefined {
  const volumes = (spec.volumes ?? []).map(({ name }) => name);
  const names = [...allContainers(spec).map(({ name }) => name), ...volumes];
  const isOfTls = tlsSecret !== undefined && volumes.includes(inPod.tlsVolume);
  const taken = isOfTls ? inPod.tlsVolume : names.find((name) => OWN_NAMES.has(name));
  if (taken === undefined) return undefined;
  return refused(
    'NameTaken',
    `the pod already has a container or volume named ${taken}, which is the sidecar's: rename it, or remove what was copied from an injected pod`,
  );
}

interface Injection {
  readonly pod: Pod;
  readonly config: InjectionConfig;
  readonly surroundings: PodSurroundings;
  readonly settings: PodSettings;
  readonly chosen: readonly ChosenPort[];
  readonly mode: 'takeover' | 'redirect';
  readonly isNative: boolean;
  readonly redirectImage: string | undefined;
  readonly appProbes: readonly AppProbe[];
}

function inject(injection: Injection, notes: readonly Note[]): Injected {
  const { pod, config, settings, surroundings, mode, isNative, redirectImage } = injection;
  const plan = planSidecar(injection);
  const sidecar = sidecarContainer(plan);
  const redirect = redirectImage === undefined ? [] : [redirectContainer(plan, redirectImage)];
  const volumes = injectedVolumes(settings);
  const status: InjectionStatus = {
    ...{ version: config.version, mode, native: isNative, ports: plan.taken },
    admin: plan.adminPort,
    ...(plan.moved.length === 0 ? {} : { probes: plan.moved }),
    image: settings.image,
    hash: injectionHash([redirect, sidecar, volumes]),
  };
  const appContainer = pod.spec.containers[0]?.name;
  const { metadata } = pod;
  const described = injectedMetadata({ metadata, status, seed: surroundings.seed, appContainer });
  const spec = assemble(plan.spec, { redirect, sidecar, volumes, isNative, config });
  const drained = drainNotes(pod.spec, drainOptions(injection, plan.taken));
  return {
    kind: 'injected',
    pod: { ...pod, metadata: described.metadata, spec },
    status,
    notes: [...notes, ...drained, ...described.notes],
  };
}

function drainOptions(
  { settings, config }: Injection,
  taken: readonly TakenPort[],
): DrainHookOptions {
  return { taken, seconds: settings.drainSeconds, serverMinor: config.serverMinor };
}

/** Ports, probes and hooks of the app as they will be; `spec` has them, and no container of ours yet. */
function planSidecar(injection: Injection): SidecarPlan {
  const { pod, chosen, mode, settings, appProbes } = injection;
  const free = new FreePorts(pod.spec, chosen);
  const taken = takePorts(pod.spec, chosen, { free, mode });
  const adminPort = free.take(firstPorts.admin);
  const served = withContainers(pod.spec, (one) => withSidecarProbes(one, appProbes, adminPort));
  const moved =
    mode === 'takeover'
      ? []
      : probedPorts(served, taken).map((port) => ({
          port,
          probe: free.take(firstPorts.firstProbe),
        }));
  const options = drainOptions(injection, taken);
  const renew = (container: Container): Container => {
    const asked =
      mode === 'takeover' ? withNumbers(container, taken) : withMovedProbes(container, moved);
    return withDrainHook(withNewNames(asked, taken), pod.spec, options);
  };
  const spec = withContainers(served, renew);
  const { config, surroundings, isNative } = injection;
  const held = holdSeconds(spec.containers, pod.spec, settings.drainSeconds);
  const { namespace } = surroundings;
  return {
    ...{ spec, config, settings, namespace, mode, isNative, taken, moved },
    ...{ appProbes, adminPort, holdSeconds: held },
  };
}

function withContainers(spec: PodSpec, renew: (container: Container) => Container): PodSpec {
  const { containers, initContainers } = spec;
  return {
    ...spec,
    containers: containers.map(renew),
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(renew) }),
  };
}

function withNewNames(container: Container, taken: readonly TakenPort[]): Container {
  const own = taken.filter((one) => one.container === container.name && one.renamed !== undefined);
  if (own.length === 0) return container;
  const { ports: declared = [] } = container;
  const ports = declared.map((port) => {
    const renamed = own.find(({ name }) => name === port.name)?.renamed;
    return renamed === undefined ? port : { ...port, name: renamed };
  });
  return { ...container, ports };
}

interface Additions {
  readonly redirect: readonly Container[];
  readonly sidecar: Container;
  readonly volumes: readonly { readonly name: string }[];
  readonly isNative: boolean;
  readonly config: InjectionConfig;
}

function assemble(spec: PodSpec, additions: Additions): PodSpec {
  const { redirect, sidecar, volumes, isNative, config } = additions;
  const first = isNative ? [...redirect, sidecar] : redirect;
  const initContainers = [...first, ...(spec.initContainers ?? [])];
  const secrets = withSecrets(spec.imagePullSecrets ?? [], config.imagePullSecrets);
  return {
    ...spec,
    ...(initContainers.length === 0 ? {} : { initContainers }),
    containers: isNative ? spec.containers : [sidecar, ...spec.containers],
    volumes: [...(spec.volumes ?? []), ...volumes],
    ...(secrets.length === 0 ? {} : { imagePullSecrets: secrets }),
  };
}

function withSecrets(
  there: readonly { readonly name?: string }[],
  names: readonly string[],
): readonly { readonly name?: string }[] {
  const missing = names.filter((name) => !there.some((one) => one.name === name));
  return [...there, ...new Set(missing)].map((one) =>
    typeof one === 'string' ? { name: one } : one,
  );
}

/** What the pod's author broke is the API server's to tell; what we would break is not sent. */
function checked(before: Pod, outcome: Injected): Injected | Refused {
  const known = new Set(brokenRules(before));
  const broken = brokenRules(outcome.pod).filter((rule) => !known.has(rule));
  const [first] = broken;
  if (first === undefined) return outcome;
  return refused('InvalidResult', `the injected pod would not be valid: ${first}`);
}
