// What the author of a pod may say in annotations. The table is the only list of them: docs/injection.md is held
// equal to it. A value that cannot be read is named with its field and what would be right; nothing is guessed.
import { annotations } from '../../contract/names.ts';
import { imageReference } from './image-reference.ts';
import { isLarger } from './quantity.ts';
import type { InjectionConfig, OnNoConfig } from './injection-config.ts';
import type { InterceptionMode } from './injection-status.ts';

/** A port of the app, as `weir.dev/ports` names it. */
export type PortChoice = string | number;

export interface PodSettings {
  /** Absent = those that look like HTTP. */
  readonly ports?: readonly PortChoice[];
  readonly mode: InterceptionMode | 'auto';
  readonly native: boolean | 'auto';
  readonly upstreamHost: string;
  readonly drainSeconds: number;
  /** Who asks the app whether it is well. */
  readonly probes: 'kubelet' | 'sidecar';
  readonly onNoConfig: OnNoConfig;
  readonly image: string;
  readonly logLevel: string;
  /** 0 = one process; else so many behind a parent that keeps the listener. */
  readonly workers: number;
  /** Secret with the certificate that clients are shown; absent = they are served in plain text. */
  readonly tlsSecret?: string;
  /** Key of that Secret; absent = clients show no certificate. */
  readonly tlsClientCa?: string;
  readonly cpuRequest?: string;
  readonly cpuLimit?: string;
  readonly memoryRequest?: string;
  readonly memoryLimit?: string;
}

export type ReadSettings =
  | { readonly kind: 'settings'; readonly settings: PodSettings }
  | { readonly kind: 'invalid'; readonly problem: string };

/** More ports than any app that serves HTTP has; each costs the sidecar a listener. */
export const PORTS_MAX = 16;
/** Five minutes: a hook that waits longer only delays the end of pods. */
export const DRAIN_SECONDS_MAX = 300;
/** More than a sidecar ever has processors. */
export const WORKERS_MAX = 16;

type Field = keyof typeof annotations;
type SettingField = Exclude<Field, 'inject'>;

interface AnnotationRule<Value> {
  /** What may be written, in words: ends the sentence `expected …`. */
  readonly values: string;
  /** In words, for the documentation. */
  readonly fallback: string;
  /** Undefined = not valid. */
  readonly parse: (text: string) => Value | undefined;
}

const quantity = (values: string, pattern: RegExp, fallback: string): AnnotationRule<string> => ({
  values,
  fallback,
  parse: (text) => (pattern.test(text) && isLarger(text, 0) ? text : undefined),
});

const CPU = /^([0-9]{1,6}m|[0-9]{1,4}(\.[0-9]{1,3})?)$/;
const MEMORY = /^[0-9]{1,15}(k|M|G|Ki|Mi|Gi)?$/;
const cpu = (fallback: string): AnnotationRule<string> =>
  quantity('an amount of CPU such as 100m or 0.5', CPU, fallback);
const memory = (fallback: string): AnnotationRule<string> =>
  quantity('an amount of memory such as 128Mi', MEMORY, fallback);

type Rules = { readonly [One in SettingField]: AnnotationRule<NonNullable<PodSettings[One]>> };

/** Every annotation but `weir.dev/inject`. */
export const annotationRules: Rules = {
  ports: {
    values: `names or numbers of container ports, comma-separated, ${PORTS_MAX} at most`,
    fallback: 'ports named `http`, `http-…`, `h2c` or `grpc…`; else the only TCP port',
    parse: parsePorts,
  },
  mode: {
    values: '`auto`, `takeover` or `redirect`',
    fallback: '`auto`, or what the operator was given',
    parse: oneOf(['auto', 'takeover', 'redirect']),
  },
  native: {
    values: '`auto`, `true` or `false`',
    fallback: '`auto`: a native sidecar where the server has them (takeover 1.33, redirect 1.29)',
    parse: (text) => (({ auto: 'auto', true: true, false: false }) as const)[text as 'auto'],
  },
  upstreamHost: {
    values: '`127.0.0.1`, `::1` or `localhost` (first the one, then the other)',
    fallback: '`127.0.0.1`',
    parse: oneOf(['127.0.0.1', '::1', 'localhost']),
  },
  drainSeconds: {
    values: `whole seconds from 0 to ${DRAIN_SECONDS_MAX}; 0 leaves the app's containers alone`,
    fallback: '`5`, or what the operator was given',
    parse: upTo(DRAIN_SECONDS_MAX),
  },
  probes: {
    values: '`kubelet`, or `sidecar`: it asks the app on 127.0.0.1 when the kubelet asks it',
    fallback: '`kubelet`',
    parse: oneOf(['kubelet', 'sidecar']),
  },
  onNoConfig: {
    values: '`deny` or `allow`',
    fallback: '`deny`, or what the operator was given',
    parse: oneOf(['deny', 'allow']),
  },
  image: {
    values: imageReference.values,
    fallback: 'what the operator was given',
    parse: matching(imageReference.pattern),
  },
  logLevel: {
    values: '`error`, `warn`, `info` or `debug`',
    fallback: '`info`, or what the operator was given',
    parse: oneOf(['error', 'warn', 'info', 'debug']),
  },
  workers: {
    values: `\`0\`: one process, which the kubelet restarts; to \`${WORKERS_MAX}\`: so many behind a parent that restarts them`,
    fallback: '`0`, or what the operator was given',
    parse: upTo(WORKERS_MAX),
  },
  tlsSecret: {
    values: "the name of a Secret of the pod's namespace with `tls.crt` and `tls.key`",
    fallback: 'none: clients are served without TLS',
    parse: matching(
      /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
    ),
  },
  tlsClientCa: {
    values: 'the key of that Secret whose CAs sign the certificates of clients, such as `ca.crt`',
    fallback: 'none: clients show no certificate',
    // The private key beside it is the likely slip of the pen, and no certificate.
    parse: matching(/^(?!\.\.?$|\.\.|tls\.key$)[-._a-zA-Z0-9]{1,253}$/),
  },
  cpuRequest: cpu('what the operator was given'),
  cpuLimit: cpu('none, unless a container of the app has one'),
  memoryRequest: memory('what the operator was given'),
  memoryLimit: memory('what the operator was given'),
};

