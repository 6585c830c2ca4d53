import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ADMISSION_LABEL, annotations } from '../../contract/names.ts';
import { podObject } from '../../test/support/world-objects.ts';
import { readPod } from './pod-record.ts';
import { wishOf } from './opt-in.ts';

interface Said {
  readonly annotation?: string;
  readonly label?: string;
  readonly namespace?: string;
  readonly mode?: 'takeover';
}

function labelled(value: string | undefined): Readonly<Record<string, string>> {
  return value === undefined ? {} : { [annotations.inject]: value };
}

function wish({ annotation, label, namespace, mode }: Said, others = {}): string {
  const record = readPod(
    podObject('api', {
      annotations: labelled(annotation),
      labels: { app: 'api', ...labelled(label) },
      ...(mode === undefined ? {} : { mode }),
    }),
  );
  return wishOf(record, { ...labelled(namespace), ...others }).kind;
}

describe('the wish of a pod for a sidecar', () => {
  it('is its annotation, before its label, before the label of its namespace', () => {
    const all = { annotation: 'required', label: 'disabled', namespace: 'disabled' };
    assert.equal(wish(all), 'asked');
    assert.equal(wish({ ...all, annotation: 'disabled' }), 'none');
    assert.equal(wish({ label: 'enabled', namespace: 'disabled' }), 'asked');
    assert.equal(wish({ label: 'disabled', namespace: 'enabled' }), 'none');
    assert.equal(wish({ namespace: 'enabled' }), 'asked');
    assert.equal(wish({}), 'none');
  });

  it('is that of the namespace where the pod says it with an empty text', () => {
    assert.equal(wish({ annotation: '', namespace: 'enabled' }), 'asked');
    assert.equal(wish({ label: '', namespace: 'enabled' }), 'asked');
    // The annotation is there, so the label does not count: the webhook's conditions read it so.
    assert.equal(wish({ annotation: '', label: 'enabled' }), 'none');
    assert.equal(wish({ annotation: '', label: 'disabled', namespace: 'required' }), 'asked');
    assert.equal(wish({ annotation: '', namespace: '' }), 'none');
  });

  it('is invalid with any other text', () => {
    assert.equal(wish({ annotation: 'yes' }), 'invalid');
    assert.equal(wish({ namespace: 'true' }), 'invalid');
  });

  it('is none where the webhook is shut out, unless the pod has a sidecar', () => {
    const shut = { [ADMISSION_LABEL]: 'disabled' };
    assert.equal(wish({ annotation: 'required' }, shut), 'none');
    assert.equal(wish({ annotation: 'disabled', mode: 'takeover' }, shut), 'asked');
  });
});
