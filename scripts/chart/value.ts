// One value of the chart: values.yaml, its schema and the table of the README are made from a list of these, so none of
// the three can say what the others do not.

/** A part of a JSON schema, draft 7. */
export type Schema = Readonly<Record<string, unknown>>;

export interface ChartValue {
  /** From the root, with dots. */
  readonly path: string;
  /** What holds when nothing is given. */
  readonly value: unknown;
  readonly schema: Schema;
  /** One or two sentences, in Markdown; the last without a full stop when it is the only one. */
  readonly about: string;
}

interface Section {
  readonly name: string;
  readonly values: readonly ChartValue[];
}

/** Values that stand together, under one heading of values.yaml. */
export type { Section };

export const text: Schema = { type: 'string' };
export const flag: Schema = { type: 'boolean' };
export const textMap: Schema = { type: 'object', additionalProperties: text };
/** As Kubernetes takes them; the API server looks at them more closely than a schema of ours could. */
export const objects: Schema = { type: 'array', items: { type: 'object' } };
export const anyObject: Schema = { type: 'object' };
/** Anchored, and empty for "not given". */
export const objectName: Schema = named('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$');
export const labelName: Schema = named('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?$');
export const quantity: Schema = {
  type: ['string', 'number'],
  pattern: '^(0|[1-9][0-9]{0,15})(\\.[0-9]{1,3})?(m|k|Ki|M|Mi|G|Gi)?$',
};
/** A host with a port and a path, no scheme. */
export const registryName: Schema = named(
  '^([A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?(:[0-9]{1,5})?(/[A-Za-z0-9][A-Za-z0-9._-]{0,127})*/?)?$',
);
export const duration: Schema = named('^([1-9][0-9]{0,6}(ms|s|m|h))?$');
export const logLevel: Schema = choice(['error', 'warn', 'info', 'debug']);

export function named(pattern: string): Schema {
  return { type: 'string', pattern };
}

export function choice(values: readonly string[]): Schema {
  return { type: 'string', enum: values };
}

export function integer(minimum: number, maximum: number): Schema {
  return { type: 'integer', minimum, maximum };
}

export function listOf(items: Schema): Schema {
  return { type: 'array', items, uniqueItems: true };
}

/** `null` takes the platform's own choice. */
export function orNull(schema: Schema): Schema {
  return { ...schema, type: [schema['type'], 'null'].flat() };
}

/** An object that takes these keys and no others. */
export function closed(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', additionalProperties: false, properties };
}

const amounts: Schema = { type: 'object', additionalProperties: quantity };
export const resources: Schema = closed({ requests: amounts, limits: amounts, claims: objects });
export const secretNames: Schema = listOf({
  ...closed({ name: named('^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$') }),
  required: ['name'],
});
const tolerations: Schema = {
  type: 'array',
  items: closed({
    ...{ key: text, operator: text, value: text, effect: text },
    tolerationSeconds: { type: 'integer' },
  }),
};
const affinity: Schema = closed({
  ...{ nodeAffinity: anyObject, podAffinity: anyObject, podAntiAffinity: anyObject },
});

/** Where an image comes from; `pullPolicy` only where the container is the chart's own. */
export function imageValues(
  path: string,
  image: { readonly registry: string; readonly repository: string; readonly tag?: string },
): readonly ChartValue[] {
  const { registry, repository, tag = '' } = image;
  return [
    {
      path: `${path}.registry`,
      value: registry,
      schema: registryName,
      about: '`global.imageRegistry` takes its place',
    },
    {
      path: `${path}.repository`,
      value: repository,
      schema: named('^[a-z0-9][a-z0-9._/-]{0,253}$'),
      about: 'Name within the registry',
    },
    {
      path: `${path}.tag`,
      value: tag,
      // A number would lose its zeros, and Helm writes a large one with an exponent: `--set-string`, or quotes.
      schema: named('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$'),
      about: tag === '' ? "Empty: the chart's `appVersion`" : 'Its version',
    },
    {
      path: `${path}.digest`,
      value: '',
      schema: named('^(sha256:[0-9a-f]{64})?$'),
      about: '`sha256:…`; beats the tag',
    },
  ];
}

export function pullPolicyValue(path: string): ChartValue {
  return {
    path,
    value: '',
    schema: choice(['', 'Always', 'IfNotPresent', 'Never']),
    about: "`Always`, `IfNotPresent` or `Never`; empty: the cluster's own choice",
  };
}

/** Where pods of one Deployment go. */
export function placementValues(path: string): readonly ChartValue[] {
  return [
    { path: `${path}.nodeSelector`, value: {}, schema: textMap, about: 'Labels of the nodes' },
    { path: `${path}.tolerations`, value: [], schema: tolerations, about: 'Taints to stand' },
    { path: `${path}.affinity`, value: {}, schema: affinity, about: 'Affinity of the pods' },
    {
      path: `${path}.priorityClassName`,
      value: '',
      schema: objectName,
      about: 'Such as `system-cluster-critical`',
    },
  ];
}
