import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../../contract/errors.ts';
import { PAIRS_MAX, parsePairs } from './port-pair.ts';

function refusalOf(forward: readonly string[], probe: readonly string[] = []): unknown {
  try {
    parsePairs({ forward, probe });
  } catch (error) {
    assert(error instanceof WeirError);
    assert.equal(error.code, 'CONFIG_INVALID');
    return error.details['where'];
  }
  return 'accepted';
}

function many(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${index + 1}:15100`);
}

describe('the ports to redirect', () => {
  it('are pairs, forwards first', () => {
    const pairs = parsePairs({ forward: ['8080:15100', '1:65535'], probe: ['15300:8080'] });

    assert.deepEqual(pairs, [
      { from: 8080, to: 15_100 },
      { from: 1, to: 65_535 },
      { from: 15_300, to: 8080 },
    ]);
  });

  it('need a forward', () => {
    assert.equal(refusalOf([]), '--forward');
    assert.equal(refusalOf([], ['15300:8080']), '--forward');
  });

  it('are two numbers from 1 to 65535 that differ', () => {
    const wrong = ['8080', '8080:', ':1', '0:1', '1:0', '65536:1', '1:65536', '08:1', '-1:2'];
    for (const text of [...wrong, ' 1:2', '1:2:3', 'a:b', '1:1', '99999:1', '1:100000']) {
      assert.equal(refusalOf([text]), '--forward', text);
      assert.equal(refusalOf(['8080:15100'], [text]), '--probe', text);
    }
  });

  it('lead each to one port', () => {
    assert.equal(refusalOf(['8080:15100', '8080:15101']), '--forward');
    assert.equal(refusalOf(['8080:15100', '8080:15100']), '--forward');
    assert.equal(refusalOf(['8080:15100'], ['8080:9090']), '--probe');
    assert.equal(refusalOf(['8080:15100', '8081:15100']), 'accepted');
  });

  it('of probes lead to forwarded ports', () => {
    assert.equal(refusalOf(['8080:15100', '9090:15101'], ['15300:9090']), 'accepted');
    assert.equal(refusalOf(['8080:15100'], ['15300:9999']), '--probe');
    // To the sidecar instead of past it.
    assert.equal(refusalOf(['8080:15100'], ['15300:15100']), '--probe');
  });

  it('are bounded', () => {
    assert.equal(refusalOf(many(PAIRS_MAX)), 'accepted');
    assert.equal(refusalOf(many(PAIRS_MAX + 1)), '--forward and --probe');
    assert.equal(refusalOf(many(PAIRS_MAX), ['15300:8080']), '--forward and --probe');
  });
});
