import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import type { PushedConfig } from '../policy/pushed-config.ts';
import { bundleWith, compiledPolicy } from '../../test/support/compiled-policy.ts';
import { Rollout } from './rollout.ts';

function config(...policies: readonly CompiledPolicy[]): PushedConfig {
  return { bundle: bundleWith(...policies), settings: {}, origin: 'stream' };
}

const old = compiledPolicy({ uid: 'a' });
const next = compiledPolicy({ uid: 'b' });

function begin(): Rollout<string> {
  const parts = { id: 1, config: config(old, next), before: config(old), workers: 2 };
  return new Rollout<string>(parts);
}

describe('a configuration on its way into all workers', () => {
  it('is in force when the last one says so', async () => {
    const rollout = begin();
    const asked = ['one', 'two', 'one'].map((worker) => rollout.ask(worker));

    rollout.onAnswer('one', []);
    const early = rollout.isOver;
    rollout.onAnswer('two', []);

    assert.deepEqual(asked, [true, true, false]);
    assert.equal(early, false);
    assert.deepEqual(await rollout.outcome, []);
  });

  it('waits for the worker that takes the place of one that ended', async () => {
    const rollout = begin();
    for (const worker of ['one', 'two']) rollout.ask(worker);
    rollout.onAnswer('one', []);

    rollout.onExit('one');
    rollout.onAnswer('two', []);
    const early = rollout.isOver;
    rollout.ask('three');
    rollout.onAnswer('three', []);

    assert.equal(early, false);
    assert.deepEqual(await rollout.outcome, []);
  });

  it('is refused where it is new when workers keep ending over it', async () => {
    const rollout = begin();
    rollout.ask('one');
    rollout.onExit('one');
    const early = rollout.isOver;
    rollout.ask('two');

    rollout.onExit('two');

    assert.equal(early, false);
    assert.deepEqual(
      (await rollout.outcome).map(({ uid, code }) => [uid, code]),
      [['b', 'Internal']],
    );
    assert.equal(rollout.ask('three'), false);
  });

  it('is refused for what any of them refuses, once', async () => {
    const rollout = begin();
    const refusal = {
      uid: 'b',
      generation: 1,
      path: 'spec',
      code: 'Invalid',
      message: '',
    } as const;
    for (const worker of ['one', 'two']) rollout.ask(worker);

    rollout.onAnswer('one', [refusal]);
    rollout.onAnswer('two', [refusal]);

    assert.deepEqual(await rollout.outcome, [refusal]);
  });
});
