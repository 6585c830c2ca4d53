import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RecentIds } from './recent-ids.ts';

describe('recent ids', () => {
  it('are the last 512', () => {
    const ids = new RecentIds();
    for (let id = 1; id <= 512; id += 1) ids.add(id);
    assert(ids.has(1));
    ids.add(513);
    assert(!ids.has(1));
    assert(ids.has(2) && ids.has(513));
  });
});
