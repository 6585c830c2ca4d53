import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { applyPatch } from 'rfc6902';
import { appHealthPath } from '../../contract/app-probe.ts';
import { parseAppProbes } from '../../contract/app-probe-schema.ts';
import { annotations, inPod, ports as firstPorts } from '../../contract/names.ts';
import type { SelectingService } from '../../operator/injection/injection-config.ts';
import type { Injected, Outcome } from '../../operator/injection/injection-outcome.ts';
import { readInjectionStatus } from '../../operator/injection/injection-status.ts';
import { diffJson } from '../../operator/injection/json-patch.ts';
import { mutate } from '../../operator/injection/mutate.ts';
import { allContainers, runningContainers } from '../../operator/injection/pod.ts';
import type { Container, Handler, Pod } from '../../operator/injection/pod.ts';
import { injectionConfig, podArbitrary, podOf, surroundings } from '../support/pods.ts';

const RUNS = { numRuns: 300 };

const service: fc.Arbitrary<SelectingService> = fc.record({
  name: fc.constant('api'),
  isHeadless: fc.boolean(),
  ports: fc.array(
    fc.record({ port: fc.constantFrom(80, 8080), targetPort: fc.constantFrom('http', 8080, 3000) }),
    { maxLength: 2 },
  ),
});

const scene = fc.record({
  pod: podArbitrary().map(podOf),
  serverMinor: fc.constantFrom(28, 29, 30, 32, 33, 36),
  services: fc.array(service, { maxLength: 2 }),
  isRestricted: fc.boolean(),
});
type Scene = typeof scene extends fc.Arbitrary<infer Value> ? Value : never;

function run({ pod, serverMinor, services, isRestricted }: Scene): Outcome {
  const namespaceLabels: Record<string, string> = isRestricted
    ? { 'pod-security.kubernetes.io/enforce': 'restricted' }
    : {};
  return mutate(
    pod,
    injectionConfig({ serverMinor, imagePullSecrets: ['ours'] }),
    surroundings({ services, namespaceLabels, seed: { kind: 'seed', text: 'H4sI' } }),
  );
}

/** Checks what holds of every injected pod; asserts that enough of them were injected to mean something. */
function everyInjected(check: (injected: Injected, scene: Scene) => void): void {
  let injected = 0;
  fc.assert(
    fc.property(scene, (one) => {
      const outcome = run(one);
      if (outcome.kind !== 'injected') return;
      injected += 1;
      check(outcome, one);
    }),
    RUNS,
  );
  assert.ok(injected > RUNS.numRuns / 5, `only ${injected} of ${RUNS.numRuns} were injected`);
}

function container(pod: Pod, name: string): Container {
  const found = allContainers(pod.spec).find((one) => one.name === name);
  assert.ok(found, `container ${name}`);
  return found;
}

function handlersOf({ lifecycle, ...rest }: Container): readonly (Handler | undefined)[] {
  const probes = [rest.readinessProbe, rest.livenessProbe, rest.startupProbe];
  return [...probes, lifecycle?.preStop, lifecycle?.postStart];
}

function actionOf(handler: Handler | undefined): { readonly port: number | string } | undefined {
  return handler?.httpGet ?? handler?.tcpSocket ?? handler?.grpc;
}

/** What the sidecar was told to check for the kubelet, by the path that the kubelet asks. */
function checksOf(pod: Pod): ReadonlyMap<string, number> {
  const sidecar = allContainers(pod.spec).find(({ name }) => name === inPod.sidecar);
  const env: unknown = sidecar === undefined ? [] : Reflect.get(sidecar, 'env');
  assert.ok(Array.isArray(env));
  const found = (env as { name: string; value?: string }[]).find(
    ({ name }) => name === 'WEIR_APP_PROBES',
  );
  const probes = found?.value === undefined ? [] : parseAppProbes(found.value);
  return new Map(probes.map((probe) => [appHealthPath(probe), probe.check.port]));
}

/** Where each handler of the container finally gets to: the number of an app's port, whatever stands between. */
function reached(pod: Pod, name: string): readonly unknown[] {
  const one = container(pod, name);
  const status = readInjectionStatus(pod.metadata);
  const moved = new Map((status?.probes ?? []).map(({ port, probe }) => [probe, port]));
  const checks = checksOf(pod);
  return handlersOf(one).map((handler) => {
    const action = actionOf(handler);
    if (action === undefined) return handler?.exec;
    if (action.port === status?.admin) return checks.get(handler?.httpGet?.path ?? '');
    const number = numberIn(one, action.port);
    return moved.get(Number(number)) ?? number;
  });
}

function numberIn({ ports = [] }: Container, asked: number | string): number | string {
  return ports.find(({ name }) => name === asked)?.containerPort ?? asked;
}

/** A container without what injection may change of it. */
function unchangeable(container: Container): unknown {
  const changeable = ['ports', 'readinessProbe', 'livenessProbe', 'startupProbe', 'lifecycle'];
  const kept = Object.entries(container).filter(([field]) => !changeable.includes(field));
  const ports = (container.ports ?? []).map(({ containerPort, hostPort, protocol }) => ({
    ...{ containerPort, hostPort, protocol },
  }));
  return { ...Object.fromEntries(kept), ports };
}

/** A probe that the sidecar does asks in another way; nothing else of the pod is taken away. */
function takesAway(op: string, path: string): boolean {
  return op === 'remove' && !/Probe\/(grpc|tcpSocket)$/.test(path);
}

