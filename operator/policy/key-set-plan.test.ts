import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { addressFault, hostFault } from './key-set-address.ts';
import {
  planKeySet,
  refreshIn,
  REFRESH_MAX_MS,
  REFRESH_MIN_MS,
  REFRESH_MS,
  RETRY_MAX_MS,
  RETRY_MIN_MS,
  type FetchOutcome,
} from './key-set-plan.ts';
import { NOT_FETCHED } from './key-set-state.ts';

const EC = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};
const FETCHED: FetchOutcome = { kind: 'fetched', text: JSON.stringify({ keys: [EC] }) };
const AWAY: FetchOutcome = { kind: 'unavailable', message: 'answers 503' };
const NOTHING = { state: NOT_FETCHED, failures: 0 };
const exact = { nowMs: 0, random: () => 0 };

describe('the plan of a key set', () => {
  it('takes the keys and comes again when they are no longer fresh', () => {
    const { state, failures, nextInMs } = planKeySet(NOTHING, FETCHED, exact);

    assert.deepEqual(state.good, { keys: [EC], fetchedAt: '1970-01-01T00:00:00Z' });
    assert.deepEqual([state.failure, failures, nextInMs], [undefined, 0, REFRESH_MS]);
  });

  it('keeps the last good keys whatever comes after, and says what did', () => {
    const good = planKeySet(NOTHING, FETCHED, exact);
    const invalid = planKeySet(good, { kind: 'fetched', text: '<html>secret' }, exact);
    const away = planKeySet(invalid, AWAY, exact);

    assert.deepEqual([invalid.state.good, away.state.good], [good.state.good, good.state.good]);
    assert.deepEqual(
      [invalid.state.failure?.kind, away.state.failure?.kind],
      ['invalid', 'unavailable'],
    );
    assert.doesNotMatch(invalid.state.failure?.message ?? '', /secret/);
  });

  it('tries again later and later, up to a bound', () => {
    const first = planKeySet(NOTHING, AWAY, exact);
    const second = planKeySet(first, AWAY, exact);
    const late = planKeySet({ ...first, failures: 1_000 }, AWAY, exact);

    assert.deepEqual(
      [first.nextInMs, second.nextInMs, late.nextInMs],
      [RETRY_MIN_MS, 2 * RETRY_MIN_MS, RETRY_MAX_MS],
    );
  });

  it('spreads over replicas, never later than was said', () => {
    const { nextInMs } = planKeySet(NOTHING, FETCHED, { nowMs: 0, random: () => 0.999 });

    assert.ok(nextInMs < REFRESH_MS && nextInMs > REFRESH_MS * 0.89);
  });
});

describe('the freshness of a key set', () => {
  const rows: readonly [string | undefined, number][] = [
    [undefined, REFRESH_MS],
    ['public', REFRESH_MS],
    ['public, max-age=3600', 3_600_000],
    ['MAX-AGE="3600"', 3_600_000],
    ['max-age=299', REFRESH_MIN_MS],
    ['max-age=300', REFRESH_MIN_MS],
    ['max-age=301', 301_000],
    ['max-age=86400', REFRESH_MAX_MS],
    ['max-age=86401', REFRESH_MAX_MS],
    ['max-age=999999999999', REFRESH_MAX_MS],
    ['max-age=-1', REFRESH_MS],
    ['no-store, max-age=3600', REFRESH_MIN_MS],
    ['no-cache', REFRESH_MIN_MS],
  ];
  for (const [header, expected] of rows) {
    it(`is ${String(expected)} ms for ${header ?? 'no header'}`, () => {
      assert.equal(refreshIn(header), expected);
    });
  }
});

describe('an address', () => {
  const refused = [
    ['127.0.0.1', '127.255.255.254', '::1', '0.0.0.0', '::', '169.254.169.254', 'fe80::1'],
    ['224.0.0.1', 'ff02::1', '255.255.255.255', '240.0.0.1'],
    // IPv4 in IPv6: mapped, NAT64, 6to4, Teredo, translated.
    ['::ffff:127.0.0.1', '::ffff:169.254.169.254', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe'],
    ['2002:7f00:1::', '2001::1', '::ffff:0:127.0.0.1'],
    ['fd00:ec2::254', '100.100.100.200', '192.0.0.192', 'not an address'],
  ].flat();
  for (const address of refused) {
    it(`${address} is never connected to`, () => {
      assert.notEqual(addressFault(address), undefined);
    });
  }

  // Issuers inside the cluster have private addresses.
  for (const address of [
    '10.0.0.1',
    '192.168.1.1',
    'fd00::1',
    '93.184.216.34',
    '2606:4700::1',
    '::ffff:10.0.0.1',
    '64:ff9b::a00:1',
  ]) {
    it(`${address} may be connected to`, () => {
      assert.equal(addressFault(address), undefined);
    });
  }
});

describe('the host of a key set', () => {
  it('is refused by name and by literal where it is this host', () => {
    const hosts = [
      'localhost',
      'LOCALHOST.',
      'x.localhost',
      '127.0.0.1',
      '[::1]',
      '[::ffff:7f00:1]',
    ];

    assert.deepEqual(
      hosts.filter((host) => hostFault(host, []) === undefined),
      [],
    );
  });

  it('is any other where no list says more', () => {
    assert.equal(hostFault('id.example.com', []), undefined);
  });

  it('is one of the list, where there is one', () => {
    const allowed = ['id.example.com', '*.corp.example'];
    const hosts = [
      'ID.example.com',
      'a.corp.example',
      'a.b.corp.example',
      'corp.example',
      'xcorp.example',
      'id.example.com.evil.org',
      '10.0.0.1',
    ];

    assert.deepEqual(
      hosts.map((host) => hostFault(host, allowed) === undefined),
      [true, true, true, false, false, false, false],
    );
  });

  it('is never this host, not even by the list', () => {
    assert.notEqual(hostFault('localhost', ['localhost']), undefined);
  });
});
