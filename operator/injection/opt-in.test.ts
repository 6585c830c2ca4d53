import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { optInOf } from './opt-in.ts';

const inject = (value: string): Readonly<Record<string, string>> => ({ 'weir.dev/inject': value });

describe('what a pod asks for', () => {
  it('is what the annotation says, else the label, else the label of the namespace', () => {
    const all = optInOf({ annotations: inject('required'), labels: inject('disabled') }, {});
    const label = optInOf({ labels: inject('disabled') }, inject('enabled'));
    const namespace = optInOf({}, inject('enabled'));

    assert.deepEqual(
      [all, label, namespace, optInOf({}, {})].map(({ kind }) => kind),
      ['required', 'disabled', 'enabled', 'unsaid'],
    );
  });

  it('is left to the namespace by an empty value', () => {
    assert.equal(optInOf({ annotations: inject('') }, inject('enabled')).kind, 'enabled');
    assert.equal(optInOf({ annotations: inject('') }, {}).kind, 'unsaid');
  });

  it('names the place of a value that is none of ours', () => {
    const places = [
      optInOf({ annotations: inject('yes') }, {}),
      optInOf({ labels: inject('yes') }, {}),
      optInOf({}, inject('yes')),
    ];

    assert.deepEqual(
      places,
      [
        'metadata.annotations[weir.dev/inject]',
        'metadata.labels[weir.dev/inject]',
        'metadata.labels[weir.dev/inject] of the namespace',
      ].map((where) => ({ kind: 'invalid', where, given: 'yes' })),
    );
  });
});
