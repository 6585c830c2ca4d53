import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { plainScalar } from './yaml-scalar.ts';

describe('a plain scalar', () => {
  // As go-yaml v2 resolves it, which kubectl reads files with.
  const cases: [string, (string | number | boolean | null)[][]][] = [
    [
      'is a boolean for every spelling of YAML 1.1',
      [
        ...['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'on', 'On', 'ON'].map((word) => [word, true]),
        ...['n', 'N', 'no', 'No', 'NO', 'false', 'off', 'Off', 'OFF'].map((word) => [word, false]),
      ],
    ],
    [
      'is a string when the case is mixed',
      [
        ['yEs', 'yEs'],
        ['oFF', 'oFF'],
        ['tRUE', 'tRUE'],
      ],
    ],
    [
      'is null when empty, a tilde or null',
      [
        ['', null],
        ['~', null],
        ['null', null],
        ['NULL', null],
      ],
    ],
    [
      'is a decimal integer',
      [
        ['0', 0],
        ['100', 100],
        ['-1', -1],
        ['+5', 5],
      ],
    ],
    [
      'is octal with a leading zero',
      [
        ['010', 8],
        ['-010', -8],
        ['00', 0],
        ['0777', 511],
      ],
    ],
    [
      'is hexadecimal, binary or octal with a prefix',
      [
        ['0x1F', 31],
        ['0b101', 5],
        ['0o17', 15],
        ['-0x10', -16],
      ],
    ],
    [
      'may hold underscores',
      [
        ['1_000', 1000],
        ['0x_ff', 255],
        ['1_0.5', 10.5],
      ],
    ],
    [
      'is a float',
      [
        ['100.0', 100],
        ['1.5', 1.5],
        ['.5', 0.5],
        ['1e2', 100],
        ['1.', 1],
        ['-2.5E-1', -0.25],
      ],
    ],
    [
      'is a float where digits with a leading zero are not octal',
      [
        ['08', 8],
        ['019', 19],
      ],
    ],
    [
      'is a string in base 60',
      [
        ['1:30', '1:30'],
        ['190:20:30', '190:20:30'],
      ],
    ],
    ['is a string when it is a date', [['2001-12-14', '2001-12-14']]],
    [
      'is a string when it is a sign or a dot',
      [
        ['+', '+'],
        ['-', '-'],
        ['.', '.'],
      ],
    ],
    [
      'is a string otherwise',
      [
        ['1h', '1h'],
        ['a', 'a'],
        ['0x', '0x'],
        ['0b2', '0b2'],
        ['1.2.3', '1.2.3'],
        ['_1', '_1'],
      ],
    ],
    ['is a string when it is longer than any number', [['1'.repeat(65), '1'.repeat(65)]]],
  ];

  for (const [claim, pairs] of cases) {
    it(claim, () => {
      for (const [source, value] of pairs)
        assert.deepEqual(plainScalar(String(source)), value, String(source));
    });
  }

  it('is a number that no field takes, where YAML has one that JSON has not', () => {
    assert.equal(plainScalar('.inf'), Infinity);
    assert.equal(plainScalar('-.Inf'), -Infinity);
    assert.equal(plainScalar('.NaN'), NaN);
    assert.equal(plainScalar('inf'), 'inf');
  });

  it('is a number of up to 64 characters', () => {
    assert.equal(plainScalar(`1${'0'.repeat(63)}`), 1e63);
  });
});
