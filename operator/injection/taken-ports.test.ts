import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectionConfig, podOf, simplePod, surroundings } from '../../test/support/pods.ts';
import type { Outcome } from './injection-outcome.ts';
import { mutate } from './mutate.ts';
import type { Pod } from './pod.ts';
import { PORTS_MAX } from './pod-settings.ts';

function run(pod: Pod): Outcome {
  return mutate(pod, injectionConfig(), surroundings());
}

function messageOf(pod: Pod): string {
  const outcome = run(pod);
  return outcome.kind === 'injected'
    ? assert.fail('injected')
    : `${outcome.reason}: ${outcome.message}`;
}

function portsOf(pod: Pod): readonly unknown[] {
  const outcome = run(pod);
  return outcome.kind === 'injected' ? outcome.status.ports : assert.fail(messageOf(pod));
}

const withPorts = (choice: string, ports: readonly object[]): Pod =>
  simplePod({ annotations: { 'weir.dev/ports': choice }, container: { ports } });

describe('ports that a pod names itself', () => {
  const many = Array.from({ length: PORTS_MAX + 1 }, (_, index) => ({
    name: `p${index}`,
    containerPort: 1_000 + index,
  }));
  const names = many.map(({ name }) => name);

  it('are taken up to the bound, and refused beyond it', () => {
    assert.equal(portsOf(withPorts(names.slice(1).join(','), many)).length, PORTS_MAX);
  });

  it('are refused where a few names mean more of them than can be taken', () => {
    const twin = (offset: number): object => ({
      name: `app-${offset}`,
      image: 'registry.test/app:1',
      ports: many.slice(1).map(({ name, containerPort }) => ({
        name,
        containerPort: containerPort + offset,
      })),
    });
    const annotations = { 'weir.dev/ports': names.slice(1).join(',') };
    const pod = simplePod({ annotations, spec: { containers: [twin(0), twin(100)] } });

    assert.match(messageOf(pod), /^TooManyPorts: /);
  });

  it('are taken once, however often they are named', () => {
    const ports = [{ name: 'web', containerPort: 80 }];

    assert.equal(portsOf(withPorts('web,80', ports)).length, 1);
  });

  it('that are not there are told with what is, by name or number', () => {
    const ports = [{ name: 'web', containerPort: 80 }, { containerPort: 81 }];

    assert.match(
      messageOf(withPorts('http', ports)),
      /^NoPort: .*names http, .*\(there are web, 81\)$/,
    );
    assert.match(messageOf(withPorts('http', [])), /\(there are none\)$/);
  });

  it('may be numbers that nobody declared, also of a pod that the API server will refuse', () => {
    const empty = podOf({
      metadata: { annotations: { 'weir.dev/inject': 'enabled', 'weir.dev/ports': '8080' } },
      spec: { containers: [] },
    });

    assert.notEqual(run(empty).kind, 'skipped');
  });
});

describe('ports among which nobody chose', () => {
  it('are listed by name, or number where they have none', () => {
    const ports = [{ name: 'web', containerPort: 80 }, { containerPort: 81 }];

    assert.match(
      messageOf(simplePod({ container: { ports } })),
      /^AmbiguousPort: .*\(there are web, 81\)$/,
    );
  });

  it('are refused where more look like HTTP than can be taken', () => {
    const http = (count: number): Pod =>
      simplePod({
        container: {
          ports: Array.from({ length: count }, (_, index) => ({
            name: `http-${index}`,
            containerPort: 1_000 + index,
          })),
        },
      });

    assert.equal(portsOf(http(PORTS_MAX)).length, PORTS_MAX);
    assert.match(messageOf(http(PORTS_MAX + 1)), /^TooManyPorts: /);
  });
});

describe('the name the port of an app is given', () => {
  it('is another one when the first is taken', () => {
    const ports = [
      { name: 'http', containerPort: 80 },
      { name: 'app-http', containerPort: 81 },
      { name: 'app-http-2', containerPort: 82 },
    ];

    const [taken] = portsOf(simplePod({ container: { ports } }));

    assert.deepEqual(taken, {
      ...{ container: 'app', name: 'http', port: 80, listen: 15_100, renamed: 'app-http-3' },
    });
  });
});