describe('injection of generated pods', () => {
  it('gives the same for an injected pod as for what it was made from', () => {
    everyInjected(({ pod }, one) => {
      const again = run({ ...one, pod });

      assert.equal(again.kind, 'skipped');
      assert.equal(again.reason, 'AlreadyInjected');
    });
  });

  it('lets no port number, port name, container or volume collide', () => {
    everyInjected(({ pod }) => {
      const running = runningContainers(pod.spec);
      const numbers = running.flatMap(({ ports = [] }) => ports.map((port) => port.containerPort));
      const names = running.flatMap(({ ports = [] }) =>
        ports.flatMap(({ name }) => (name === undefined ? [] : [name])),
      );
      const containers = allContainers(pod.spec).map(({ name }) => name);
      const volumes = (pod.spec.volumes ?? []).map(({ name }) => name);

      const lists: readonly (readonly (string | number)[])[] = [
        numbers,
        names,
        containers,
        volumes,
      ];
      for (const list of lists) {
        assert.equal(new Set(list).size, list.length, list.join(' '));
      }
      assert.ok(names.every((name) => /^(?!.*--)[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/.test(name)));
    });
  });

  it('keeps every probe and hook on the number of the app that it asked before', () => {
    everyInjected(({ pod }, one) => {
      for (const { name } of runningContainers(one.pod.spec)) {
        assert.deepEqual(reached(pod, name), reached(one.pod, name));
      }
    });
  });

  it('never lets a probe pass through the sidecar', () => {
    everyInjected(({ pod, status }) => {
      if (status.mode === 'takeover') return;
      const taken = new Set(status.ports.map(({ port }) => port));
      const others = runningContainers(pod.spec).filter(({ name }) => name !== inPod.sidecar);
      for (const handler of others.flatMap(handlersOf)) {
        assert.ok(!taken.has(Number(actionOf(handler)?.port)), JSON.stringify(handler));
      }
    });
  });

  it('leaves the kubelet no probe of a taken port where the sidecar is to do them', () => {
    everyInjected(({ pod, status }, one) => {
      const isSidecar = one.pod.metadata.annotations?.[annotations.probes] === 'sidecar';
      const taken = new Set(status.ports.map(({ port }) => port));
      const others = runningContainers(pod.spec).filter(({ name }) => name !== inPod.sidecar);
      const probes = others.flatMap((each) => handlersOf(each).slice(0, 3));
      const ports = new Set(probes.map((probe) => actionOf(probe)?.port));

      assert.equal(checksOf(pod).size > 0, ports.has(status.admin));
      if (!isSidecar) assert.ok(!ports.has(status.admin));
      else assert.ok([...ports].every((port) => !taken.has(Number(port))));
    });
  });

  it('gives a patch that turns what was sent into what was made, and replaces no list', () => {
    everyInjected(({ pod: injected }, { pod }) => {
      const patch = diffJson(pod, injected);
      const patched: unknown = structuredClone(pod);
      const faults = applyPatch(patched, structuredClone([...patch]));

      assert.deepEqual(
        faults.filter((fault) => fault !== null),
        [],
      );
      assert.deepEqual(patched, structuredClone(injected));
      assert.deepEqual(
        patch.filter(({ op, path }) => takesAway(op, path) || /^\/spec\/[a-zA-Z]+$/.test(path)),
        patch.filter(({ op, path }) => op === 'add' && /^\/spec\/[a-zA-Z]+$/.test(path)),
      );
    });
  });

  it('leaves the containers of the app as they were, but for names, probes and the drain hook', () => {
    everyInjected(({ pod: injected }, { pod }) => {
      const own = new Set<string>([inPod.sidecar, inPod.redirectInit]);
      const kept = (list: readonly Container[] = []): readonly unknown[] =>
        list.filter(({ name }) => !own.has(name)).map(unchangeable);

      assert.deepEqual(kept(injected.spec.containers), kept(pod.spec.containers));
      assert.deepEqual(kept(injected.spec.initContainers), kept(pod.spec.initContainers));
    });
  });

  it('takes no privilege in takeover mode, and in redirect mode one, for one container', () => {
    everyInjected(({ pod, status }) => {
      const sidecar = container(pod, inPod.sidecar);
      const context: unknown = Reflect.get(sidecar, 'securityContext');
      assert.deepEqual(context, {
        runAsNonRoot: true,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      });
      const inits = (pod.spec.initContainers ?? []).map(({ name }) => name);
      assert.equal(inits.includes(inPod.redirectInit), status.mode === 'redirect');
    });
  });

  it('redirects nothing in a restricted namespace', () => {
    everyInjected(({ status }, { isRestricted }) => {
      assert.ok(!isRestricted || status.mode === 'takeover');
    });
  });

  it('listens once for each port of the app, on ports above the first of ours', () => {
    everyInjected(({ status }) => {
      const listeners = new Map(status.ports.map(({ port, listen }) => [listen, port]));
      assert.equal(new Set(listeners.values()).size, listeners.size);
      assert.ok([...listeners.keys()].every((listen) => listen >= firstPorts.firstListen));
    });
  });

  it('refuses in words that say something to do', () => {
    fc.assert(
      fc.property(scene, (one) => {
        const outcome = run(one);
        if (outcome.kind !== 'refused') return;
        assert.notEqual(outcome.reason, 'InvalidResult', outcome.message);
        assert.ok(outcome.message.length > 40 && outcome.message.length < 1_024, outcome.message);
      }),
      RUNS,
    );
  });

  it('gives a disabled pod back without a word', () => {
    fc.assert(
      fc.property(scene, (one) => {
        const { metadata } = one.pod;
        const said = { ...metadata.annotations, [annotations.inject]: 'disabled' };
        const outcome = run({
          ...one,
          pod: { ...one.pod, metadata: { ...metadata, annotations: said } },
        });
        assert.equal(outcome.kind === 'skipped' && outcome.reason, 'Disabled');
      }),
      { numRuns: 100 },
    );
  });
});
