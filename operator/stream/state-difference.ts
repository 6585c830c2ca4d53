// Which policies read differently after a sidecar has spoken. Most words are about one policy of dozens: that a push is
// in force. Asking all of them each time would cost more than the push.
import type { SidecarState } from './sidecar-registry.ts';

/** Uids of policies; `all` = of every policy of the pod. `after` undefined = the sidecar is forgotten. */
export function policiesBetween(
  before: SidecarState,
  after: SidecarState | undefined,
): ReadonlySet<string> | 'all' {
  if (after === undefined || !isSameSidecar(before, after)) return 'all';
  const changed = new Set<string>();
  compare(before.generations, after.generations, changed);
  compare(byUid(before.refusals), byUid(after.refusals), changed);
  compare(byUid(before.tooOld), byUid(after.tooOld), changed);
  return changed;
}

/** In what concerns every policy alike. */
function isSameSidecar(a: SidecarState, b: SidecarState): boolean {
  return (
    a.connected === b.connected &&
    a.sidecarVersion === b.sidecarVersion &&
    a.store === b.store &&
    a.storeProblem === b.storeProblem &&
    a.clientIpIsProxy.join(' ') === b.clientIpIsProxy.join(' ')
  );
}

function compare(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
  changed: Set<string>,
): void {
  for (const [uid, value] of after) if (before.get(uid) !== value) changed.add(uid);
  for (const uid of before.keys()) if (!after.has(uid)) changed.add(uid);
}

function byUid(items: readonly { readonly uid: string }[]): ReadonlyMap<string, string> {
  return new Map(items.map((item) => [item.uid, JSON.stringify(item)]));
}
