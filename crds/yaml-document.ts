// One YAML document as plain JSON values, together with the places its fields come from. Reading is ours, not the
// library's: it resolves scalars as kubectl does, refuses a key that is there twice, and bounds what aliases and
// nesting may unfold to, so that no text can exhaust the reader.
import { isAlias, isMap, isScalar, isSeq } from 'yaml';
import type { Alias, Document, Node, Pair, YAMLMap, YAMLSeq } from 'yaml';
import type { FieldPath, Finding } from './problem.ts';
import { formatPath } from './problem.ts';
import { plainScalar } from './yaml-scalar.ts';

/** A policy has a few thousand values; aliases may unfold to no more than this. */
export const VALUES_MAX = 100_000;
/** The schema is 12 levels deep. */
export const DEPTH_MAX = 64;

export interface DocumentValue {
  readonly value: unknown;
  readonly findings: readonly PlacedFinding[];
  /** Offset in the text of a path, or of its nearest ancestor that is there. */
  readonly offsetOf: (path: FieldPath) => number;
}

interface PlacedFinding {
  readonly finding: Finding;
  readonly offset: number;
}

/** Converts a parsed document; `findings` is empty when it is sound. */
export function readDocument(document: Document.Parsed): DocumentValue {
  const reader: Reader = {
    anchors: new Map(),
    offsets: new Map(),
    findings: [],
    values: 0,
    open: new Set(),
  };
  const value = readNode(reader, document.contents, { path: [], depth: 0 });
  return {
    value,
    findings: reader.findings,
    offsetOf: (path) => nearestOffset(reader.offsets, path),
  };
}

interface Reader {
  readonly offsets: Map<string, number>;
  readonly findings: PlacedFinding[];
  values: number;
  /** Nodes by anchor; the library's own look-up walks the document for every alias. */
  readonly anchors: Map<string, Node>;
  /** Nodes that are being read: an alias to one of them is a loop. */
  readonly open: Set<Node>;
}

interface Position {
  readonly path: FieldPath;
  readonly depth: number;
  /** Where to point when it is not the place noted for the path. */
  readonly offset?: number | undefined;
}

function nearestOffset(offsets: ReadonlyMap<string, number>, path: FieldPath): number {
  for (let length = path.length; length > 0; length -= 1) {
    const offset = offsets.get(formatPath(path.slice(0, length)));
    if (offset !== undefined) return offset;
  }
  return Number(offsets.get(''));
}

function readNode(reader: Reader, node: unknown, position: Position): unknown {
  note(reader, node, position.path);
  reader.values += 1;
  if (reader.values > VALUES_MAX) {
    return refuse(reader, position, {
      message: `unfolds to more than ${String(VALUES_MAX)} values`,
      advice: 'write less, or use fewer aliases',
    });
  }
  if (position.depth > DEPTH_MAX) {
    return refuse(reader, position, {
      message: `is nested more than ${String(DEPTH_MAX)} deep`,
      advice: 'a policy needs a dozen levels',
    });
  }
  if (isAlias(node)) return readAlias(reader, node, position);
  keepAnchor(reader, node);
  if (isScalar(node)) return readScalar(reader, node, position);
  if (isMap(node)) return readMap(reader, node, position);
  if (isSeq(node)) return readSeq(reader, node, position);
  return null;
}

function keepAnchor(reader: Reader, node: unknown): void {
  const mayHave = isScalar(node) || isMap(node) || isSeq(node);
  if (mayHave && node.anchor !== undefined) reader.anchors.set(node.anchor, node);
}

// The first note stays: a value's own place is noted by its key before.
function note(reader: Reader, node: unknown, path: FieldPath): void {
  const text = formatPath(path);
  const offset = offsetOf(node);
  if (offset !== undefined && !reader.offsets.has(text)) reader.offsets.set(text, offset);
}

function offsetOf(node: unknown): number | undefined {
  const isNode = isScalar(node) || isAlias(node) || isMap(node) || isSeq(node);
  return isNode ? node.range?.[0] : undefined;
}

interface Words {
  readonly message: string;
  readonly advice: string;
}

