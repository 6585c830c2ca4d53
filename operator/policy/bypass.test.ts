import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  HTTP,
  podObject,
  serviceObject,
  type PodOptions,
} from '../../test/support/world-objects.ts';
import { bypassesOf, bypassRows, type BypassCause } from './bypass.ts';
import { describeBypass, findingsOf } from './bypass-finding.ts';
import { readPod } from './pod-record.ts';
import { readService, type ServiceObject } from './service-record.ts';

const ADMIN = { container: 'app', name: 'admin', port: 9090, listen: 15101 };

function causes(spec: ServiceObject['spec'], options: PodOptions = {}): readonly BypassCause[] {
  return found(spec, options).map(({ cause }) => cause);
}

function found(
  spec: ServiceObject['spec'],
  options: PodOptions = {},
): ReturnType<typeof bypassesOf> {
  const service = readService(serviceObject('api', spec));
  const pod = readPod(podObject('a', { mode: 'takeover', ...options }));
  return bypassesOf(pod, service === undefined ? [] : [service]);
}

const numeric = { ports: [{ port: 80, targetPort: 8080 }] };

const ROWS: readonly [string, ServiceObject['spec'], PodOptions, readonly BypassCause[]][] = [
  ['a named targetPort', { ports: [{ port: 80, targetPort: 'http' }] }, {}, []],
  ['a number as targetPort', numeric, {}, ['NumericTargetPort']],
  [
    'a number written as text',
    { ports: [{ port: 80, targetPort: '8080' }] },
    {},
    ['NumericTargetPort'],
  ],
  ['no targetPort', { ports: [{ port: 8080 }] }, {}, ['NoTargetPort']],
  ['no targetPort, of another port than the app has', { ports: [{ port: 80 }] }, {}, []],
  [
    'two ports, one by number',
    {
      ports: [
        { name: 'a', port: 80, targetPort: 'http' },
        { name: 'b', port: 81, targetPort: 8080 },
      ],
    },
    {},
    ['NumericTargetPort'],
  ],
  [
    'the name the webhook gave the app',
    { ports: [{ port: 80, targetPort: 'app-http' }] },
    {},
    ['RenamedTargetPort'],
  ],
  ['a name that no container port has', { ports: [{ port: 80, targetPort: 'web' }] }, {}, []],
  ['the sidecar by number', { ports: [{ port: 80, targetPort: 15100 }] }, {}, []],
  ['a number over UDP', { ports: [{ port: 80, targetPort: 8080, protocol: 'UDP' }] }, {}, []],
  ['no address (headless)', { clusterIP: 'None', ports: [] }, {}, ['Headless']],
  ['no selector', { selector: {}, ...numeric }, {}, []],
  ['a number, in redirect mode', numeric, { mode: 'redirect' }, []],
  ['no address, in redirect mode', { clusterIP: 'None' }, { mode: 'redirect' }, []],
  [
    'a host port beside it',
    {},
    { ports: [{ name: 'app-http', containerPort: 8080, hostPort: 80 }] },
    ['HostPort'],
  ],
  [
    'a host port beside it, in redirect mode',
    {},
    { mode: 'redirect', ports: [{ name: 'http', containerPort: 8080, hostPort: 80 }] },
    [],
  ],
  [
    'a host port of a port that is not taken',
    {},
    { ports: [{ name: 'metrics', containerPort: 9100, hostPort: 9100 }] },
    [],
  ],
  [
    'a container port without a name',
    { ports: [{ port: 81, targetPort: 8081 }] },
    { ports: [{ containerPort: 8081 }] },
    ['UnnamedPort'],
  ],
  [
    'a port without a name that was left out by annotation',
    { ports: [{ port: 81, targetPort: 8081 }] },
    { ports: [{ containerPort: 8081 }], annotations: { 'weir.dev/ports': 'http' } },
    [],
  ],
  [
    'a named port that is not taken',
    { ports: [{ port: 9100, targetPort: 'metrics' }] },
    { ports: [{ name: 'metrics', containerPort: 9100 }] },
    [],
  ],
];

describe('a way around the sidecar through a Service with', () => {
  for (const [name, spec, options, expected] of ROWS) {
    it(`${name}: ${expected.join(', ') || 'none'}`, () => {
      assert.deepEqual(causes(spec, options), expected);
    });
  }

  it('none for a pod without sidecar', () => {
    const service = readService(serviceObject('api', numeric)) ?? assert.fail();

    assert.deepEqual(bypassesOf(readPod(podObject('bare')), [service]), []);
  });

  it('every cause that the table of the docs names', () => {
    const inTable = new Set(bypassRows.flatMap(({ cause }) => cause ?? []));
    const tried = new Set(ROWS.flatMap(([, , , expected]) => expected));

    assert.deepEqual([...inTable].toSorted(), [...tried].toSorted());
  });
});

describe('what is said of a bypass', () => {
  it('names the Service, its port, the field and what to write there', () => {
    const [bypass] = found({ ports: [{ name: 'web', port: 80, targetPort: 8080 }] });

    assert.equal(
      bypass && describeBypass(bypass),
      'Service api, port web, reaches the app past the sidecar: in spec.ports[0].targetPort write targetPort: http',
    );
  });

  it('names no port of a headless Service, and no field: its pods are to change', () => {
    const [bypass] = found({ clusterIP: 'None', ports: [] });

    assert.match(
      bypass ? describeBypass(bypass) : '',
      /^Service api reaches the app past the sidecar: a headless Service gives clients the addresses of pods/,
    );
  });

  it('names the host port where no Service is in it, after what Services do', () => {
    const ports = [{ name: 'app-http', containerPort: 8080, hostPort: 80 }];
    const pod = readPod(podObject('a', { mode: 'takeover', ports }));
    const bypasses = found(numeric, { ports });

    const findings = findingsOf([{ pod, match: { missing: [] }, bypasses }]);

    assert.deepEqual(findings.map(describeBypass), [
      'host port 80 reaches the app past the sidecar: remove hostPort, or annotate the pods with weir.dev/mode: redirect',
      'Service api, port 80, reaches the app past the sidecar: in spec.ports[0].targetPort write targetPort: http',
    ]);
  });

  it('asks for a name first where the port that was taken has none', () => {
    const [bypass] = found(numeric, { taken: [{ container: 'app', port: 8080, listen: 15100 }] });

    assert.match(bypass?.advice ?? '', /^name the container port, and write that name$/);
  });

  it('is said once for all pods, and not where a policy is about other ports', () => {
    const bypasses = found(numeric, { taken: [HTTP, ADMIN] });
    const [b, a, c] = ['b', 'a', 'c'].map((name) => readPod(podObject(name)));
    assert.ok(a && b && c);

    const findings = findingsOf([
      { pod: b, match: { missing: [] }, bypasses },
      { pod: a, match: { missing: [], ports: [8080] }, bypasses },
      { pod: c, match: { missing: [], ports: [9090] }, bypasses },
    ]);

    assert.deepEqual(
      findings.map(({ pods }) => pods),
      [['a', 'b']],
    );
  });
});
