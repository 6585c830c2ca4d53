import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectionConfig, simplePod, surroundings } from '../../test/support/pods.ts';
import type { InjectionConfig } from './injection-config.ts';
import type { Outcome } from './injection-outcome.ts';
import { mutate } from './mutate.ts';
import { annotationBytes, ANNOTATIONS_BYTES_MAX } from './pod-check.ts';
import { IMAGE_LENGTH_MAX } from './image-reference.ts';
import { allContainers, readPod } from './pod.ts';

type Annotations = Readonly<Record<string, string>>;

function run(annotations: Annotations, config: Partial<InjectionConfig> = {}): Outcome {
  return mutate(simplePod({ annotations }), injectionConfig(config), surroundings());
}

function fieldsOf(outcome: Outcome, field: string): readonly unknown[] {
  assert.equal(outcome.kind, 'injected');
  const ours = allContainers(outcome.pod.spec).filter(({ name }) => name.startsWith('weir'));
  return ours.map((container): unknown => Reflect.get(container, field));
}

/** Of the sidecar, in their order. */
function tlsVariablesOf(outcome: Outcome): readonly { readonly name: string }[] {
  const [environment] = fieldsOf(outcome, 'env') as [readonly { readonly name: string }[]];
  return environment.filter(({ name }) => name.startsWith('WEIR_TLS_'));
}

function protocolsOf(outcome: Outcome): readonly unknown[] {
  const environments = fieldsOf(outcome, 'env') as readonly (
    { name: string; value?: unknown }[] | undefined
  )[];
  return environments
    .flatMap((environment) => environment ?? [])
    .filter(({ name }) => name === 'WEIR_UPSTREAM_PROTOCOL')
    .map(({ value }) => value);
}

describe('the image of the sidecar', () => {
  it('is the one that the pod names', () => {
    const image = 'registry.test:5000/weir@sha256:00';

    assert.deepEqual(fieldsOf(run({ 'weir.dev/image': image }), 'image'), [image]);
  });

  it('is refused where it is no image or too long, and taken at the bound', () => {
    const [longest, tooLong] = [IMAGE_LENGTH_MAX, IMAGE_LENGTH_MAX + 1].map((n) => 'x'.repeat(n));

    const kinds = ['a b', '-a', tooLong, longest].map(
      (image = '') => run({ 'weir.dev/image': image }).kind,
    );

    assert.deepEqual(kinds, ['refused', 'refused', 'refused', 'injected']);
  });

  it('is pulled as the operator was told, that of the rules too', () => {
    const redirect = { 'weir.dev/mode': 'redirect' };

    assert.deepEqual(fieldsOf(run(redirect, { imagePullPolicy: 'Always' }), 'imagePullPolicy'), [
      'Always',
      'Always',
    ]);
    assert.deepEqual(fieldsOf(run(redirect), 'imagePullPolicy'), [undefined, undefined]);
  });
});

describe('an amount', () => {
  it('is more than nothing', () => {
    const kinds = ['0', '0m', '1m'].map((amount) => run({ 'weir.dev/cpu-request': amount }).kind);

    assert.deepEqual(kinds, ['refused', 'refused', 'injected']);
  });

  it('is at most its limit', () => {
    const kindOf = (request: string): string =>
      run({ 'weir.dev/memory-request': request, 'weir.dev/memory-limit': '1Gi' }).kind;

    assert.deepEqual([kindOf('1024Mi'), kindOf('1025Mi')], ['injected', 'refused']);
  });
});