function refuse(reader: Reader, { path, offset }: Position, words: Words): null {
  // One word about running over is enough: everything after it would run over as well.
  const isRepeated = reader.findings.some(({ finding }) => finding.message === words.message);
  const finding: Finding = { segments: path, ...words, reason: 'syntax' };
  const place = offset ?? nearestOffset(reader.offsets, path);
  if (!isRepeated) reader.findings.push({ finding, offset: place });
  return null;
}

const PLAIN_TAGS = new Set(
  ['int', 'float', 'bool', 'null'].map((name) => `tag:yaml.org,2002:${name}`),
);
const STRING_TAG = 'tag:yaml.org,2002:str';

function readScalar(
  reader: Reader,
  node: { readonly value?: unknown; readonly tag?: string; readonly type?: string },
  position: Position,
): unknown {
  const source = String(node.value);
  if (node.tag === STRING_TAG) return source;
  if (node.tag !== undefined && !PLAIN_TAGS.has(node.tag)) {
    const advice = 'remove the tag';
    return refuse(reader, position, { message: `has the tag ${node.tag}`, advice });
  }
  return node.type === 'PLAIN' || node.tag !== undefined ? plainScalar(source) : source;
}

function readAlias(reader: Reader, node: Alias, position: Position): unknown {
  const target = reader.anchors.get(node.source);
  const place = { ...position, offset: offsetOf(node) };
  if (target === undefined) {
    const message = `refers to &${node.source}, which is not there`;
    return refuse(reader, place, { message, advice: 'define the anchor before it is used' });
  }
  if (reader.open.has(target)) {
    const message = `refers to &${node.source}, which contains it`;
    return refuse(reader, place, { message, advice: 'write the value out' });
  }
  return readNode(reader, target, { ...position, depth: position.depth + 1 });
}

function readSeq(reader: Reader, node: YAMLSeq, { path, depth }: Position): unknown {
  reader.open.add(node);
  const items = node.items.map((item, index) =>
    readNode(reader, item, { path: [...path, index], depth: depth + 1 }),
  );
  reader.open.delete(node);
  return items;
}

function readMap(reader: Reader, node: YAMLMap, position: Position): unknown {
  reader.open.add(node);
  const fields = new Map<string, unknown>();
  const merged: Pair[] = [];
  for (const pair of node.items) {
    if (isMergeKey(pair.key)) merged.push(pair);
    else readPair(reader, { pair, fields }, position);
  }
  for (const pair of merged) mergeInto(reader, { pair, fields }, position);
  reader.open.delete(node);
  // Defines own fields whatever their name, `__proto__` too.
  return Object.fromEntries(fields);
}

interface Field {
  readonly pair: Pair;
  readonly fields: Map<string, unknown>;
}

function readPair(reader: Reader, { pair, fields }: Field, { path, depth }: Position): void {
  const name = keyName(reader, pair.key, { path, depth });
  if (name === undefined) return;
  const next = { path: [...path, name], depth: depth + 1 };
  note(reader, pair.key, next.path);
  if (fields.has(name)) {
    refuse(
      reader,
      { ...next, offset: offsetOf(pair.key) },
      {
        message: `${JSON.stringify(name)} is there twice`,
        advice: 'remove one of them: kubectl would silently take the last',
      },
    );
    return;
  }
  fields.set(name, readNode(reader, pair.value, next));
}

function isMergeKey(key: unknown): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}

// YAML 1.1 merge: a map or a list of maps whose fields are taken where the map has none of that name.
function mergeInto(reader: Reader, { pair, fields }: Field, position: Position): void {
  const value = readNode(reader, pair.value, { ...position, depth: position.depth + 1 });
  const sources: unknown[] = Array.isArray(value) ? value : [value];
  for (const source of sources) {
    if (!isFields(source)) {
      refuse(reader, position, {
        message: 'merges (<<) something that is no map',
        advice: 'merge an alias of a map',
      });
      return;
    }
    for (const [name, child] of Object.entries(source)) {
      if (!fields.has(name)) fields.set(name, child);
    }
  }
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Names are strings; kubectl turns booleans and numbers into their text. */
function keyName(reader: Reader, key: unknown, position: Position): string | undefined {
  const value = readNode(reader, key, { ...position, depth: position.depth + 1 });
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || typeof value === 'number') return String(value);
  refuse(reader, position, {
    message: 'has a field whose name is no word',
    advice: 'use plain names of fields',
  });
  return undefined;
}
