// docs/policy.md from the custom resource definition: every field with its path, kind, bounds and meaning.
import { createCrd, type JsonSchema } from '../../crds/crd.ts';
import { GENERATED_NOTE, markdownTable } from './table.ts';

export function writePolicyReference(): string {
  const spec = specOf(createCrd());
  const rows: string[][] = [];
  const matchRows: string[][] = [];
  collect(spec, 'spec', rows);
  collect(at(at(at(spec, 'properties'), 'except'), 'items'), '', matchRows);
  return `${GENERATED_NOTE}

# The RateLimitPolicy

\`apiVersion: weir.dev/v1alpha1\`, \`kind: RateLimitPolicy\`, short name \`rlpol\`. The shortest useful one:

\`\`\`yaml
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: shortest }
spec:
  selector: {}
  rules:
    - { name: all, buckets: [{ capacity: 100, refill: { tokens: 100, every: 1m } }] }
\`\`\`

**All** matching rules of all policies apply: a request passes if every bucket of every one of them can pay, and is
charged to all or to none. Try a policy with \`weir check FILE\`; the folder [examples](../examples) holds more. How values
are compared, joined and normalised is in [matching.md](matching.md); what happens without the store in
[failure.md](failure.md).

## Fields

${fieldTable(rows)}

## A match

An entry of \`match\` or \`except\`, anywhere: the fields of one entry are ANDed, the entries of a list are ORed.

${fieldTable(matchRows)}
`;
}

function fieldTable(rows: readonly (readonly string[])[]): string {
  return markdownTable(['field', 'kind', 'bounds', 'meaning'], rows);
}

function specOf(crd: JsonSchema): JsonSchema {
  const versions = at(crd, 'spec')['versions'];
  const [version] = Array.isArray(versions) ? (versions as readonly JsonSchema[]) : [];
  return at(at(at(at(version ?? {}, 'schema'), 'openAPIV3Schema'), 'properties'), 'spec');
}

function at(schema: JsonSchema, name: string): JsonSchema {
  const found = schema[name];
  return typeof found === 'object' && found !== null ? (found as JsonSchema) : {};
}

function collect(schema: JsonSchema, path: string, rows: string[][]): void {
  const required = Array.isArray(schema['required']) ? (schema['required'] as unknown[]) : [];
  for (const name of Object.keys(at(schema, 'properties'))) {
    const field = at(at(schema, 'properties'), name);
    const isList = field['type'] === 'array';
    const own = `${path === '' ? '' : `${path}.`}${name}${isList ? '[]' : ''}`;
    const isMatch = name === 'match' || name === 'except';
    rows.push([
      `\`${own}\``,
      kindOf(field),
      [required.includes(name) ? 'required' : '', boundsOf(field)].filter(Boolean).join('; '),
      typeof field['description'] === 'string' ? field['description'] : '',
    ]);
    if (!isMatch) collect(isList ? at(field, 'items') : field, own, rows);
  }
}

function kindOf(field: JsonSchema): string {
  if (field['x-kubernetes-int-or-string'] === true) return 'integer or string';
  if (field['type'] === 'array') return `list of ${kindOf(at(field, 'items'))}`;
  return typeof field['type'] === 'string' ? field['type'] : 'object';
}

function boundsOf(field: JsonSchema): string {
  const of = (schema: JsonSchema, name: string): string | undefined => {
    const value = schema[name];
    return typeof value === 'number' || typeof value === 'string' ? String(value) : undefined;
  };
  const range = (low: string | undefined, high: string | undefined): string =>
    low === undefined && high === undefined ? '' : `${low ?? '0'}..${high ?? ''}`;
  const parts = [
    Array.isArray(field['enum']) ? field['enum'].map((one) => `\`${String(one)}\``).join(', ') : '',
    range(of(field, 'minimum'), of(field, 'maximum')),
    suffixed(range(of(field, 'minItems'), of(field, 'maxItems')), 'items'),
    suffixed(range(of(field, 'minLength'), of(field, 'maxLength')), 'characters'),
    of(field, 'default') === undefined ? '' : `default \`${of(field, 'default') ?? ''}\``,
  ];
  return parts.filter((part) => part !== '').join('; ');
}

function suffixed(text: string, suffix: string): string {
  return text === '' ? '' : `${text} ${suffix}`;
}
