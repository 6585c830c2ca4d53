// The form of the checks that a sidecar does for the kubelet. Apart from their types: reading it costs 200 ms at start,
// which only a sidecar that has such checks pays.
import * as z from 'zod/mini';
import {
  APP_PROBE_TIMEOUT_SECONDS_MAX,
  APP_PROBES_LENGTH_MAX,
  APP_PROBES_MAX,
  appHealthPath,
  appProbeKinds,
  type AppProbe,
} from './app-probe.ts';
import { WeirError } from './errors.ts';
import { describeIssue } from './frame-codec.ts';

const port = z.int().check(z.gte(1), z.lte(65_535));
const check = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('http'),
    port,
    path: z.string(),
    scheme: z.enum(['HTTP', 'HTTPS']),
    headers: z.array(z.object({ name: z.string(), value: z.string() })),
  }),
  z.object({ kind: z.literal('tcp'), port }),
  z.object({ kind: z.literal('grpc'), port, service: z.string() }),
]);
const schema = z
  .array(
    z.object({
      container: z.string().check(z.regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)),
      probe: z.enum(appProbeKinds),
      timeoutSeconds: z.int().check(z.gte(1), z.lte(APP_PROBE_TIMEOUT_SECONDS_MAX)),
      check,
    }),
  )
  .check(z.maxLength(APP_PROBES_MAX));

/** Throws CONFIG_INVALID with what would be right. */
export function parseAppProbes(text: string): readonly AppProbe[] {
  if (text.length > APP_PROBES_LENGTH_MAX) {
    throw invalid(`${text.length} characters`, `${APP_PROBES_LENGTH_MAX} characters at most`);
  }
  const parsed = schema.safeParse(parseJson(text));
  if (!parsed.success) {
    const { message } = describeIssue(parsed.error);
    throw invalid(text.slice(0, 80), `probes as the webhook writes them (${message})`);
  }
  const paths = parsed.data.map(appHealthPath);
  const twice = paths.find((path, index) => paths.indexOf(path) < index);
  if (twice !== undefined) throw invalid(twice, 'each container and kind once');
  return parsed.data;
}

/** Undefined for what is no JSON: no probes either. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(given: string, right: string): WeirError {
  return new WeirError('CONFIG_INVALID', { where: 'WEIR_APP_PROBES', given, right });
}
