// Bypasses of several pods, told once per Service and port.
import type { Bypass } from './bypass.ts';
import type { PodRecord } from './pod-record.ts';
import type { PolicyMatch } from './policy-match.ts';

export interface BypassFinding extends Bypass {
  /** Names, sorted. */
  readonly pods: readonly string[];
}

export interface PodBypasses {
  readonly pod: PodRecord;
  readonly match: PolicyMatch;
  readonly bypasses: readonly Bypass[];
}

/** What of it concerns a policy, which may be restricted to some ports; sorted by Service and port. */
export function findingsOf(found: readonly PodBypasses[]): readonly BypassFinding[] {
  const byPlace = new Map<string, { readonly bypass: Bypass; readonly pods: Set<string> }>();
  for (const { pod, match, bypasses } of found) {
    for (const bypass of bypasses.filter((one) => concerns(one, match))) {
      const place = placeOf(bypass);
      const known = byPlace.get(place) ?? { bypass, pods: new Set<string>() };
      known.pods.add(pod.name);
      byPlace.set(place, known);
    }
  }
  return [...byPlace]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { bypass, pods }]) => ({ ...bypass, pods: [...pods].toSorted() }));
}

/** One sentence that names the Service, the port and the field to change. */
export function describeBypass({ service, port, field, advice, cause }: Bypass): string {
  if (service === undefined) return `host port ${port} reaches the app past the sidecar: ${advice}`;
  const place = port === '' ? service.name : `${service.name}, port ${port},`;
  const change = cause === 'Headless' ? advice : `in ${field} ${advice}`;
  return `Service ${place} reaches the app past the sidecar: ${change}`;
}

function concerns({ appPorts }: Bypass, { ports }: PolicyMatch): boolean {
  return ports === undefined || appPorts.some((port) => ports.includes(port));
}

function placeOf({ service, port, cause, field }: Bypass): string {
  return [service?.name ?? '', port.padStart(5, '0'), cause, field].join(' ');
}
