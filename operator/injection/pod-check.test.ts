import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podOf, simplePod } from '../../test/support/pods.ts';
import { annotationBytes, ANNOTATIONS_BYTES_MAX, brokenRules } from './pod-check.ts';

type Container = Readonly<Record<string, unknown>>;

function broken(container: Container, more: Readonly<Record<string, unknown>> = {}): string {
  return brokenRules(simplePod({ container, spec: more })).join('; ');
}

describe('a pod that the API server would refuse', () => {
  const rows: readonly (readonly [string, Container, string])[] = [
    ['a name that is none', { name: 'App' }, 'container name "App" is not a DNS label'],
    [
      'a port name that is there twice',
      {
        ports: [
          { name: 'a', containerPort: 1 },
          { name: 'a', containerPort: 2 },
        ],
      },
      'port name a of container app is there twice',
    ],
    [
      'a number that is listened on twice',
      { ports: [{ containerPort: 1 }, { containerPort: 1, protocol: 'TCP' }] },
      'port 1/TCP is there twice',
    ],
    [
      'a number below the lowest',
      { ports: [{ containerPort: 0 }] },
      'port 0 is not from 1 to 65535',
    ],
    [
      'a number above the highest',
      { ports: [{ containerPort: 65_536 }] },
      'port 65536 is not from 1 to 65535',
    ],
    [
      'a port name without a letter',
      { ports: [{ name: '80', containerPort: 80 }] },
      'port name 80 is not valid',
    ],
    [
      'a port name too long',
      { ports: [{ name: 'x'.repeat(16), containerPort: 80 }] },
      `port name ${'x'.repeat(16)} is not valid`,
    ],
    [
      'a volume that is not there',
      { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
      'container app mounts volume data, which is not there',
    ],
    [
      'a request above its limit',
      { resources: { requests: { cpu: '2', memory: '1Mi' }, limits: { cpu: '1' } } },
      'container app requests more cpu than its limit',
    ],
  ];
  for (const [name, container, rule] of rows) {
    it(`is known by ${name}`, () => {
      assert.equal(broken(container), rule);
    });
  }

  it('is known by two containers, volumes or mount paths of one name', () => {
    const mount = { name: 'data', mountPath: '/data' };
    const app = { name: 'app', image: 'a', volumeMounts: [mount, mount] };
    const volumes = [{ name: 'data' }, { name: 'data' }];
    const pod = podOf({ metadata: {}, spec: { containers: [app, app], volumes } });

    assert.deepEqual(
      new Set(brokenRules(pod)),
      new Set([
        'container app is there twice',
        'volume data is there twice',
        'mount path /data of app is there twice',
      ]),
    );
  });

  it('is known by annotations over the bound, and not at it', () => {
    const sized = (bytes: number): readonly string[] =>
      brokenRules(simplePod({ annotations: { a: 'x'.repeat(bytes) } }));
    const room = ANNOTATIONS_BYTES_MAX - annotationBytes({ 'weir.dev/inject': 'enabled', a: '' });

    assert.deepEqual(sized(room), []);
    assert.deepEqual(sized(room + 1), [
      `the annotations take more than ${ANNOTATIONS_BYTES_MAX} bytes`,
    ]);
  });

  it('is not one that uses all it may', () => {
    const name = `${'x'.repeat(14)}y`;
    const ports = [
      { name, containerPort: 65_535 },
      { containerPort: 53, protocol: 'UDP' },
      { name: 'dns', containerPort: 53, protocol: 'TCP' },
    ];
    const resources = { requests: { cpu: '1' }, limits: { cpu: '1' } };
    const spec = { containers: [{ name: 'app', image: 'a', ports, resources }] };

    assert.deepEqual(brokenRules(podOf({ metadata: {}, spec })), []);
  });
});
