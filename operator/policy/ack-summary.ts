// What one replica tells the others of its sidecars, as the text of a ConfigMap: the leader writes status from all of
// them. Sidecars of one workload say much the same, so each saying is written once and named by its number.
import * as z from 'zod';
import type { PolicyRefusal } from '../../contract/stream.ts';
import type { SidecarReport } from './sidecar-report.ts';

/** The API server takes 1 MiB of an object; 4 000 sidecars that all say the same are half of it. */
export const SUMMARY_BYTES_MAX = 900_000;
/** A sidecar refuses few policies; of the others the sidecar's own log tells. */
const REFUSALS_MAX = 8;

const refusalSchema = z.object({
  uid: z.string(),
  generation: z.number(),
  path: z.string(),
  code: z.enum(['Invalid', 'Unsupported', 'Internal']),
  message: z.string(),
});

const sayingSchema = z.object({
  generations: z.array(z.tuple([z.string(), z.number()])),
  refusals: z.array(refusalSchema).max(REFUSALS_MAX),
  tooOld: z.array(
    z.object({ uid: z.string(), generation: z.number(), features: z.array(z.string()) }),
  ),
  store: z.enum(['up', 'down']).exactOptional(),
  clientIpIsProxy: z.array(z.string()),
});

const summarySchema = z.object({
  format: z.literal(1),
  sayings: z.array(sayingSchema),
  /** Pod uid and number of its saying. */
  pods: z.array(z.tuple([z.string(), z.int().min(0)])),
  /** Pods that found no room. */
  left: z.int().min(0),
});

type Saying = z.infer<typeof sayingSchema>;

export type ReportEntry = readonly [podUid: string, report: SidecarReport];

/** The same reports give the same text. What does not fit is left out, last pods first, and counted. */
export function encodeAckSummary(reports: Iterable<ReportEntry>): string {
  const numbers = new Map<string, number>();
  const sayings: string[] = [];
  const pods: string[] = [];
  let left = 0;
  let bytes = 100;
  const sorted = [...reports].toSorted(([a], [b]) => (a < b ? -1 : 1));
  for (const [uid, report] of sorted) {
    const saying = JSON.stringify(sayingOf(report));
    const known = numbers.get(saying);
    const pod = JSON.stringify([uid, known ?? sayings.length]);
    const more = pod.length + 1 + (known === undefined ? Buffer.byteLength(saying) + 1 : 0);
    if (bytes + more > SUMMARY_BYTES_MAX) {
      left += 1;
      continue;
    }
    bytes += more;
    pods.push(pod);
    if (known !== undefined) continue;
    numbers.set(saying, sayings.length);
    sayings.push(saying);
  }
  return `{"format":1,"sayings":[${sayings.join()}],"pods":[${pods.join()}],"left":${String(left)}}`;
}

/** Reports by pod uid; undefined for a text that is not ours. */
export function decodeAckSummary(text: string): ReadonlyMap<string, SidecarReport> | undefined {
  const parsed = summarySchema.safeParse(parseJson(text));
  if (!parsed.success) return undefined;
  const { sayings, pods } = parsed.data;
  const reports = sayings.map(reportOf);
  return new Map(
    pods.flatMap(([uid, number]) => {
      const report = reports[number];
      return report === undefined ? [] : [[uid, report] as const];
    }),
  );
}

function sayingOf(report: SidecarReport): Saying {
  const { generations, refusals, tooOld, store, clientIpIsProxy } = report;
  return {
    generations: [...generations].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    refusals: refusals.slice(0, REFUSALS_MAX).map(briefRefusal),
    tooOld: tooOld.map((one) => ({ ...one, features: [...one.features] })),
    ...(store === undefined ? {} : { store }),
    clientIpIsProxy: [...clientIpIsProxy],
  };
}

// Field by field, so that nothing a sidecar may add is passed on.
function briefRefusal(refusal: PolicyRefusal): Saying['refusals'][number] {
  const { uid, generation, path, code, message } = refusal;
  return { uid, generation, path, code, message };
}

function reportOf({ generations, store, ...rest }: Saying): SidecarReport {
  return { ...rest, generations: new Map(generations), store };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
