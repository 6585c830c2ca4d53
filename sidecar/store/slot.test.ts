import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slotOf } from './slot.ts';

// The check value of the Redis Cluster specification, and its example; the conformance suite asks a real server.
const known = { '123456789': 0x31c3, foo: 12_182, '': 0 } as const;

for (const [tag, slot] of Object.entries(known)) {
  test(`puts "${tag}" into slot ${slot}`, () => {
    assert.equal(slotOf(tag), slot);
  });
}
