import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Breaker, FAILURES_TO_OPEN, MAX_REST_US } from './breaker.ts';

function openBreaker(random = 0): Breaker {
  const breaker = new Breaker(() => random);
  for (let i = 0; i < FAILURES_TO_OPEN; i += 1) breaker.onFailure(0);
  return breaker;
}

describe('a circuit breaker', () => {
  test('stays closed through one failure less than opens it', () => {
    const breaker = new Breaker(() => 0);

    for (let i = 0; i < FAILURES_TO_OPEN - 1; i += 1) breaker.onFailure(0);

    assert.equal(breaker.state, 'closed');
    assert.ok(breaker.admits(0));
    assert.ok(breaker.tryEnter(0));
  });

  test('counts failures in a row only', () => {
    const breaker = new Breaker(() => 0);

    for (let i = 0; i < 3 * FAILURES_TO_OPEN; i += 1) {
      breaker.onFailure(0);
      if (i % 2 === 1) breaker.onSuccess();
    }

    assert.equal(breaker.state, 'closed');
  });

  test('keeps everybody away until its rest is over', () => {
    const breaker = openBreaker();

    assert.equal(breaker.state, 'open');
    assert.ok(!breaker.admits(MAX_REST_US / 2 - 1));
    assert.ok(!breaker.tryEnter(MAX_REST_US / 2 - 1));
    assert.ok(breaker.admits(MAX_REST_US / 2));
  });

  test('rests up to twice as long by jitter, never longer', () => {
    const breaker = openBreaker(0.999_999_9);

    assert.ok(!breaker.admits(MAX_REST_US - 2));
    assert.ok(breaker.admits(MAX_REST_US));
  });

  test('lets exactly one probe through', () => {
    const breaker = openBreaker();

    assert.ok(breaker.tryEnter(MAX_REST_US));

    assert.equal(breaker.state, 'half-open');
    assert.ok(!breaker.tryEnter(MAX_REST_US));
    assert.ok(!breaker.admits(10 * MAX_REST_US));
  });

  test('closes when the probe succeeds, and starts counting afresh', () => {
    const breaker = openBreaker();
    breaker.tryEnter(MAX_REST_US);

    breaker.onSuccess();
    breaker.onFailure(MAX_REST_US);

    assert.equal(breaker.state, 'closed');
  });

  test('rests again when the probe fails', () => {
    const breaker = openBreaker();
    breaker.tryEnter(MAX_REST_US);

    breaker.onFailure(MAX_REST_US);

    assert.equal(breaker.state, 'open');
    assert.ok(!breaker.admits(MAX_REST_US + MAX_REST_US / 2 - 1));
  });

  test('probes again at once when the probe said nothing about the node', () => {
    const breaker = openBreaker();
    breaker.tryEnter(MAX_REST_US);

    breaker.onUnknown(MAX_REST_US + 5);

    assert.equal(breaker.state, 'open');
    assert.ok(breaker.tryEnter(MAX_REST_US + 5));
  });

  test('does not open by an answer that says nothing', () => {
    const breaker = new Breaker(() => 0);

    for (let i = 0; i < 2 * FAILURES_TO_OPEN; i += 1) breaker.onUnknown(0);

    assert.equal(breaker.state, 'closed');
  });

  test('probes as soon as the connection is back', () => {
    const breaker = openBreaker();

    breaker.onReconnect(7);

    assert.ok(breaker.tryEnter(7));
  });

  test('takes no notice of a connection while it is closed or probing', () => {
    const breaker = openBreaker();
    breaker.tryEnter(MAX_REST_US);

    breaker.onReconnect(0);

    assert.equal(breaker.state, 'half-open');
  });
});
