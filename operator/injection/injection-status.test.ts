import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { injected } from '../../contract/names.ts';
import { podObject } from '../../test/support/world-objects.ts';
import { readInjectionStatus } from './injection-status.ts';

function statusOf(text: string | undefined): ReturnType<typeof readInjectionStatus> {
  return readInjectionStatus({
    annotations: text === undefined ? {} : { [injected.status]: text },
  });
}

const written = podObject('a', { mode: 'redirect' }).metadata.annotations?.[injected.status] ?? '';

describe('the status of an injected pod', () => {
  it('is read as it was written', () => {
    assert.deepEqual(statusOf(written), JSON.parse(written));
  });

  it('is none where there is none, or somebody else wrote it', () => {
    const nothing = [
      undefined,
      ...['', '{', 'null', '{}'],
      written.replace('redirect', 'sideways'),
      written.replace(/"ports":\[.*?\]/, '"ports":[]'),
      written.replace('8080', '65536'),
    ];

    assert.deepEqual(
      nothing.map(statusOf),
      nothing.map(() => undefined),
    );
    assert.equal(readInjectionStatus({}), undefined);
  });
});
