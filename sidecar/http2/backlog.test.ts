import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Backlog } from './backlog.ts';

describe('a backlog', () => {
  it('takes as much as its bound from anybody', () => {
    const backlog = new Backlog(3_200);
    backlog.bytes = 3_200;
    assert(!backlog.isTooMuch(3_200));
  });

  it('past its bound is too much for whoever has more than a share of it', () => {
    const backlog = new Backlog(3_200);
    backlog.bytes = 3_201;
    assert(backlog.isTooMuch(101));
    assert(!backlog.isTooMuch(100));
  });

  it('past twice its bound is too much for everybody', () => {
    const backlog = new Backlog(3_200);
    backlog.bytes = 6_400;
    assert(!backlog.isTooMuch(1));
    backlog.bytes = 6_401;
    assert(backlog.isTooMuch(1));
  });
});
