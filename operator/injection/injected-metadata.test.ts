import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { simplePod } from '../../test/support/pods.ts';
import { podTitle } from './injected-metadata.ts';

describe('the title of a pod', () => {
  it('is its name, else what its name will begin with, else that it is one', () => {
    const { spec } = simplePod();

    const titles = [{ name: 'api-1', generateName: 'api-' }, { generateName: 'api-' }, {}].map(
      (metadata) => podTitle({ metadata, spec }),
    );

    assert.deepEqual(titles, ['api-1', 'api-…', 'pod']);
  });
});
