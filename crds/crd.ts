// The custom resource definition, made from the schema that files are validated with. What a structural schema may
// not hold (unions, closed objects, unbounded values) is refused here, when it is made, not by somebody's cluster.
import assert from 'node:assert/strict';
import { stringify } from 'yaml';
import * as z from 'zod';
import { API_GROUP, API_VERSION, KIND, policySpecSchema } from './policy.ts';
import { policyStatusSchema } from './status.ts';

export const PLURAL = 'ratelimitpolicies';
export const CRD_NAME = 'ratelimitpolicies.weir.dev';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** The CustomResourceDefinition as a plain object, fields in the order they are best read in. */
export function createCrd(): JsonSchema {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: CRD_NAME },
    spec: {
      group: API_GROUP,
      scope: 'Namespaced',
      names: {
        kind: KIND,
        listKind: `${KIND}List`,
        plural: PLURAL,
        singular: 'ratelimitpolicy',
        // The bare plural may show another product's resources of that name.
        shortNames: ['rlpol'],
        categories: ['weir'],
      },
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: PRINTER_COLUMNS,
          schema: { openAPIV3Schema: openApiSchema() },
        },
      ],
    },
  };
}

const ENFORCED = '.status.conditions[?(@.type=="Enforced")]';

const PRINTER_COLUMNS = [
  { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
  { name: 'Enforced', type: 'string', jsonPath: `${ENFORCED}.status` },
  {
    name: 'Pods',
    type: 'string',
    jsonPath: '.status.pods.summary',
    description: 'sidecars that run this policy / pods it selects',
  },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  { name: 'Rules', type: 'integer', jsonPath: '.status.rules', priority: 1 },
  { name: 'Reason', type: 'string', jsonPath: `${ENFORCED}.reason`, priority: 1 },
];

function openApiSchema(): JsonSchema {
  return {
    type: 'object',
    description:
      'RateLimitPolicy limits the HTTP requests that reach the selected pods of its namespace.',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'Version of the schema.' },
      kind: { type: 'string', description: 'Kind of the object.' },
      // The API server forbids any other word about it.
      metadata: { type: 'object' },
      spec: structural(policySpecSchema),
      status: structural(policyStatusSchema),
    },
  };
}

/** The structural schema of a zod schema. Asserts that it holds nothing an API server refuses. */
export function structural(schema: z.ZodType): JsonSchema {
  const converted = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    // As output, objects would be closed and fields with a default required; an API server refuses the one.
    io: 'input',
    reused: 'inline',
    cycles: 'throw',
    // Only for values of two types; their meta says so, and what says nothing is refused below.
    unrepresentable: 'any',
  });
  assert(isNode(converted));
  return structuralNode(converted, 'schema');
}

/** Names of a schema in the order they are best read in; others follow in their own. */
const ORDER = ['type', 'description', 'default', 'enum', 'required', 'properties', 'items'];
/** What a structural schema may hold, and what we may want in it. */
const KEYWORDS = new Set([
  ...ORDER,
  ...['format', 'minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'minItems', 'maxItems'],
  ...['minProperties', 'maxProperties', 'additionalProperties'],
  ...['x-kubernetes-int-or-string', 'x-kubernetes-list-map-keys', 'x-kubernetes-list-type'],
  ...['x-kubernetes-map-type', 'x-kubernetes-validations'],
]);

function structuralNode(node: Record<string, unknown>, path: string): JsonSchema {
  const hasType = typeof node['type'] === 'string' || node['x-kubernetes-int-or-string'] === true;
  assert(hasType, `${path} has no type`);
  const names = Object.keys(node)
    .filter((name) => !isEmpty(node[name]))
    .toSorted((a, b) => rankOf(a) - rankOf(b));
  return Object.fromEntries(
    names.map((name) => {
      assert(KEYWORDS.has(name), `${path} holds ${name}`);
      return [name, childOf(name, node[name], `${path}.${name}`)];
    }),
  );
}

// The `properties` of an object without fields.
function isEmpty(value: unknown): boolean {
  return isNode(value) && Object.keys(value).length === 0;
}

function rankOf(name: string): number {
  return ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length;
}

function childOf(name: string, value: unknown, path: string): unknown {
  if (!isNode(value)) return value;
  if (name === 'items' || name === 'additionalProperties') return structuralNode(value, path);
  return Object.fromEntries(
    Object.entries(value).map(([field, child]) => {
      assert(isNode(child), `${path}.${field} is no schema`);
      return [field, structuralNode(child, `${path}.${field}`)];
    }),
  );
}

function isNode(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The definition as the text of its file. */
export function renderCrd(): string {
  return HEADING + stringify(createCrd(), { lineWidth: 0, aliasDuplicateObjects: false });
}

const HEADING = '# Generated from crds/policy.ts by scripts/generate.ts; edits here are lost.\n';
