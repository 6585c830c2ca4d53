// What one line of a watch says.
import type { ApiFailure } from './api.ts';
import { readStatus } from './api-error.ts';
import { admitObject, isRecord, type ArrivalOptions } from './arrival.ts';
import type { KubeObject } from './object.ts';

export type WatchEvent<Type extends KubeObject> =
  | { readonly kind: 'changed'; readonly object: Type; readonly resourceVersion: string }
  | { readonly kind: 'deleted'; readonly object: Type; readonly resourceVersion: string }
  /** Nothing happened up to there. */
  | { readonly kind: 'bookmark'; readonly resourceVersion: string }
  /** The server ends the watch with a Status. */
  | { readonly kind: 'failure'; readonly failure: ApiFailure; readonly message: string }
  /** Not what a watch sends; an event may be lost. */
  | { readonly kind: 'garbage'; readonly problem: string };

const kinds: ReadonlyMap<string, 'changed' | 'deleted'> = new Map([
  ['ADDED', 'changed'],
  ['MODIFIED', 'changed'],
  ['DELETED', 'deleted'],
]);

export function readWatchEvent<Type extends KubeObject>(
  line: string,
  arrival: ArrivalOptions<Type>,
): WatchEvent<Type> {
  const value = parse(line);
  if (!isRecord(value)) return garbage('a line that is no JSON object');
  const { type, object } = value;
  if (type === 'ERROR') {
    const { message, ...failure } = readStatus(object);
    return { kind: 'failure', failure, message };
  }
  const resourceVersion = versionOf(object);
  if (resourceVersion === undefined) return garbage('an object without resourceVersion');
  if (type === 'BOOKMARK') return { kind: 'bookmark', resourceVersion };
  const kind = typeof type === 'string' ? kinds.get(type) : undefined;
  if (kind === undefined) return garbage('an event of unknown type');
  const admitted = admitObject(object, arrival);
  if (admitted === undefined) return garbage('an object without a name');
  return { kind, object: admitted, resourceVersion };
}

function versionOf(object: unknown): string | undefined {
  if (!isRecord(object) || !isRecord(object['metadata'])) return undefined;
  const version = object['metadata']['resourceVersion'];
  return typeof version === 'string' && version !== '' ? version : undefined;
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function garbage(problem: string): { readonly kind: 'garbage'; readonly problem: string } {
  return { kind: 'garbage', problem };
}
