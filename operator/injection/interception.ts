// Takeover or redirect, native or ordinary: what can be done for this pod here, and what it would leave open.
import type { InjectionConfig, PodSurroundings, SelectingService } from './injection-config.ts';
import { refused } from './injection-outcome.ts';
import type { Note, Refused } from './injection-outcome.ts';
import type { InterceptionMode } from './injection-status.ts';
import type { Pod } from './pod.ts';
import type { PodSettings } from './pod-settings.ts';
import { whyNotTakeover } from './taken-ports.ts';
import type { ChosenPort } from './taken-ports.ts';

export interface Interception {
  readonly kind: 'interception';
  readonly mode: InterceptionMode;
  readonly isNative: boolean;
  /** Of the container that writes the rules; undefined = the mode needs none. */
  readonly redirectImage: string | undefined;
  readonly notes: readonly Note[];
}

export interface InterceptionQuestion {
  readonly pod: Pod;
  readonly chosen: readonly ChosenPort[];
  readonly settings: PodSettings;
  readonly config: InjectionConfig;
  readonly surroundings: PodSurroundings;
}

/** Decides both, or says why neither can be. */
export function decideInterception(question: InterceptionQuestion): Interception | Refused {
  const decided = decideMode(question);
  const { pod, chosen, config } = question;
  const isRedirect = decided.mode === 'redirect';
  const obstacle = isRedirect ? whyNotRedirect(question) : whyNotTakeover(pod.spec, chosen);
  if (obstacle !== undefined) return obstacle;
  const native = decideNative(question, decided.mode);
  if (native.kind === 'refused') return native;
  const redirectImage = isRedirect ? config.redirectImage : undefined;
  return { ...decided, kind: 'interception', isNative: native.isNative, redirectImage };
}

interface DecidedMode {
  readonly mode: InterceptionMode;
  readonly notes: readonly Note[];
}

function decideMode(question: InterceptionQuestion): DecidedMode {
  const { settings, surroundings, chosen } = question;
  if (settings.mode !== 'auto') return mode(settings.mode);
  // Replicas of one revision must not differ: half of them would be limited.
  if (surroundings.siblingMode !== undefined) return mode(surroundings.siblingMode);
  const around = surroundings.services.flatMap((service) => waysAround(service, chosen));
  const mayRedirect = whyNotRedirect(question) === undefined;
  const isUnnamed = chosen.some(({ name }) => name === undefined);
  if (mayRedirect && (around.length > 0 || isUnnamed)) return mode('redirect');
  return mode(
    'takeover',
    around.map((message) => ({ reason: 'Bypassable', message })),
  );
}

function mode(decided: InterceptionMode, notes: readonly Note[] = []): DecidedMode {
  return { mode: decided, notes };
}

/** How requests by this Service reach the app past a sidecar that has taken over a name. */
function waysAround(
  { name, isHeadless, ports }: SelectingService,
  chosen: readonly ChosenPort[],
): readonly string[] {
  if (isHeadless) {
    return [
      `Service ${name} is headless: its clients get pod addresses and choose the app's own port; use weir.dev/mode: redirect, or a Service with a cluster IP`,
    ];
  }
  return ports.flatMap(({ port, targetPort = port }) => {
    const reached = chosen.find((one) => one.port === targetPort);
    if (reached === undefined) return [];
    return [
      `Service ${name} sends port ${port} to the number ${targetPort} and so past the sidecar: set its targetPort to ${reached.name ?? 'the name of the port'}`,
    ];
  });
}

const ENFORCE_LABEL = 'pod-security.kubernetes.io/enforce';

// Pod Security's `baseline` allows no NET_ADMIN; an unreadable level is taken as restricted by the API server.
function whyNotRedirect({ config, surroundings }: InterceptionQuestion): Refused | undefined {
  if (config.redirectImage === undefined) {
    return refused(
      'NoRedirectImage',
      "redirect needs an image that writes its rules, which the sidecar's cannot: name one with --redirect-image, or set weir.dev/mode: takeover",
    );
  }
  const { namespace, namespaceLabels } = surroundings;
  const level = namespaceLabels[ENFORCE_LABEL] ?? 'privileged';
  if (level === 'privileged') return undefined;
  return refused(
    'PodSecurity',
    `redirect needs NET_ADMIN, which namespace ${namespace} forbids (${ENFORCE_LABEL}: ${level}): set weir.dev/mode: takeover and let Services use the port's name, or move the pod`,
  );
}

/** Named ports of native sidecars reach EndpointSlices from here on; before, the Service would lose its endpoints. */
const TAKEOVER_NATIVE_MINOR = 33;
/** Native sidecars are on by default from here on. */
const REDIRECT_NATIVE_MINOR = 29;

function decideNative(
  { pod, settings, config }: InterceptionQuestion,
  decided: InterceptionMode,
): { readonly kind: 'native'; readonly isNative: boolean } | Refused {
  const from = decided === 'takeover' ? TAKEOVER_NATIVE_MINOR : REDIRECT_NATIVE_MINOR;
  const isPossible = config.serverMinor >= from;
  if (settings.native === true && !isPossible) {
    return refused(
      'NativeUnsupported',
      `weir.dev/native: true needs Kubernetes 1.${from} for ${decided}, this is 1.${config.serverMinor}: set it to auto`,
    );
  }
  const isNative = settings.native === 'auto' ? isPossible : settings.native;
  if (!isNative && endsByItself(pod)) {
    return refused(
      'WouldNeverEnd',
      `this pod ends by itself (a Job, or restartPolicy ${pod.spec.restartPolicy ?? ''}), and an ordinary sidecar would keep it running for ever: it needs a native sidecar, which takes Kubernetes 1.${from} and no weir.dev/native: false`,
    );
  }
  return { kind: 'native', isNative };
}

function endsByItself({ spec, metadata }: Pod): boolean {
  const { restartPolicy = 'Always' } = spec;
  return (
    restartPolicy !== 'Always' ||
    (metadata.ownerReferences ?? []).some(({ kind, controller }) => kind === 'Job' && controller)
  );
}
