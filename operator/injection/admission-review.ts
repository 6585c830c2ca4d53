// One AdmissionReview in, one out; no I/O. Where somebody only wished for a sidecar the pod always passes; where it was
// required the pod is refused in words. A warning is shown only to who creates the pod itself, so everything that has to
// be said is handed back for an Event on the pod's owner as well.
import assert from 'node:assert/strict';
import * as z from 'zod';
import { Buffer } from 'node:buffer';
import type { JsonPatchOperation } from '../kube/api.ts';
import type { ObjectReference } from '../kube/object.ts';
import { podTitle } from './injected-metadata.ts';
import type { InjectionConfig, PodSurroundings } from './injection-config.ts';
import { refused } from './injection-outcome.ts';
import type { Outcome, Refused } from './injection-outcome.ts';
import { diffJson } from './json-patch.ts';
import { mutate } from './mutate.ts';
import { optInOf } from './opt-in.ts';
import { readPod } from './pod.ts';
import type { Pod, PodOwner } from './pod.ts';

/** What the caches know about a pod that is being created. Answers at once: a pod waits for it. */
export interface WorldView {
  /** What `mutate` needs to know of the place. */
  surroundingsOf(namespace: string, pod: Pod): PodSurroundings;
  /** The object that a person thinks of: the Deployment behind a ReplicaSet. */
  workloadOf(namespace: string, owner: PodOwner): ObjectReference;
}

export interface ReviewDependencies {
  readonly world: WorldView;
  readonly config: InjectionConfig;
}

export type InjectionResult = 'injected' | 'skipped' | 'refused';

/** For an Event on `about`. */
export interface InjectionEvent {
  readonly about: ObjectReference;
  readonly reason: string;
  readonly message: string;
}

export type Reviewed =
  | {
      readonly kind: 'answered';
      /** The body of the response. */
      readonly answer: AdmissionAnswer;
      readonly result: InjectionResult;
      /** Of a skip or refusal; `Injected` otherwise. */
      readonly reason: string;
      /** Empty for a dry run: such a request must leave no trace. */
      readonly events: readonly InjectionEvent[];
    }
  /** No review that can be answered: status 400. */
  | { readonly kind: 'unreadable'; readonly problem: string };

export interface AdmissionAnswer {
  readonly apiVersion: 'admission.k8s.io/v1';
  readonly kind: 'AdmissionReview';
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    readonly patchType?: 'JSONPatch';
    /** Base64 of the JSON. */
    readonly patch?: string;
    readonly warnings?: readonly string[];
    readonly status?: { readonly code: number; readonly reason: string; readonly message: string };
  };
}

interface Request {
  readonly uid: string;
  readonly namespace: string;
  readonly operation: string;
  readonly kind: { readonly group: string; readonly kind: string };
  readonly dryRun: boolean;
  readonly object: unknown;
}

const reviewSchema = z.object({
  apiVersion: z.literal('admission.k8s.io/v1'),
  kind: z.literal('AdmissionReview'),
  request: z.object({
    uid: z.string().min(1).max(256),
    namespace: z.string().max(253),
    operation: z.string(),
    kind: z.object({ group: z.string(), kind: z.string() }),
    dryRun: z.boolean().nullish(),
    object: z.unknown(),
  }),
});

export function reviewAdmission(body: unknown, deps: ReviewDependencies): Reviewed {
  const parsed = reviewSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    assert(issue !== undefined, 'zod names what it refuses');
    const path = issue.path.map(String).join('.');
    const problem = `${path === '' ? 'the body' : path}: ${issue.message}; expected an AdmissionReview of admission.k8s.io/v1 with a request`;
    return { kind: 'unreadable', problem };
  }
  const { dryRun, ...rest } = parsed.data.request;
  return reviewRequest({ ...rest, dryRun: dryRun === true }, deps);
}

function reviewRequest(request: Request, deps: ReviewDependencies): Reviewed {
  const { uid, kind, operation } = request;
  // Our configuration asks for nothing else; a stranger's must not be able to refuse what is none of our business.
  if (kind.group !== '' || kind.kind !== 'Pod' || operation !== 'CREATE') {
    return answered({ uid, allowed: true }, { result: 'skipped', reason: 'NotAPod' });
  }
  const read = readPod(request.object);
  if (read.kind === 'unreadable') {
    const isRequired = writtenAsRequired(request.object);
    const response = refusal(uid, refused('Unreadable', read.problem), isRequired);
    return answered(response, { result: 'refused', reason: 'Unreadable' });
  }
  return reviewPod(request, read.pod, deps);
}

