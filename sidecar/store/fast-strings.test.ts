import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';
import { openStore } from './open-store.ts';
import { parseStoreSettings } from '../../contract/store-settings.ts';

/** Whether V8 may compile the methods of strings in line. */
function stringsAreFast(): boolean {
  setFlagsFromString('--allow-natives-syntax');
  try {
    return runInThisContext('%HasFastProperties(String.prototype)') === true;
  } finally {
    setFlagsFromString('--no-allow-natives-syntax');
  }
}

describe('a process with a Redis client', () => {
  it('compiles the methods of strings in line, although the client extends String', async () => {
    runInThisContext('(class extends String {})');
    const before = stringsAreFast();

    const store = openStore(parseStoreSettings({ url: 'redis://127.0.0.1:1' }));
    await store[Symbol.asyncDispose]();

    assert.equal(before, false, 'V8 does not mind any more: restoreFastStrings can go');
    assert.equal(stringsAreFast(), true);
  });
});
