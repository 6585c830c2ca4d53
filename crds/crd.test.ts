import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import * as z from 'zod';
import { compileExpression } from './regular-expression.ts';
import { CRD_NAME, createCrd, PLURAL, renderCrd, structural } from './crd.ts';
import { API_GROUP } from './policy.ts';

interface Node {
  readonly path: string;
  readonly node: Record<string, unknown>;
}

function isNode(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function at(value: unknown, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>(
    (current, name) =>
      typeof current === 'object' && current !== null ? Reflect.get(current, name) : undefined,
    value,
  );
}

/** Every schema below `node`, itself included. */
function nodesOf(node: Record<string, unknown>, path: string): Node[] {
  const children: [string, unknown][] = [
    ...Object.entries(isNode(node['properties']) ? node['properties'] : {}),
    ['[]', node['items']],
    ['{}', node['additionalProperties']],
  ];
  return [
    { path, node },
    ...children.flatMap(([name, child]) =>
      isNode(child) ? nodesOf(child, `${path}.${name}`) : [],
    ),
  ];
}

const root = at(createCrd(), 'spec', 'versions', 0, 'schema', 'openAPIV3Schema');
assert(isNode(root));
const nodes = nodesOf(root, '');
const ours = nodes.filter(({ path }) => path.startsWith('.spec') || path.startsWith('.status'));

function pathsWhere(fault: (node: Record<string, unknown>) => boolean): string[] {
  return ours.filter(({ node }) => fault(node)).map(({ path }) => path);
}

describe('the custom resource definition', () => {
  it('is written to its file as it is generated', () => {
    const file = new URL(`./generated/${CRD_NAME}.yaml`, import.meta.url);

    assert.equal(readFileSync(file, 'utf8'), renderCrd());
  });

  it('is named by its plural and group', () => {
    assert.equal(CRD_NAME, `${PLURAL}.${API_GROUP}`);
  });

  it('describes every field', () => {
    assert.deepEqual(
      pathsWhere(
        (node) => typeof node['description'] !== 'string' || node['description'].length < 5,
      ),
      [],
    );
  });

  it('bounds every string, list and map, so that the cost of its CEL is known', () => {
    const isUnbounded = (node: Record<string, unknown>): boolean =>
      (node['type'] === 'string' &&
        node['maxLength'] === undefined &&
        node['enum'] === undefined) ||
      (node['type'] === 'array' && node['maxItems'] === undefined) ||
      (isNode(node['additionalProperties']) && node['maxProperties'] === undefined);

    assert.deepEqual(pathsWhere(isUnbounded), []);
  });

  it('bounds every number on both sides', () => {
    const isUnbounded = (node: Record<string, unknown>): boolean =>
      node['type'] === 'integer' &&
      (node['minimum'] === undefined || node['maximum'] === undefined);

    assert.deepEqual(pathsWhere(isUnbounded), []);
    assert.deepEqual(
      pathsWhere((node) => node['type'] === 'number'),
      [],
    );
  });

  it('says of every list how it is merged', () => {
    const isSilent = (node: Record<string, unknown>): boolean =>
      node['type'] === 'array' && node['x-kubernetes-list-type'] === undefined;

    assert.deepEqual(pathsWhere(isSilent), []);
  });

  it('requires the keys of its list maps', () => {
    const isLoose = (node: Record<string, unknown>): boolean => {
      const keys = node['x-kubernetes-list-map-keys'];
      const required = at(node, 'items', 'required');
      return (
        Array.isArray(keys) &&
        !keys.every((key) => Array.isArray(required) && required.includes(key))
      );
    };

    assert.deepEqual(pathsWhere(isLoose), []);
  });

  it('has no word among its enums that YAML 1.1 reads as a boolean', () => {
    const booleans = /^(y|n|yes|no|on|off|true|false)$/i;
    const words = ours.flatMap(({ node }) =>
      Array.isArray(node['enum']) ? node['enum'].map(String) : [],
    );
    // Conditions of Kubernetes have these, and people do not write them.
    const written = words.filter((word) => word !== 'True' && word !== 'False');

    assert.deepEqual(
      written.filter((word) => booleans.test(word)),
      [],
    );
    assert(written.length > 20);
  });

  it('has only patterns that RE2 takes', () => {
    const patterns = ours.flatMap(({ node }) =>
      typeof node['pattern'] === 'string' ? [node['pattern']] : [],
    );

    assert(patterns.length > 10);
    for (const pattern of patterns)
      assert.equal(compileExpression(pattern).kind, 'compiled', pattern);
  });

  it('has defaults on scalars outside of lists only', () => {
    const withDefault = ours.filter(({ node }) => node['default'] !== undefined);

    assert.deepEqual(withDefault.map(({ path }) => path).toSorted(), [
      '.spec.clientIP.ipv6PrefixLength',
      '.spec.failureMode',
      '.spec.jwt.header',
      '.spec.mode',
      '.spec.response.quotaHeaders',
      '.spec.response.status',
      '.spec.scope',
    ]);
  });

  it('has a sentence for every rule, and a rule on a field it names', () => {
    for (const { node, path } of ours) {
      const rules = node['x-kubernetes-validations'];
      for (const rule of Array.isArray(rules) ? rules : []) {
        assert(String(at(rule, 'message')).length > 5, path);
        const field = at(rule, 'fieldPath');
        if (typeof field === 'string')
          assert(at(node, 'properties', field.slice(1)) !== undefined, path);
      }
    }
  });

  it('refuses to be made from what a structural schema cannot hold', () => {
    const union = z.object({ a: z.union([z.string(), z.int()]) });

    assert.throws(() => structural(union), /schema\.properties\.a has no type/);
    assert.throws(() => structural(z.string().nullable()), /schema holds nullable/);
    assert.throws(() => structural(z.strictObject({ a: z.any() })), /has no type/);
  });
});
