// What the injected containers ask of the node. A pod must not lose its class of service by our doing, and a quota
// that asks every container for a CPU limit must not refuse it.
import { allContainers } from './pod.ts';
import type { Container, PodSpec, Quantities, Resources } from './pod.ts';
import type { SidecarResources } from './injection-config.ts';
import type { PodSettings } from './pod-settings.ts';
import { isLarger } from './quantity.ts';

/** Writing a few rules: seconds, and the memory of a Node process, of which 56 MB were seen. */
const REDIRECT_RESOURCES: SidecarResources = {
  requests: { cpu: '10m', memory: '32Mi' },
  limits: { memory: '128Mi' },
  cpuLimit: '100m',
};

export function sidecarResources(
  spec: PodSpec,
  settings: PodSettings,
  defaults: SidecarResources,
): Resources | undefined {
  const { cpuRequest, cpuLimit, memoryRequest, memoryLimit } = settings;
  const written = { cpuRequest, cpuLimit, memoryRequest, memoryLimit };
  const isSaid = Object.values(written).some((one) => one !== undefined);
  // Under limits of the pod as a whole, a request of ours could be more than is left; the pod's own bounds hold then.
  if (spec.resources !== undefined && !isSaid) return undefined;
  const limits = {
    ...defaults.limits,
    ...(memoryLimit === undefined ? {} : { memory: memoryLimit }),
    ...(cpuLimit === undefined ? {} : { cpu: cpuLimit }),
  };
  const requests = {
    ...defaults.requests,
    ...(memoryRequest === undefined ? {} : { memory: memoryRequest }),
    ...(cpuRequest === undefined ? {} : { cpu: cpuRequest }),
  };
  return fitted(
    spec,
    { ...defaults, requests, limits },
    { memory: memoryRequest, cpu: cpuRequest },
  );
}

export function redirectResources(spec: PodSpec): Resources | undefined {
  return spec.resources === undefined ? fitted(spec, REDIRECT_RESOURCES, {}) : undefined;
}

type Said = Readonly<Record<string, string | undefined>>;

function fitted(spec: PodSpec, wanted: SidecarResources, said: Said): Resources {
  const withCpu = hasCpuLimit(spec) && wanted.limits['cpu'] === undefined;
  const limits: Quantities = {
    ...wanted.limits,
    ...(withCpu ? { cpu: wanted.cpuLimit } : {}),
  };
  if (isGuaranteed(spec) && Object.values(said).every((one) => one === undefined)) {
    return { requests: limits, limits };
  }
  return reconciled(wanted.requests, limits, said);
}

// A request above its limit is refused: of the two, the one that somebody wrote stands.
function reconciled(requests: Quantities, limits: Quantities, said: Said): Resources {
  const lower: Record<string, string | number> = { ...requests };
  const upper: Record<string, string | number> = { ...limits };
  for (const [name, request] of Object.entries(requests)) {
    const limit = limits[name];
    if (limit === undefined || !isLarger(request, limit)) continue;
    if (said[name] === undefined) lower[name] = limit;
    else upper[name] = request;
  }
  return { requests: lower, limits: upper };
}

function hasCpuLimit(spec: PodSpec): boolean {
  return spec.containers.some(({ resources }) => resources?.limits?.['cpu'] !== undefined);
}

/** Kubernetes' class Guaranteed: each container's CPU and memory have a limit, and no request is another amount. */
function isGuaranteed(spec: PodSpec): boolean {
  return allContainers(spec).every(hasEqualRequests);
}

function hasEqualRequests({ resources }: Container): boolean {
  const { requests = {}, limits = {} } = resources ?? {};
  return ['cpu', 'memory'].every((name) => {
    const limit = limits[name];
    return limit !== undefined && String(requests[name] ?? limit) === String(limit);
  });
}
