// What one replica tells the others of its sidecars, as the content of a ConfigMap. Sidecars of a workload mostly say
// the very same, so each thing said is written once with the pods that say it.
import { gunzipSync, gzipSync } from 'node:zlib';
import * as z from 'zod';
import type { SidecarReport } from '../policy/sidecar-report.ts';

/** A ConfigMap holds 1 MiB, in base64; what is beyond is left out, oldest pods of the map first. */
const REPORT_BYTES_MAX = 700_000;
/** What a replica's reports may unpack to: 5 000 sidecars with 500 policies each, told apart. */
const UNPACKED_MAX = 64 * 1_048_576;

/** What one replica knows of a sidecar. */
export interface PeerReport {
  /** Whether the sidecar's stream is with that replica now. */
  readonly isConnected: boolean;
  readonly report: SidecarReport;
}

const refusalSchema = z.object({
  uid: z.string(),
  generation: z.number(),
  path: z.string(),
  code: z.enum(['Invalid', 'Unsupported', 'Internal']),
  message: z.string(),
});

const saidSchema = z.object({
  isConnected: z.boolean(),
  generations: z.array(z.tuple([z.string(), z.number()])),
  refusals: z.array(refusalSchema),
  tooOld: z.array(
    z.object({ uid: z.string(), generation: z.number(), features: z.array(z.string()) }),
  ),
  store: z.enum(['up', 'down', '']),
  clientIpIsProxy: z.array(z.string()),
});

const reportsSchema = z.object({
  format: z.literal(1),
  groups: z.array(z.object({ said: saidSchema, pods: z.array(z.string()) })),
});

/** The same bytes for the same reports, whatever their order. */
export function encodeReports(reports: ReadonlyMap<string, PeerReport>): Buffer {
  const groups = new Map<string, { readonly said: unknown; readonly pods: string[] }>();
  for (const [pod, { isConnected, report }] of [...reports].toSorted(byName)) {
    const generations = [...report.generations].toSorted(byName);
    const said = { isConnected, ...report, generations, store: report.store ?? '' };
    const text = JSON.stringify(said);
    const group = groups.get(text);
    if (group === undefined) groups.set(text, { said, pods: [pod] });
    else group.pods.push(pod);
  }
  return fit([...groups.values()]);
}

/** Undefined = not what a replica of this format wrote. */
export function decodeReports(bytes: Buffer): ReadonlyMap<string, PeerReport> | undefined {
  const parsed = reportsSchema.safeParse(unpack(bytes));
  if (!parsed.success) return undefined;
  const reports = new Map<string, PeerReport>();
  for (const { said, pods } of parsed.data.groups) {
    const { isConnected, generations, store, ...rest } = said;
    const report = {
      ...rest,
      generations: new Map(generations),
      store: store === '' ? undefined : store,
    };
    for (const pod of pods) reports.set(pod, { isConnected, report });
  }
  return reports;
}

function fit(groups: readonly unknown[]): Buffer {
  let kept = groups;
  for (;;) {
    const packed = gzipSync(JSON.stringify({ format: 1, groups: kept }));
    if (packed.length <= REPORT_BYTES_MAX || kept.length === 0) return packed;
    kept = kept.slice(Math.ceil(kept.length / 8));
  }
}

function unpack(bytes: Buffer): unknown {
  try {
    return JSON.parse(gunzipSync(bytes, { maxOutputLength: UNPACKED_MAX }).toString('utf8'));
  } catch {
    return undefined;
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}
