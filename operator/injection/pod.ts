// A pod as far as injection reads or writes it. Everything else of it passes through untouched: objects are spread,
// never rebuilt, so a field of a newer Kubernetes is not lost.
import * as z from 'zod';

export interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly hostPort?: number;
  readonly protocol?: string;
}

export interface PortAction {
  readonly port: number | string;
  readonly host?: string;
}

export interface HttpAction extends PortAction {
  readonly path?: string;
  readonly scheme?: string;
  readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
}

export interface GrpcAction {
  readonly port: number;
  readonly service?: string;
}

/** A probe or a lifecycle handler: at most one of the actions is there. */
export interface Handler {
  readonly httpGet?: HttpAction;
  readonly tcpSocket?: PortAction;
  readonly grpc?: GrpcAction;
  readonly exec?: unknown;
  readonly sleep?: { readonly seconds: number };
}

/** A handler that the kubelet repeats. */
export interface Probe extends Handler {
  readonly timeoutSeconds?: number;
  readonly periodSeconds?: number;
  readonly failureThreshold?: number;
}

export interface Lifecycle {
  readonly preStop?: Handler;
  readonly postStart?: Handler;
}

export type Quantities = Readonly<Record<string, string | number>>;

export interface Resources {
  readonly requests?: Quantities;
  readonly limits?: Quantities;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly restartPolicy?: string;
  readonly ports?: readonly ContainerPort[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: Lifecycle;
  readonly resources?: Resources;
  readonly volumeMounts?: readonly VolumeMount[];
}

export interface PodOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export interface PodMetadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly PodOwner[];
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
  readonly hostNetwork?: boolean;
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: { readonly runAsUser?: number };
  /** Resources of the pod as a whole (Kubernetes ≥ 1.34). */
  readonly resources?: Resources;
  readonly os?: { readonly name: string };
}

export interface Pod {
  readonly metadata: PodMetadata;
  readonly spec: PodSpec;
}

const text = z.string();
const texts = z.record(text, text);
const port = z.union([z.int(), text]);
const action = z.looseObject({ port, host: text.exactOptional() });
const httpAction = action.extend({
  path: text.exactOptional(),
  scheme: text.exactOptional(),
  httpHeaders: z.array(z.looseObject({ name: text, value: text })).exactOptional(),
});
const handler = z.looseObject({
  httpGet: httpAction.exactOptional(),
  tcpSocket: action.exactOptional(),
  grpc: z.looseObject({ port: z.int(), service: text.exactOptional() }).exactOptional(),
  exec: z.unknown().exactOptional(),
  sleep: z.looseObject({ seconds: z.int() }).exactOptional(),
});
const probe = handler.extend({
  timeoutSeconds: z.int().exactOptional(),
  periodSeconds: z.int().exactOptional(),
  failureThreshold: z.int().exactOptional(),
});
const quantities = z.record(text, z.union([text, z.number()]));
const resources = z.looseObject({
  requests: quantities.exactOptional(),
  limits: quantities.exactOptional(),
});
const container = z.looseObject({
  name: text,
  image: text.exactOptional(),
  restartPolicy: text.exactOptional(),
  ports: z
    .array(
      z.looseObject({
        name: text.exactOptional(),
        containerPort: z.int(),
        hostPort: z.int().exactOptional(),
        protocol: text.exactOptional(),
      }),
    )
    .exactOptional(),
  readinessProbe: probe.exactOptional(),
  livenessProbe: probe.exactOptional(),
  startupProbe: probe.exactOptional(),
  lifecycle: z
    .looseObject({ preStop: handler.exactOptional(), postStart: handler.exactOptional() })
    .exactOptional(),
  resources: resources.exactOptional(),
  volumeMounts: z
    .array(z.looseObject({ name: text, mountPath: text, readOnly: z.boolean().exactOptional() }))
    .exactOptional(),
});
const owner = z.looseObject({
  ...{ apiVersion: text, kind: text, name: text, uid: text },
  controller: z.boolean().exactOptional(),
});
const schema: z.ZodType<Pod> = z.looseObject({
  metadata: z.looseObject({
    name: text.exactOptional(),
    generateName: text.exactOptional(),
    namespace: text.exactOptional(),
    labels: texts.exactOptional(),
    annotations: texts.exactOptional(),
    ownerReferences: z.array(owner).exactOptional(),
  }),
  spec: z.looseObject({
    containers: z.array(container),
    initContainers: z.array(container).exactOptional(),
    volumes: z.array(z.looseObject({ name: text })).exactOptional(),
    imagePullSecrets: z.array(z.looseObject({ name: text.exactOptional() })).exactOptional(),
    hostNetwork: z.boolean().exactOptional(),
    restartPolicy: text.exactOptional(),
    terminationGracePeriodSeconds: z.int().exactOptional(),
    securityContext: z.looseObject({ runAsUser: z.int().exactOptional() }).exactOptional(),
    resources: resources.exactOptional(),
    os: z.looseObject({ name: text }).exactOptional(),
  }),
});

