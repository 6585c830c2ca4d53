// What the operator asked of the API server, by the API server's own audit log.
import { readFile } from 'node:fs/promises';
import { textAt } from '../../test/cluster/json-value.ts';
import { OPERATOR_NAMESPACE } from '../../test/cluster/operator-process.ts';

export interface AuditedRequest {
  /** Since the epoch. */
  readonly atMs: number;
  readonly verb: string;
  /** `resource` or `resource/subresource`. */
  readonly resource: string;
  /** `namespace/name`. */
  readonly object: string;
}

/** Requests of the operator's service account that were answered in the time. */
export async function operatorRequests(
  auditLog: string,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<readonly AuditedRequest[]> {
  const user = `system:serviceaccount:${OPERATOR_NAMESPACE}:weir-operator`;
  // The last line may still be being written.
  const lines = (await readFile(auditLog, 'utf8')).split('\n').slice(0, -1);
  return lines.flatMap((line) => {
    // Parsing only what can be his saves seconds.
    if (!line.includes(user)) return [];
    const event: unknown = JSON.parse(line);
    const atMs = Date.parse(textAt(event, 'stageTimestamp'));
    if (textAt(event, 'user', 'username') !== user || atMs < fromMs || atMs >= toMs) return [];
    const part = (name: string): string => textAt(event, 'objectRef', name);
    const below = part('subresource');
    return [
      {
        ...{ atMs, verb: textAt(event, 'verb') },
        resource: below === '' ? part('resource') : `${part('resource')}/${below}`,
        object: `${part('namespace')}/${part('name')}`,
      },
    ];
  });
}

/** How often each policy's status was written, by `namespace/name`. */
export function statusWrites(requests: readonly AuditedRequest[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { resource, verb, object } of requests) {
    if (resource !== 'ratelimitpolicies/status' || verb !== 'patch') continue;
    counts.set(object, (counts.get(object) ?? 0) + 1);
  }
  return counts;
}

export function tokenReviews(requests: readonly AuditedRequest[]): number {
  return requests.filter(({ resource, verb }) => resource === 'tokenreviews' && verb === 'create')
    .length;
}
