import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { APP_PROBES_LENGTH_MAX, type AppProbe } from '../../contract/app-probe.ts';
import { parseAppProbes } from '../../contract/app-probe-schema.ts';
import { injectionConfig, simplePod, surroundings } from '../../test/support/pods.ts';
import type { Injected, Outcome } from './injection-outcome.ts';
import { mutate } from './mutate.ts';
import { allContainers } from './pod.ts';
import type { Container, Pod } from './pod.ts';

function run(
  container: Readonly<Record<string, unknown>>,
  annotations: Readonly<Record<string, string>> = {},
): Outcome {
  const said = { 'weir.dev/probes': 'sidecar', ...annotations };
  return mutate(simplePod({ annotations: said, container }), injectionConfig(), surroundings());
}

function inject(...given: Parameters<typeof run>): Injected {
  const outcome = run(...given);
  assert.equal(outcome.kind, 'injected');
  return outcome;
}

function named(pod: Pod, name: string): Container {
  return allContainers(pod.spec).find((one) => one.name === name) ?? assert.fail(name);
}

/** As the sidecar reads them; undefined = it is told of none. */
function toldTo({ pod }: Injected): readonly AppProbe[] | undefined {
  const env = Reflect.get(named(pod, 'weir'), 'env') as { name: string; value?: string }[];
  const text = env.find(({ name }) => name === 'WEIR_APP_PROBES')?.value;
  return text === undefined ? undefined : parseAppProbes(text);
}

const REDIRECT = { 'weir.dev/mode': 'redirect' };
const PROBES = {
  readinessProbe: {
    ...{ timeoutSeconds: 3, periodSeconds: 7, failureThreshold: 2 },
    httpGet: {
      ...{ path: '/ready?a=$(B)', port: 'http', scheme: 'HTTPS' },
      httpHeaders: [{ name: 'Host', value: 'shop' }],
    },
  },
  livenessProbe: { grpc: { port: 8080, service: 'shop' } },
  startupProbe: { tcpSocket: { port: 8080 } },
};

describe('probes that the sidecar does', () => {
  for (const mode of ['takeover', 'redirect']) {
    it(`are asked of its own port, with all that says when and how often (${mode})`, () => {
      const { pod, status } = inject(PROBES, { 'weir.dev/mode': mode });

      const app = named(pod, 'app');
      assert.deepEqual(app.readinessProbe, {
        ...{ timeoutSeconds: 4, periodSeconds: 7, failureThreshold: 2 },
        httpGet: { path: '/app-health/app/readyz', port: status.admin },
      });
      assert.deepEqual(app.livenessProbe, {
        httpGet: { path: '/app-health/app/livez', port: status.admin },
        timeoutSeconds: 2,
      });
      assert.deepEqual(app.startupProbe?.httpGet?.path, '/app-health/app/startupz');
      assert.equal(app.startupProbe.tcpSocket, undefined);
      assert.equal(status.probes, undefined);
    });

    it(`are told to the sidecar as they were written (${mode})`, () => {
      const told = toldTo(inject(PROBES, { 'weir.dev/mode': mode }));

      assert.deepEqual(told, [
        {
          ...{ container: 'app', probe: 'livez', timeoutSeconds: 1 },
          check: { kind: 'grpc', port: 8080, service: 'shop' },
        },
        {
          ...{ container: 'app', probe: 'readyz', timeoutSeconds: 3 },
          check: {
            ...{ kind: 'http', port: 8080, path: '/ready?a=$(B)', scheme: 'HTTPS' },
            headers: [{ name: 'Host', value: 'shop' }],
          },
        },
        {
          ...{ container: 'app', probe: 'startupz', timeoutSeconds: 1 },
          check: { kind: 'tcp', port: 8080 },
        },
      ]);
    });
  }

  it('are none of other ports, other hosts and commands', () => {
    const others = {
      readinessProbe: { httpGet: { port: 9 } },
      livenessProbe: { exec: { command: ['true'] } },
      startupProbe: { tcpSocket: { port: 8080, host: 'example.com' } },
    };
    const injected = inject(others, REDIRECT);

    assert.equal(toldTo(injected), undefined);
    const { readinessProbe, livenessProbe, startupProbe } = named(injected.pod, 'app');
    assert.deepEqual({ readinessProbe, livenessProbe, startupProbe }, others);
  });

  it('leave hooks to the kubelet, on a way past the sidecar', () => {
    const lifecycle = { preStop: { httpGet: { path: '/bye', port: 'http' } } };
    const { pod, status } = inject({ ...PROBES, lifecycle }, REDIRECT);

    assert.deepEqual(status.probes, [{ port: 8080, probe: 15_300 }]);
    assert.equal(named(pod, 'app').lifecycle?.preStop?.httpGet?.port, 15_300);
  });

  it('have a time that the sidecar takes, whatever was written', () => {
    const timeout = (timeoutSeconds: number): number | undefined =>
      toldTo(inject({ readinessProbe: { timeoutSeconds, tcpSocket: { port: 8080 } } }))?.[0]
        ?.timeoutSeconds;

    assert.equal(timeout(0), 1);
    assert.equal(timeout(3_600), 3_600);
    assert.equal(timeout(3_601), 3_600);
  });

  it('are refused when they do not fit, and nothing else is', () => {
    const long = (length: number): Outcome =>
      run({ readinessProbe: { httpGet: { port: 8080, path: `/${'x'.repeat(length)}` } } });

    const outcome = long(APP_PROBES_LENGTH_MAX);
    assert.equal(outcome.kind === 'refused' && outcome.reason, 'InvalidAnnotation');
    assert.match(outcome.kind === 'refused' ? outcome.message : '', /weir\.dev\/probes.*kubelet/);
    assert.equal(long(APP_PROBES_LENGTH_MAX - 1_000).kind, 'injected');
  });

  it('are the kubelet’s where nobody asked for more', () => {
    const outcome = inject(PROBES, { 'weir.dev/probes': 'kubelet' });
    assert.equal(toldTo(outcome), undefined);
    assert.equal(run(PROBES, { 'weir.dev/probes': 'none' }).kind, 'refused');
  });
});