describe('TLS for the clients of a pod', () => {
  it('comes from a Secret, of which the sidecar alone is given what it needs', () => {
    const outcome = run({ 'weir.dev/tls-secret': 'api-tls', 'weir.dev/tls-client-ca': 'ca.crt' });

    assert.equal(outcome.kind, 'injected');
    const { spec } = outcome.pod;
    const volume = spec.volumes?.find(({ name }) => name === 'weir-tls');
    assert.deepEqual(volume, {
      name: 'weir-tls',
      secret: {
        secretName: 'api-tls',
        items: [
          { key: 'tls.crt', path: 'tls.crt' },
          { key: 'tls.key', path: 'tls.key' },
          { key: 'ca.crt', path: 'client-ca.crt' },
        ],
      },
    });
    const mounts = allContainers(spec).flatMap(({ name, volumeMounts = [] }) =>
      volumeMounts.filter((mount) => mount.name === 'weir-tls').map((mount) => ({ name, mount })),
    );
    const mountPath = '/var/run/secrets/weir.dev/tls';
    assert.deepEqual(mounts, [
      { name: 'weir', mount: { name: 'weir-tls', mountPath, readOnly: true } },
    ]);
    const variables = tlsVariablesOf(outcome);
    assert.deepEqual(variables, [
      { name: 'WEIR_TLS_CERT', value: `${mountPath}/tls.crt` },
      { name: 'WEIR_TLS_KEY', value: `${mountPath}/tls.key` },
      { name: 'WEIR_TLS_CLIENT_CA', value: `${mountPath}/client-ca.crt` },
    ]);
    assert.deepEqual(protocolsOf(outcome), ['auto']);
  });

  for (const [name, protocol] of [
    ['http', 'auto'],
    ['http-api', 'auto'],
    ['h2c', 'h2'],
    ['grpc', 'h2'],
    ['grpc-api', 'h2'],
    ['grpc-web', 'auto'],
    ['http2', 'h2'],
    ['grpcweb', 'auto'],
  ]) {
    it(`offers clients of a port named ${name}: ${protocol}`, () => {
      const ports = [{ name, containerPort: 8080 }];
      const annotations = { 'weir.dev/tls-secret': 'api-tls' };
      const pod = simplePod({ annotations, container: { ports } });

      assert.deepEqual(protocolsOf(mutate(pod, injectionConfig(), surroundings())), [protocol]);
    });
  }

  it('asks clients for no certificate unless the pod says whose, whatever the Secret holds', () => {
    const variables = tlsVariablesOf(run({ 'weir.dev/tls-secret': 'api-tls' }));

    assert.deepEqual(
      variables.map(({ name }) => name),
      ['WEIR_TLS_CERT', 'WEIR_TLS_KEY'],
    );
  });

  it('is not there for a pod that does not ask', () => {
    const outcome = run({});

    assert.deepEqual(tlsVariablesOf(outcome), []);
    assert.doesNotMatch(JSON.stringify(outcome), /weir-tls/);
  });

  it('offers both versions on a port that has a name of each', () => {
    const two = (...names: readonly string[]): Outcome => {
      const ports = names.map((name) => ({ name, containerPort: 8080 }));
      const annotations = { 'weir.dev/tls-secret': 'api-tls', 'weir.dev/mode': 'redirect' };
      return mutate(
        simplePod({ annotations, container: { ports } }),
        injectionConfig(),
        surroundings(),
      );
    };

    assert.deepEqual(
      [two('http', 'grpc'), two('grpc', 'http'), two('grpc', 'grpc-api')].flatMap(protocolsOf),
      ['auto', 'auto', 'h2'],
    );
  });

  it('needs the name of its volume, of a pod that asks for it alone', () => {
    const spec = { volumes: [{ name: 'weir-tls', emptyDir: {} }] };
    const outcomeOf = (annotations: Annotations): Outcome =>
      mutate(simplePod({ annotations, spec }), injectionConfig(), surroundings());

    const asking = outcomeOf({ 'weir.dev/tls-secret': 'api-tls' });

    assert.equal(outcomeOf({}).kind, 'injected');
    assert.equal(asking.kind === 'refused' && asking.reason, 'NameTaken');
  });

  it('is refused where clients are to show certificates and there is none to show them', () => {
    const outcome = run({ 'weir.dev/tls-client-ca': 'ca.crt' });

    assert.equal(outcome.kind, 'refused');
    assert.equal(
      outcome.message,
      'metadata.annotations[weir.dev/tls-secret]: got nothing; expected the Secret that has the key of weir.dev/tls-client-ca',
    );
  });
});

describe('a pod that injection would make invalid', () => {
  it('is left as it is, and told the rule', () => {
    const room = ANNOTATIONS_BYTES_MAX - annotationBytes({ 'weir.dev/inject': 'enabled', a: '' });

    const outcome = run({ a: 'x'.repeat(room) });

    assert.equal(outcome.kind === 'refused' && outcome.reason, 'InvalidResult');
  });
});

describe('a pod that cannot be read', () => {
  it('is told by the field that is wrong, or as a whole', () => {
    const problems = ['text', { metadata: {}, spec: { containers: 'none' } }].map((value) => {
      const read = readPod(value);
      return read.kind === 'unreadable' ? read.problem.split(':')[0] : read.kind;
    });

    assert.deepEqual(problems, ['the pod', 'spec.containers']);
  });

  it('is told what was written and what would be right, for a few fields at once', () => {
    const problemOf = (metadata: object, spec: object = { containers: [] }): string => {
      const read = readPod({ metadata, spec });
      return read.kind === 'unreadable' ? read.problem : read.kind;
    };
    const annotations = { 'weir.dev/workers': 1, 'weir.dev/native': true, 'weir.dev/mode': {} };

    assert.deepEqual(problemOf({ annotations }).split('; metadata'), [
      'metadata.annotations[weir.dev/workers]: got 1; expected a string: put it in quotes, "1"',
      '.annotations[weir.dev/native]: got true; expected a string: put it in quotes, "true"',
      '.annotations[weir.dev/mode]: got an object; expected a string',
    ]);
    assert.match(problemOf({ labels: [] }), /^metadata\.labels: got a list; expected an object$/);
    assert.match(
      problemOf({}, { containers: [{ ports: [{ containerPort: 'http' }] }] }),
      /^spec\.containers\[0\]\.name: got nothing; expected a string; spec\.containers\[0\]\.ports\[0\]\.containerPort: got "http"; expected a whole number$/,
    );
    const probe = { httpGet: { port: false }, periodSeconds: 1.5 };
    assert.match(
      problemOf({}, { containers: [{ name: 'a', livenessProbe: probe }], hostNetwork: 'yes' }),
      /httpGet\.port: got false; expected a number or a string; .*periodSeconds: got 1\.5; expected a whole number; .*hostNetwork: got "yes"; expected true or false$/,
    );
  });

  it('is told that a number is too large to be whole', () => {
    const read = readPod({
      metadata: {},
      spec: { containers: [], terminationGracePeriodSeconds: 2 ** 60 },
    });

    assert.match(
      read.kind === 'unreadable' ? read.problem : '',
      /: got 1152921504606847000; expected a whole number$/,
    );
  });

  it('is told of four fields at most', () => {
    const labels = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, 1]));
    const read = readPod({ metadata: { labels }, spec: { containers: [] } });

    assert.equal(read.kind === 'unreadable' && read.problem.match(/expected/g)?.length, 4);
  });
});
