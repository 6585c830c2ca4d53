import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatPath, formatPlace, NO_PLACE, problemAt } from './problem.ts';

describe('a path of fields', () => {
  const cases: [string, (string | number)[], string][] = [
    ['is empty for the document', [], ''],
    ['joins names by dots', ['spec', 'mode'], 'spec.mode'],
    ['puts indexes in brackets', ['spec', 'rules', 0, 'buckets', 12], 'spec.rules[0].buckets[12]'],
    ['quotes names that are no identifiers', ['matchLabels', 'a.b/c'], 'matchLabels["a.b/c"]'],
    ['begins with a quoted name too', ['a b', 'c'], '["a b"].c'],
    ['keeps dashes', ['x-y'], 'x-y'],
  ];

  for (const [claim, path, text] of cases) {
    it(claim, () => {
      assert.equal(formatPath(path), text);
    });
  }
});

describe('a problem', () => {
  it('carries its finding, its place and the text of its path', () => {
    const finding = {
      segments: ['spec', 'rules', 1],
      message: 'is wrong',
      advice: 'make it right',
      reason: 'value',
    } as const;

    assert.deepEqual(problemAt({ ...NO_PLACE, file: 'p.yaml', line: 3, column: 5 }, finding), {
      ...finding,
      file: 'p.yaml',
      document: 0,
      line: 3,
      column: 5,
      path: 'spec.rules[1]',
    });
  });
});

describe('a place', () => {
  it('is a file with line and column, or the file alone', () => {
    const file = 'shop.yaml';

    assert.equal(formatPlace({ file, document: 1, line: 3, column: 12 }), 'shop.yaml:3:12');
    assert.equal(formatPlace({ ...NO_PLACE, file }), 'shop.yaml');
  });
});
