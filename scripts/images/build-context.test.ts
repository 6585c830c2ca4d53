import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { allowedNames } from './build-context.ts';

describe('the build context', () => {
  it('is the names that .dockerignore lets through, test files left out', () => {
    const text = '# why\n*\n!package.json\n!cli\n**/*.test.ts\n';

    assert.deepEqual(allowedNames(text), ['package.json', 'cli']);
  });

  it('is refused where .dockerignore does not leave everything else out', () => {
    assert.throws(() => allowedNames('node_modules\n!cli\n'), /must begin with \*/);
  });
});
