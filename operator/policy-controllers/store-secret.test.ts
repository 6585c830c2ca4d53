import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StoreSecret, type SecretObject } from './store-secret.ts';

const NAME = 'weir-system/weir-store';

function secret(url: string): SecretObject {
  return { metadata: { name: 'weir-store' }, data: { url: Buffer.from(url).toString('base64') } };
}

function open(name: string | undefined = NAME): { store: StoreSecret; changes: () => number } {
  let changes = 0;
  const store = new StoreSecret({ name, onChange: () => (changes += 1) });
  return { store, changes: () => changes };
}

describe('the Secret of the store', () => {
  it('that nobody named is none, whatever comes', () => {
    let changes = 0;
    const store = new StoreSecret({ name: undefined, onChange: () => (changes += 1) });

    store.apply(secret('redis://h'));

    assert.deepEqual([store.state, store.settings, changes], [{ kind: 'none' }, undefined, 0]);
  });

  it('gives settings, and the same object while they are the same', () => {
    const { store, changes } = open();
    store.apply(secret('redis://h'));
    const first = store.settings;

    store.apply(secret('redis://h'));
    const same = store.settings === first;
    store.apply(secret('redis://other'));

    assert.deepEqual([same, store.settings?.url, changes()], [true, 'redis://other', 2]);
  });

  it('keeps its last good settings while it is faulty or gone, and says so', () => {
    const { store } = open();
    store.apply(secret('redis://h'));

    store.apply(secret('nonsense'));
    const faulty = store.state;
    store.apply(undefined);

    assert.equal(faulty.kind === 'faulty' && faulty.isKept, true);
    assert.deepEqual(store.state, {
      kind: 'faulty',
      message: `Secret ${NAME} does not exist`,
      isKept: true,
    });
    assert.equal(store.settings?.url, 'redis://h');
  });

  it('that never was good has no settings', () => {
    const { store } = open();

    store.apply(undefined);

    assert.equal(store.state.kind === 'faulty' && store.state.isKept, false);
    assert.equal(store.settings, undefined);
  });

  it('that no watch ever told of does not exist, once all that there is was told', () => {
    const [missing, present] = [open(), open()];
    present.store.apply(secret('redis://h'));

    missing.store.synced();
    present.store.synced();

    assert.deepEqual(missing.store.state, {
      kind: 'faulty',
      message: `Secret ${NAME} does not exist`,
      isKept: false,
    });
    assert.deepEqual([present.store.state, present.changes()], [{ kind: 'configured' }, 1]);
  });
});