export type ReadPod =
  | { readonly kind: 'pod'; readonly pod: Pod }
  /** `problem` names the field and what is wrong with it. */
  | { readonly kind: 'unreadable'; readonly problem: string };

/** Who has more slips of one kind finds them by these. */
const PROBLEMS_MAX = 4;

/**
 * Checks the fields that injection reads. Fields that are null are as good as absent, as the API server reads them.
 * The pod that comes back is a copy.
 */
export function readPod(value: unknown): ReadPod {
  const parsed = schema.safeParse(withoutNulls(value), { reportInput: true });
  if (parsed.success) return { kind: 'pod', pod: parsed.data };
  const problems = parsed.error.issues.slice(0, PROBLEMS_MAX).map(problemOf);
  return { kind: 'unreadable', problem: problems.join('; ') };
}

const WANTED: ReadonlyMap<string, string> = new Map([
  ['string', 'a string'],
  ['boolean', 'true or false'],
  ['int', 'a whole number'],
  ['number', 'a whole number'],
  ['array', 'a list'],
]);

function problemOf(issue: z.core.$ZodIssue): string {
  const { input } = issue;
  const path = issue.path.map(formatSegment).join('').replace(/^\./, '');
  const wanted = wantedBy(issue);
  const isUnquoted = wanted === 'a string' && ['number', 'boolean'].includes(typeof input);
  const remedy = isUnquoted ? `: put it in quotes, "${String(input)}"` : '';
  return `${path === '' ? 'the pod' : path}: got ${shown(input)}; expected ${wanted}${remedy}`;
}

/** Names with dots and slashes, as annotations have them, stand in brackets. */
function formatSegment(segment: PropertyKey): string {
  const name = String(segment);
  return /^[A-Za-z]\w*$/.test(name) ? `.${name}` : `[${name}]`;
}

/** A union is a port or a quantity; zod's other words for numbers are about what is not whole. */
function wantedBy(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_union') return 'a number or a string';
  if (issue.code !== 'invalid_type') return 'a whole number';
  return WANTED.get(issue.expected) ?? 'an object';
}

/** Longer than any value of a field that is read as something else by mistake. */
const SHOWN_MAX = 60;

function shown(input: unknown): string {
  if (input === undefined) return 'nothing';
  if (Array.isArray(input)) return 'a list';
  return typeof input === 'object' ? 'an object' : JSON.stringify(input).slice(0, SHOWN_MAX);
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([, child]) => child !== null);
  return Object.fromEntries(kept.map(([name, child]) => [name, withoutNulls(child)]));
}

/** The containers that run beside each other: those of the app, and init containers that stay (native sidecars). */
export function runningContainers({
  containers,
  initContainers = [],
}: PodSpec): readonly Container[] {
  return [...initContainers.filter(staysRunning), ...containers];
}

function staysRunning({ restartPolicy }: Container): boolean {
  return restartPolicy === 'Always';
}

export function allContainers({ containers, initContainers = [] }: PodSpec): readonly Container[] {
  return [...initContainers, ...containers];
}

export function isTcp({ protocol = 'TCP' }: ContainerPort): boolean {
  return protocol === 'TCP';
}

/** Kubernetes' own default. */
const GRACE_DEFAULT_SECONDS = 30;

export function graceSecondsOf(spec: PodSpec): number {
  return spec.terminationGracePeriodSeconds ?? GRACE_DEFAULT_SECONDS;
}
