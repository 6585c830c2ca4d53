import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isQualifiedName } from './label-selector.ts';

describe('a label key', () => {
  const dns = `${'a'.repeat(63)}.`.repeat(3);

  it('is a name with or without a DNS subdomain', () => {
    const keys = [
      'a',
      'app.kubernetes.io/name',
      'A_b-c.d',
      'x'.repeat(63),
      `${dns}${'a'.repeat(61)}/x`,
    ];

    for (const key of keys) assert(isQualifiedName(key), key);
  });

  it('is nothing else', () => {
    const keys = [
      '',
      '-a',
      'a-',
      'a b',
      '/a',
      'a/',
      'a/b/c',
      'A/b',
      'a_b/c',
      'x'.repeat(64),
      `${dns}${'a'.repeat(62)}/x`,
      '__proto__',
    ];

    for (const key of keys) assert(!isQualifiedName(key), key);
  });
});
