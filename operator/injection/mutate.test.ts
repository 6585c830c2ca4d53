import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injected, inPod } from '../../contract/names.ts';
import { injectionConfig, podOf, simplePod, surroundings } from '../../test/support/pods.ts';
import type { InjectionConfig, PodSurroundings, SelectingService } from './injection-config.ts';
import type { Injected, Outcome } from './injection-outcome.ts';
import { mutate } from './mutate.ts';
import { allContainers } from './pod.ts';
import type { Container, Pod } from './pod.ts';
import { DRAIN_SECONDS_MAX, PORTS_MAX } from './pod-settings.ts';

interface Scene {
  readonly config?: Partial<InjectionConfig>;
  readonly around?: Partial<PodSurroundings>;
}

function run(pod: Pod, { config = {}, around = {} }: Scene = {}): Outcome {
  return mutate(pod, injectionConfig(config), surroundings(around));
}

function inject(pod: Pod, scene: Scene = {}): Injected {
  const outcome = run(pod, scene);
  assert.equal(outcome.kind, 'injected', 'message' in outcome ? outcome.message : '');
  return outcome;
}

function named(pod: Pod, name: string): Container {
  const found = allContainers(pod.spec).find((one) => one.name === name);
  assert.ok(found, `container ${name}`);
  return found;
}

/** A field that the types of what is read do not name. */
function field(object: unknown, name: string): unknown {
  return typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined;
}

function variables(pod: Pod): ReadonlyMap<unknown, unknown> {
  const env = field(named(pod, inPod.sidecar), 'env');
  assert.ok(Array.isArray(env));
  return new Map(env.map((one: unknown) => [field(one, 'name'), field(one, 'value')]));
}

function reasonOf(outcome: Outcome): string {
  return outcome.kind === 'injected' ? 'injected' : outcome.reason;
}

const numeric: SelectingService = {
  name: 'api',
  isHeadless: false,
  ports: [{ port: 80, targetPort: 8080 }],
};
const byName: SelectingService = {
  name: 'api',
  isHeadless: false,
  ports: [{ port: 80, targetPort: 'http' }],
};
const headless: SelectingService = { name: 'api', isHeadless: true, ports: byName.ports };
const enforce = (level: string): Partial<PodSurroundings> => ({
  namespaceLabels: { 'pod-security.kubernetes.io/enforce': level },
});