const metadataSchema = z.object({
  metadata: z.object({
    annotations: z.record(z.string(), z.string()).exactOptional(),
    labels: z.record(z.string(), z.string()).exactOptional(),
  }),
});

/** Of a pod that cannot be read as a whole: what was required must not pass because the rest is strange. */
function writtenAsRequired(object: unknown): boolean {
  const parsed = metadataSchema.safeParse(object);
  return parsed.success && optInOf(parsed.data.metadata, {}).kind === 'required';
}

function reviewPod(request: Request, pod: Pod, { world, config }: ReviewDependencies): Reviewed {
  const { uid, namespace, dryRun } = request;
  const around = world.surroundingsOf(namespace, pod);
  const outcome = mutate(pod, config, around);
  const told = toldOf(outcome, pod);
  const about = aboutWhom(namespace, pod, world);
  const events = dryRun || about === undefined ? [] : told.map((one) => ({ about, ...one }));
  const warnings = told.map(({ message }) => message);
  switch (outcome.kind) {
    case 'injected': {
      const patch = diffJson(pod, outcome.pod);
      const response = { uid, allowed: true, ...patchOf(patch), ...bounded(warnings) };
      return answered(response, { result: 'injected', reason: 'Injected', events });
    }
    case 'skipped':
      return answered({ uid, allowed: true }, { result: 'skipped', reason: outcome.reason });
    case 'refused': {
      const isRequired = optInOf(pod.metadata, around.namespaceLabels).kind === 'required';
      const response = refusal(uid, outcome, isRequired);
      return answered(response, { result: 'refused', reason: outcome.reason, events });
    }
  }
}

interface Told {
  readonly reason: string;
  readonly message: string;
}

function toldOf(outcome: Outcome, pod: Pod): readonly Told[] {
  switch (outcome.kind) {
    case 'injected':
      return outcome.notes;
    case 'skipped':
      return [];
    case 'refused':
      return [
        { reason: outcome.reason, message: `${podTitle(pod)} gets no sidecar: ${outcome.message}` },
      ];
  }
}

/** Undefined for a pod that has neither an owner nor a name yet: there is nothing to attach an Event to. */
function aboutWhom(namespace: string, pod: Pod, world: WorldView): ObjectReference | undefined {
  const owner = (pod.metadata.ownerReferences ?? []).find(({ controller }) => controller === true);
  if (owner !== undefined) return world.workloadOf(namespace, owner);
  const { name } = pod.metadata;
  return name === undefined ? undefined : { apiVersion: 'v1', kind: 'Pod', namespace, name };
}

type Response = AdmissionAnswer['response'];

function refusal(uid: string, { message }: Refused, isRequired: boolean): Response {
  if (!isRequired) return { uid, allowed: true, ...bounded([`no sidecar: ${message}`]) };
  const status = {
    code: 403,
    reason: 'Forbidden',
    message: `weir.dev/inject is required: ${message}`,
  };
  return { uid, allowed: false, status };
}

/** Never of nothing: a pod that is injected has at least its status. */
function patchOf(patch: readonly JsonPatchOperation[]): Partial<Response> {
  const text = Buffer.from(JSON.stringify(patch)).toString('base64');
  return { patchType: 'JSONPatch', patch: text };
}

/** The API server cuts each warning at 256 characters and all of them at 4 096. */
export const WARNINGS_MAX = 8;
export const WARNING_LENGTH_MAX = 256;

function bounded(warnings: readonly string[]): Partial<Response> {
  if (warnings.length === 0) return {};
  return { warnings: warnings.slice(0, WARNINGS_MAX).map(shortened) };
}

function shortened(message: string): string {
  const text = `weir: ${message}`;
  return text.length <= WARNING_LENGTH_MAX ? text : `${text.slice(0, WARNING_LENGTH_MAX - 1)}…`;
}

function answered(
  response: Response,
  told: { result: InjectionResult; reason: string; events?: readonly InjectionEvent[] },
): Reviewed {
  const answer = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response } as const;
  return { kind: 'answered', answer, events: [], ...told };
}
