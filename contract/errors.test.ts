import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorCatalogue, WeirError } from './errors.ts';

describe('an operating failure', () => {
  it('has the sentence of its code, its facts and its cause', () => {
    const cause = new Error('ECONNREFUSED');

    const error = new WeirError('STORE_UNREACHABLE', { node: 'a:1' }, { cause });

    assert.equal(error.message, errorCatalogue.STORE_UNREACHABLE);
    assert.deepEqual(
      [error.code, error.details, error.cause],
      ['STORE_UNREACHABLE', { node: 'a:1' }, cause],
    );
  });

  it('needs no facts', () => {
    assert.deepEqual(new WeirError('CONFIG_INVALID').details, {});
  });
});