describe('takeover', () => {
  const asked = simplePod({
    container: {
      readinessProbe: { httpGet: { path: '/', port: 'http' } },
      livenessProbe: { tcpSocket: { port: 'http' } },
      lifecycle: { postStart: { httpGet: { path: '/warm', port: 'http' } } },
    },
  });

  it('moves the name to the sidecar, renames the port of the app and asks it by number', () => {
    const { pod, status } = inject(asked);

    const app = named(pod, 'app');
    assert.deepEqual(app.ports, [{ name: 'app-http', containerPort: 8080 }]);
    assert.deepEqual(app.readinessProbe, { httpGet: { path: '/', port: 8080 } });
    assert.deepEqual(app.livenessProbe, { tcpSocket: { port: 8080 } });
    assert.deepEqual(app.lifecycle, {
      postStart: { httpGet: { path: '/warm', port: 8080 } },
      preStop: { sleep: { seconds: 5 } },
    });
    assert.deepEqual(named(pod, inPod.sidecar).ports, [
      { name: 'http', containerPort: 15_100, protocol: 'TCP' },
      { name: 'weir-metrics', containerPort: 15_090, protocol: 'TCP' },
    ]);
    assert.equal(status.mode, 'takeover');
    assert.deepEqual(status.ports, [
      { container: 'app', name: 'http', port: 8080, listen: 15_100, renamed: 'app-http' },
    ]);
  });

  it('gives the sidecar first, native from 1.33 on and ordinary before', () => {
    const at33 = inject(asked, { config: { serverMinor: 33 } }).pod;
    const at32 = inject(asked, { config: { serverMinor: 32 } }).pod;

    assert.deepEqual(
      at33.spec.initContainers?.map(({ name, restartPolicy }) => [name, restartPolicy]),
      [['weir', 'Always']],
    );
    assert.deepEqual(
      at32.spec.containers.map(({ name, restartPolicy }) => [name, restartPolicy]),
      [
        ['weir', undefined],
        ['app', undefined],
      ],
    );
    const key = 'kubectl.kubernetes.io/default-container';
    assert.equal(at32.metadata.annotations?.[key], 'app');
    assert.equal(at33.metadata.annotations?.[key], undefined);
  });

  it('tells the sidecar where to listen, whom to ask and who it is', () => {
    const ports = [
      { name: 'http', containerPort: 8080 },
      { name: 'grpc', containerPort: 9090 },
      { name: 'metrics', containerPort: 9100 },
    ];
    const { pod } = inject(
      simplePod({
        annotations: { 'weir.dev/upstream-host': '::1', 'weir.dev/on-no-config': 'allow' },
        container: { ports },
        spec: { terminationGracePeriodSeconds: 45 },
      }),
    );

    const found = variables(pod);
    assert.equal(found.get('WEIR_LISTEN'), '[::]:15100,[::]:15101');
    assert.equal(found.get('WEIR_UPSTREAM'), '[::1]:8080,[::1]:9090');
    assert.equal(found.get('WEIR_ADMIN'), '[::]:15090');
    assert.equal(found.get('WEIR_OPERATOR'), 'https://weir-operator.weir-system.svc:9444');
    assert.equal(
      found.get('WEIR_OPERATOR_TOKEN'),
      '/var/run/secrets/kubernetes.io/serviceaccount/token',
    );
    assert.equal(found.get('WEIR_ON_NO_CONFIG'), 'allow');
    assert.equal(found.get('WEIR_GRACE'), '45s');
  });

  it('mounts a token of its own where the one of the app would be added, and sets no file mode', () => {
    const { pod } = inject(asked);

    assert.deepEqual(named(pod, inPod.sidecar).volumeMounts?.[0], {
      name: 'weir-identity',
      mountPath: '/var/run/secrets/kubernetes.io/serviceaccount',
      readOnly: true,
    });
    const identity = pod.spec.volumes?.find(({ name }) => name === 'weir-identity');
    assert.ok(!JSON.stringify(identity).includes('defaultMode'));
    assert.ok(JSON.stringify(identity).includes('"audience":"weir.dev/stream"'));
  });

  it('finds numbers and names that nobody has', () => {
    const ports = [
      { name: 'http', containerPort: 8080, hostPort: 15_101 },
      { name: 'app-http', containerPort: 15_100 },
      { name: 'weir-metrics', containerPort: 15_090 },
    ];
    const { pod, status } = inject(simplePod({ container: { ports } }));

    assert.deepEqual(status.ports, [
      { container: 'app', name: 'http', port: 8080, listen: 15_102, renamed: 'app-http-2' },
    ]);
    assert.deepEqual(named(pod, inPod.sidecar).ports, [
      { name: 'http', containerPort: 15_102, protocol: 'TCP' },
      { containerPort: 15_091, protocol: 'TCP' },
    ]);
    assert.equal(status.admin, 15_091);
  });

  it('shortens a long name to the fifteen characters that a port may have', () => {
    const ports = [{ name: 'http-publicfac', containerPort: 8080 }];
    const { status } = inject(simplePod({ container: { ports } }));

    assert.equal(status.ports[0]?.renamed, 'app-http-public');
    const cut = inject(
      simplePod({ container: { ports: [{ name: 'http-publi-cat', containerPort: 8080 }] } }),
    );
    assert.equal(cut.status.ports[0]?.renamed, 'app-http-publi');
  });

  it('does not become root where the pod is', () => {
    const { pod } = inject(simplePod({ spec: { securityContext: { runAsUser: 0 } } }));

    assert.equal(field(field(named(pod, 'weir'), 'securityContext'), 'runAsUser'), 65_532);
  });
});

