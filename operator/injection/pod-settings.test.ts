import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injectionConfig, simplePod, surroundings } from '../../test/support/pods.ts';
import type { InjectionConfig } from './injection-config.ts';
import type { Outcome } from './injection-outcome.ts';
import { mutate } from './mutate.ts';
import { annotationBytes, ANNOTATIONS_BYTES_MAX } from './pod-check.ts';
import { IMAGE_LENGTH_MAX } from './pod-settings.ts';
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
});
