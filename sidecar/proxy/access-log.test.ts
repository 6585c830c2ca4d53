import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { requestOf } from '../../test/support/rule-bundle.ts';
import { type AccessLine, AccessLog } from './access-log.ts';

function recorded(share: number, drawn: number): readonly AccessLine[] {
  const lines: AccessLine[] = [];
  const log = new AccessLog({ share, random: () => drawn, write: (line) => lines.push(line) });
  const headers = { Authorization: 'Bearer secret', Cookie: 'session=secret' };
  log.record(requestOf({ target: '/v1/items?token=secret#x', headers }), 200, 1.23456);
  return lines;
}

describe('the access log', () => {
  it('shows who asked for which path, never a query or a field', () => {
    assert.deepEqual(recorded(1, 0.5), [
      { peer: '192.0.2.1', method: 'GET', path: '/v1/items', status: 200, tookMs: 1.235 },
    ]);
  });

  it('takes the share of responses it is told, and none at 0', () => {
    assert.equal(recorded(0.25, 0.24).length, 1);
    assert.equal(recorded(0.25, 0.25).length, 0);
    assert.equal(recorded(0, 0).length, 0);
    assert.equal(recorded(1, 0.999).length, 1);
  });
});