describe('redirect', () => {
  const pod = simplePod({
    annotations: { 'weir.dev/mode': 'redirect' },
    container: {
      ports: [{ name: 'http', containerPort: 8080 }],
      readinessProbe: { httpGet: { path: '/', port: 'http' } },
      livenessProbe: { grpc: { port: 8080 } },
      startupProbe: { tcpSocket: { port: 9 } },
      lifecycle: { preStop: { httpGet: { port: 'http', host: 'example.com' } } },
    },
  });

  it('leaves names alone, and lets the kubelet ask a port that goes past the sidecar', () => {
    const { pod: after, status } = inject(pod);

    const app = named(after, 'app');
    assert.deepEqual(app.ports, [{ name: 'http', containerPort: 8080 }]);
    assert.deepEqual(app.readinessProbe, { httpGet: { path: '/', port: 15_300 } });
    assert.deepEqual(app.livenessProbe, { grpc: { port: 15_300 } });
    assert.deepEqual(app.startupProbe, { tcpSocket: { port: 9 } });
    assert.deepEqual(app.lifecycle?.preStop, { httpGet: { port: 'http', host: 'example.com' } });
    assert.deepEqual(status.probes, [{ port: 8080, probe: 15_300 }]);
    assert.equal(named(after, 'weir').ports?.[0]?.name, undefined);
  });

  it('writes its rules first, as root with one capability', () => {
    const { pod: after } = inject(pod);

    assert.deepEqual(
      after.spec.initContainers?.map(({ name }) => name),
      ['weir-redirect', 'weir'],
    );
    const init = named(after, 'weir-redirect');
    assert.deepEqual(field(init, 'args'), [
      ...['redirect', '--forward', '8080:15100', '--probe', '15300:8080'],
    ]);
    assert.deepEqual(field(init, 'securityContext'), {
      runAsUser: 0,
      runAsNonRoot: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  it('takes a number that is not declared, and an unnamed port', () => {
    const annotations = { 'weir.dev/mode': 'redirect', 'weir.dev/ports': '8080,9999' };
    const { status } = inject(
      simplePod({ annotations, container: { ports: [{ containerPort: 8080 }] } }),
    );

    assert.deepEqual(
      status.ports.map(({ port, listen }) => [port, listen]),
      [
        [8080, 15_100],
        [9999, 15_101],
      ],
    );
  });

  it('is native from 1.29 on', () => {
    const native = (serverMinor: number): boolean =>
      inject(pod, { config: { serverMinor } }).status.native;

    assert.equal(native(29), true);
    assert.equal(native(28), false);
  });

  it('is refused where Pod Security forbids its capability', () => {
    assert.equal(reasonOf(run(pod, { around: enforce('privileged') })), 'injected');
    assert.equal(reasonOf(run(pod, { around: enforce('baseline') })), 'PodSecurity');
    assert.equal(reasonOf(run(pod, { around: enforce('restricted') })), 'PodSecurity');
  });
});

describe('auto', () => {
  const modeOf = (around: Partial<PodSurroundings>, pod = simplePod()): string =>
    inject(pod, { around }).status.mode;

  it('takes over unless a Service would go past the sidecar', () => {
    const table: readonly (readonly [string, readonly SelectingService[]])[] = [
      ['takeover', []],
      ['takeover', [byName]],
      ['redirect', [numeric]],
      ['redirect', [byName, numeric]],
      ['redirect', [{ name: 'api', isHeadless: false, ports: [{ port: 8080 }] }]],
      ['takeover', [{ name: 'api', isHeadless: false, ports: [{ port: 80 }] }]],
      ['redirect', [headless]],
      ['takeover', [{ ...byName, ports: [{ port: 80, targetPort: 9100 }] }]],
      ['takeover', [{ ...byName, ports: [{ port: 80, targetPort: 'app-http' }] }]],
    ];

    for (const [expected, services] of table) {
      assert.equal(modeOf({ services }), expected, JSON.stringify(services));
    }
  });

  it('takes over and says what is left open where redirect is forbidden', () => {
    const outcome = inject(simplePod(), {
      around: { ...enforce('restricted'), services: [numeric, headless] },
    });

    assert.equal(outcome.status.mode, 'takeover');
    assert.deepEqual(
      outcome.notes.map(({ reason }) => reason),
      ['Bypassable', 'Bypassable'],
    );
    assert.match(outcome.notes[0]?.message ?? '', /Service api .* targetPort to http/);
  });

  it('does as the first pod of the same revision', () => {
    assert.equal(modeOf({ services: [numeric], siblingMode: 'takeover' }), 'takeover');
    assert.equal(modeOf({ services: [], siblingMode: 'redirect' }), 'redirect');
  });

  it('redirects a port without a name, and refuses it where it may not', () => {
    const pod = simplePod({ container: { ports: [{ containerPort: 8080 }] } });

    assert.equal(modeOf({}, pod), 'redirect');
    assert.equal(reasonOf(run(pod, { around: enforce('restricted') })), 'UnnamedPort');
  });
});

describe('stopping', () => {
  const hooks = (pod: Pod): unknown => named(pod, inPod.sidecar).lifecycle?.preStop?.exec;

  it('turns draining on when native, and holds for the hook of the app when ordinary', () => {
    const command = ['weir', 'drain', '--admin', '127.0.0.1:15090'];

    assert.deepEqual(hooks(inject(simplePod()).pod), { command });
    const { pod } = inject(simplePod(), { config: { serverMinor: 32 } });
    assert.deepEqual(hooks(pod), { command: [...command, '--hold', '5s'] });
    assert.equal(variables(pod).get('WEIR_GRACE'), '25s');
  });

  it('leaves a hook of the app alone and holds as long as that takes', () => {
    const lifecycle = { preStop: { sleep: { seconds: 12 } } };
    const { pod } = inject(simplePod({ container: { lifecycle } }), {
      config: { serverMinor: 32 },
    });

    assert.deepEqual(named(pod, 'app').lifecycle, lifecycle);
    assert.match(JSON.stringify(hooks(pod)), /"--hold","12s"/);
  });

  it('gives the app its sleep only when five seconds of the grace period are left', () => {
    const preStop = (grace: number, annotations = {}): unknown => {
      const { pod, notes } = inject(
        simplePod({ annotations, spec: { terminationGracePeriodSeconds: grace } }),
      );
      return [named(pod, 'app').lifecycle?.preStop, notes.map(({ reason }) => reason)];
    };

    assert.deepEqual(preStop(10), [{ sleep: { seconds: 5 } }, []]);
    assert.deepEqual(preStop(9), [undefined, ['NoDrain']]);
    assert.deepEqual(preStop(9, { 'weir.dev/drain-seconds': '4' }), [
      { sleep: { seconds: 4 } },
      [],
    ]);
    assert.deepEqual(preStop(30, { 'weir.dev/drain-seconds': '0' }), [undefined, []]);
  });

  it('gives no sleep before Kubernetes 1.30, which has none', () => {
    const { pod, notes } = inject(simplePod(), { config: { serverMinor: 29 } });

    assert.equal(named(pod, 'app').lifecycle, undefined);
    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['NoDrain'],
    );
    assert.equal(
      named(inject(simplePod(), { config: { serverMinor: 30 } }).pod, 'app').lifecycle?.preStop
        ?.sleep?.seconds,
      5,
    );
  });
});

describe('resources', () => {
  const resources = (pod: Pod): unknown => named(pod, inPod.sidecar).resources;
  const limited = (limits: unknown, requests?: unknown): Pod =>
    simplePod({ container: { resources: { limits, ...(requests ? { requests } : {}) } } });

  it('are the requests and the memory limit that the operator was given', () => {
    assert.deepEqual(resources(inject(simplePod()).pod), {
      requests: { cpu: '50m', memory: '96Mi' },
      limits: { memory: '256Mi' },
    });
  });

  it('have a CPU limit where the app has one', () => {
    assert.deepEqual(resources(inject(limited({ cpu: '1' })).pod), {
      requests: { cpu: '50m', memory: '96Mi' },
      limits: { memory: '256Mi', cpu: '500m' },
    });
  });

  it('keep the class Guaranteed', () => {
    const both = { cpu: '1', memory: '64Mi' };
    const equal = { memory: '256Mi', cpu: '500m' };

    assert.deepEqual(resources(inject(limited(both)).pod), { requests: equal, limits: equal });
    assert.deepEqual(resources(inject(limited(both, both)).pod), {
      requests: equal,
      limits: equal,
    });
  });

  it('follow the annotations, and let the one that was written move the other', () => {
    const at = (annotations: Record<string, string>): unknown =>
      resources(inject(simplePod({ annotations })).pod);

    assert.deepEqual(at({ 'weir.dev/memory-request': '1Gi', 'weir.dev/cpu-limit': '20m' }), {
      requests: { cpu: '20m', memory: '1Gi' },
      limits: { memory: '1Gi', cpu: '20m' },
    });
    assert.deepEqual(at({ 'weir.dev/memory-limit': '32Mi' }), {
      requests: { cpu: '50m', memory: '32Mi' },
      limits: { memory: '32Mi' },
    });
  });

  it('are left to the pod where it has bounds as a whole', () => {
    const whole = { resources: { requests: { cpu: '1' } } };

    assert.equal(resources(inject(simplePod({ spec: whole })).pod), undefined);
  });
});

describe('what is written on the pod', () => {
  it('is a label, the status, and the volume that does not keep a node', () => {
    const key = 'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes';
    const { pod, status } = inject(simplePod({ annotations: { [key]: 'tmp, other' } }));

    assert.equal(pod.metadata.labels?.[injected.label], 'true');
    assert.equal(pod.metadata.annotations?.[key], 'tmp,other,weir-cache');
    assert.deepEqual(JSON.parse(pod.metadata.annotations[injected.status] ?? ''), status);
  });

  it('holds the seed, or why there is none', () => {
    const notes = (seed: PodSurroundings['seed'], annotations = {}): unknown => {
      const around = seed === undefined ? {} : { seed };
      const { pod, notes: said } = inject(simplePod({ annotations }), { around });
      const { [injected.seed]: text, [injected.seedOmitted]: why } = pod.metadata.annotations ?? {};
      return [text, why, said.map(({ reason }) => reason)];
    };

    assert.deepEqual(notes({ kind: 'seed', text: 'H4sI' }), ['H4sI', undefined, []]);
    assert.deepEqual(notes({ kind: 'omitted', reason: 'too long' }), [
      undefined,
      'too long',
      ['SeedOmitted'],
    ]);
    assert.deepEqual(notes(undefined), [undefined, undefined, []]);
    assert.deepEqual(
      notes({ kind: 'seed', text: 'A'.repeat(65_536) }, { big: 'x'.repeat(200_000) }),
      [undefined, "the pod's other annotations leave no room for it", ['SeedOmitted']],
    );
  });

  it('adds pull secrets that are not there yet', () => {
    const { pod } = inject(simplePod({ spec: { imagePullSecrets: [{ name: 'theirs' }] } }), {
      config: { imagePullSecrets: ['ours', 'theirs'] },
    });

    assert.deepEqual(pod.spec.imagePullSecrets, [{ name: 'theirs' }, { name: 'ours' }]);
  });

  it('names an annotation that nobody reads', () => {
    const { notes } = inject(simplePod({ annotations: { 'weir.dev/prots': 'http' } }));

    assert.deepEqual(
      notes.map(({ reason }) => reason),
      ['UnknownAnnotation'],
    );
    assert.match(notes[0]?.message ?? '', /weir.dev\/prots/);
  });

  it('replaces what a template copied from a running pod says', () => {
    const before = inject(simplePod(), { around: { seed: { kind: 'seed', text: 'b2xk' } } });
    const copied = simplePod({ annotations: before.pod.metadata.annotations ?? {} });

    const { pod, status } = inject(copied, { config: { version: '2.0.0' } });

    assert.equal(status.version, '2.0.0');
    assert.equal(pod.metadata.annotations?.[injected.seed], undefined);
  });
});

describe('the choice of ports', () => {
  const choice = (ports: readonly unknown[], annotations = {}): unknown => {
    const outcome = run(simplePod({ annotations, container: { ports } }));
    return outcome.kind === 'injected'
      ? outcome.status.ports.map(({ name, port }) => name ?? port)
      : outcome.reason;
  };
  const port = (name: string, containerPort: number, protocol = 'TCP'): unknown => ({
    name,
    containerPort,
    protocol,
  });

  it('goes by names that mean HTTP', () => {
    const ports = [
      port('http-a', 1),
      port('h2c', 2),
      port('grpc-x', 3),
      port('metrics', 4),
      port('httpx', 5),
    ];

    assert.deepEqual(choice(ports), ['http-a', 'h2c', 'grpc-x']);
  });

  it('takes the only TCP port whatever its name, and does not guess among several', () => {
    assert.deepEqual(choice([port('web', 80), port('dns', 53, 'UDP')]), ['web']);
    assert.equal(choice([port('web', 80), port('metrics', 90)]), 'AmbiguousPort');
  });

  it('goes by the annotation where there is one', () => {
    const ports = [port('http', 80), port('metrics', 90)];

    assert.deepEqual(choice(ports, { 'weir.dev/ports': ' metrics , 80 ' }), ['metrics', 'http']);
    assert.deepEqual(choice(ports, { 'weir.dev/ports': 'http,80' }), ['http']);
    assert.equal(choice(ports, { 'weir.dev/ports': 'nope' }), 'NoPort');
  });

  it('finds nothing without a TCP port', () => {
    assert.equal(choice([]), 'NoPort');
    assert.equal(choice([port('dns', 53, 'UDP'), port('sig', 54, 'SCTP')]), 'NoPort');
  });

  it('sees the ports of native sidecars of the app', () => {
    const outcome = inject(
      podOf({
        metadata: { annotations: { 'weir.dev/inject': 'enabled' } },
        spec: {
          initContainers: [
            { name: 'front', restartPolicy: 'Always', ports: [port('http', 80)] },
            { name: 'once', ports: [port('http', 81)] },
          ],
          containers: [{ name: 'app' }],
        },
      }),
    );

    assert.deepEqual(
      outcome.pod.spec.initContainers?.map(({ name }) => name),
      ['weir', 'front', 'once'],
    );
    assert.equal(named(outcome.pod, 'front').ports?.[0]?.name, 'app-http');
    assert.equal(named(outcome.pod, 'front').lifecycle?.preStop?.sleep?.seconds, 5);
  });

  it(`stops at ${PORTS_MAX}`, () => {
    const many = (count: number): unknown[] =>
      Array.from({ length: count }, (_, index) => port(`http-${index}`, 100 + index));

    assert.equal((choice(many(PORTS_MAX)) as unknown[]).length, PORTS_MAX);
    assert.equal(choice(many(PORTS_MAX + 1)), 'TooManyPorts');
  });
});

describe('refusals', () => {
  const probed = (name: string): Pod =>
    simplePod({ container: { readinessProbe: { httpGet: { port: name } } } });

  it('have a reason each', () => {
    const table: readonly (readonly [string, Pod, Scene?])[] = [
      ['HostNetwork', simplePod({ spec: { hostNetwork: true } })],
      ['UnsupportedOS', simplePod({ spec: { os: { name: 'windows' } } })],
      ['injected', simplePod({ spec: { os: { name: 'linux' } } })],
      ['NameTaken', simplePod({ container: { name: 'weir' } })],
      ['NameTaken', simplePod({ spec: { initContainers: [{ name: 'weir-redirect' }] } })],
      ['NameTaken', simplePod({ spec: { volumes: [{ name: 'weir-cache' }] } })],
      ['UnresolvedHandler', probed('nope')],
      ['injected', probed('http')],
      ['injected', probed('8080')],
      ['WouldNeverEnd', simplePod({ spec: { restartPolicy: 'Never' } }), old()],
      ['WouldNeverEnd', jobPod(), old()],
      ['WouldNeverEnd', annotated({ 'weir.dev/native': 'false' }, { restartPolicy: 'OnFailure' })],
      ['injected', simplePod({ spec: { restartPolicy: 'Never' } })],
      ['NativeUnsupported', annotated({ 'weir.dev/native': 'true' }), old()],
      ['AmbiguousPort', twoOfAName()],
    ];

    for (const [reason, pod, scene] of table) assert.equal(reasonOf(run(pod, scene)), reason);
  });

  it('name a value that cannot be read, where it is and what would be right', () => {
    const values: Readonly<Record<string, readonly string[]>> = {
      'weir.dev/inject': ['yes', 'true', 'Enabled'],
      'weir.dev/ports': ['', 'HTTP', '0', '65536', 'http,', 'http,http', 'a_b'],
      'weir.dev/mode': ['iptables'],
      'weir.dev/native': ['yes'],
      'weir.dev/upstream-host': ['10.0.0.1', 'example.com'],
      'weir.dev/drain-seconds': ['-1', '1.5', String(DRAIN_SECONDS_MAX + 1), '5s'],
      'weir.dev/on-no-config': ['open'],
      'weir.dev/image': ['', 'a b', 'x'.repeat(256)],
      'weir.dev/log-level': ['trace'],
      'weir.dev/workers': ['-1', '17', 'two'],
      'weir.dev/tls-secret': ['', 'shop/api-tls', 'API', '.api', 'x'.repeat(254)],
      'weir.dev/tls-client-ca': ['', '..', '..ca', 'tls.key', 'certs/ca.crt', 'x'.repeat(254)],
      'weir.dev/cpu-request': ['0', '1e3', '-1', '100Mi'],
      'weir.dev/cpu-limit': ['fast'],
      'weir.dev/memory-request': ['64MiB', '0'],
      'weir.dev/memory-limit': ['lots'],
    };

    for (const [name, wrong] of Object.entries(values)) {
      for (const value of wrong) {
        const outcome = run(annotated({ [name]: value }));
        assert.equal(outcome.kind, 'refused', `${name}: ${value}`);
        assert.equal(outcome.reason, 'InvalidAnnotation');
        assert.ok(
          outcome.message.startsWith(
            `metadata.annotations[${name}]: got "${value.slice(0, 80)}"; expected `,
          ),
          outcome.message,
        );
      }
    }
    const bound = run(annotated({ 'weir.dev/drain-seconds': String(DRAIN_SECONDS_MAX) }));
    assert.equal(reasonOf(bound), 'injected');
  });

  it('put workers behind a parent where that is asked for', () => {
    const given = (workers: string): readonly unknown[] => {
      const set = variables(inject(annotated({ 'weir.dev/workers': workers })).pod);
      return [set.get('WEIR_WORKERS'), set.get('WEIR_SUPERVISE')];
    };

    assert.deepEqual(given('2'), ['2', 'true']);
    assert.deepEqual(given('0'), [undefined, undefined]);
  });

  it('name two values that contradict each other', () => {
    const annotations = { 'weir.dev/memory-request': '1Gi', 'weir.dev/memory-limit': '512Mi' };

    assert.equal(reasonOf(run(annotated(annotations))), 'InvalidAnnotation');
  });

  it('tell of a container that another injector added onto our port', () => {
    const { pod } = inject(simplePod());
    const added = (containerPort: number): Pod => ({
      ...pod,
      spec: {
        ...pod.spec,
        containers: [...pod.spec.containers, { name: 'mesh', ports: [{ containerPort }] }],
      },
    });

    assert.equal(reasonOf(run(added(15_000))), 'AlreadyInjected');
    assert.equal(reasonOf(run(added(15_100))), 'PortClash');
    assert.equal(reasonOf(run(added(15_090))), 'PortClash');
  });
});

describe('who is left alone', () => {
  const asking = (metadata: unknown, namespaceLabels: Record<string, string> = {}): string =>
    reasonOf(run(podOf({ ...simplePod(), metadata }), { around: { namespaceLabels } }));
  const key = 'weir.dev/inject';

  it('is a pod that nobody spoke for; the annotation beats the label, the label the namespace', () => {
    assert.equal(asking({}), 'NotAsked');
    assert.equal(asking({}, { [key]: 'enabled' }), 'injected');
    assert.equal(asking({ labels: { [key]: 'disabled' } }, { [key]: 'enabled' }), 'Disabled');
    assert.equal(asking({ labels: { [key]: 'required' } }), 'injected');
    assert.equal(
      asking({ labels: { [key]: 'disabled' }, annotations: { [key]: 'enabled' } }),
      'injected',
    );
    assert.equal(
      asking({ labels: { [key]: 'enabled' }, annotations: { [key]: 'disabled' } }),
      'Disabled',
    );
  });
});

function old(): Scene {
  return { config: { serverMinor: 32 } };
}

function annotated(annotations: Record<string, string>, spec = {}): Pod {
  return simplePod({ annotations, spec });
}

function jobPod(): Pod {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'u', controller: true };
  const annotations = { 'weir.dev/inject': 'enabled' };
  return simplePod({ metadata: { name: 'j', annotations, ownerReferences: [owner] } });
}

function twoOfAName(): Pod {
  const ports = [{ name: 'http', containerPort: 8080 }];
  const containers = [
    { name: 'one', ports },
    { name: 'two', ports: [{ name: 'http', containerPort: 9090 }] },
  ];
  return simplePod({ spec: { containers } });
}
