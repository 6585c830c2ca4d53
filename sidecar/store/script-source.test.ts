import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readScript, scriptDigest } from './script-source.ts';

test('the script is the file beside it, and has the digest Redis gives it', () => {
  assert.match(readScript(), /^-- Many decisions/);
  // What SCRIPT LOAD answers for this text.
  assert.equal(scriptDigest('return 1'), 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db');
});