const FIELDS: readonly SettingField[] = [
  ...(['ports', 'mode', 'native', 'upstreamHost', 'drainSeconds', 'onNoConfig', 'image'] as const),
  ...([
    'probes',
    'logLevel',
    'workers',
    'tlsSecret',
    'tlsClientCa',
    'cpuRequest',
    'cpuLimit',
    'memoryRequest',
    'memoryLimit',
  ] as const),
];

/** Reads the annotations over the operator's own settings. */
export function readSettings(
  written: Readonly<Record<string, string>>,
  config: InjectionConfig,
): ReadSettings {
  const given: Partial<Record<SettingField, unknown>> = {};
  for (const field of FIELDS) {
    const text = written[annotations[field]];
    if (text === undefined) continue;
    const value = annotationRules[field].parse(text.trim());
    if (value === undefined) return { kind: 'invalid', problem: problemOf(field, text) };
    given[field] = value;
  }
  // The fields were parsed by the rules of the same name.
  const settings = { ...defaultsOf(config), ...(given as Partial<PodSettings>) };
  return contradictionOf(settings) ?? { kind: 'settings', settings };
}

function defaultsOf(config: InjectionConfig): PodSettings {
  const { mode, drainSeconds, onNoConfig, image, logLevel, workers } = config;
  return {
    ...{ mode, native: 'auto', upstreamHost: '127.0.0.1', probes: 'kubelet' },
    ...{ drainSeconds, onNoConfig, image, logLevel, workers },
  };
}

function problemOf(field: Field, text: string): string {
  const { values } = annotationRules[field as SettingField];
  return `${pathOf(field)}: got ${JSON.stringify(text.slice(0, 80))}; expected ${values.replaceAll('`', '')}`;
}

/** Where an annotation is, in words of a field path. */
function pathOf(field: Field): string {
  return `metadata.annotations[${annotations[field]}]`;
}

const PAIRS = [
  ['cpuRequest', 'cpuLimit'],
  ['memoryRequest', 'memoryLimit'],
] as const;

function contradictionOf(settings: PodSettings): ReadSettings | undefined {
  if (settings.tlsClientCa !== undefined && settings.tlsSecret === undefined) {
    const problem = `${pathOf('tlsSecret')}: got nothing; expected the Secret that has the key of ${annotations.tlsClientCa}`;
    return { kind: 'invalid', problem };
  }
  for (const [low, high] of PAIRS) {
    const [request, limit] = [settings[low], settings[high]];
    if (request === undefined || limit === undefined) continue;
    if (!isLarger(request, limit)) continue;
    const problem = `${pathOf(low)}: got ${request}; expected at most ${limit}, the value of ${annotations[high]}`;
    return { kind: 'invalid', problem };
  }
  return undefined;
}

function oneOf<Choice extends string>(
  choices: readonly Choice[],
): (text: string) => Choice | undefined {
  return (text) => choices.find((choice) => choice === text);
}

function matching(pattern: RegExp): (text: string) => string | undefined {
  return (text) => (pattern.test(text) ? text : undefined);
}

function upTo(most: number): (text: string) => number | undefined {
  return (text) => {
    const number = /^[0-9]{1,3}$/.test(text) ? Number(text) : NaN;
    return number <= most ? number : undefined;
  };
}

function parsePorts(text: string): PortChoice[] | undefined {
  const parts = text.split(',').map((part) => part.trim());
  if (parts.length > PORTS_MAX || new Set(parts).size < parts.length) return undefined;
  const choices = parts.map(parsePort);
  return choices.includes(undefined) ? undefined : choices.filter((one) => one !== undefined);
}

function parsePort(text: string): PortChoice | undefined {
  if (/^[1-9][0-9]{0,4}$/.test(text)) return Number(text) <= 65_535 ? Number(text) : undefined;
  return /^(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/.test(text) ? text : undefined;
}
