import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WeirError } from './errors.ts';
import { MAX_PARTITIONS, parseStoreSettings, type StoreSettingsInput } from './store-settings.ts';

describe('store settings', () => {
  test('of one server have defaults for port and database', () => {
    assert.deepEqual(parseStoreSettings({ url: 'redis://redis.shop' }), {
      kind: 'single',
      address: { host: 'redis.shop', port: 6379 },
      database: 0,
      credentials: {},
      sentinelCredentials: {},
      partitions: 1,
    });
  });

  test('read user, password, port and database from the URL', () => {
    const settings = parseStoreSettings({ url: 'redis://we%69r:p%40ss:w%2Frd@10.0.0.1:7000/3' });

    assert.deepEqual(settings, {
      kind: 'single',
      address: { host: '10.0.0.1', port: 7000 },
      database: 3,
      credentials: { username: 'weir', password: 'p@ss:w/rd' },
      sentinelCredentials: {},
      partitions: 1,
    });
  });

  test('take a password without a user', () => {
    assert.deepEqual(parseStoreSettings({ url: 'redis://:secret@h' }).credentials, {
      password: 'secret',
    });
  });

  test('prefer credentials of their own to those in the URL', () => {
    const settings = parseStoreSettings({ url: 'redis://a:b@h', credentials: { password: 'c' } });

    assert.deepEqual(settings.credentials, { username: 'a', password: 'c' });
  });

  test('read an IPv6 address', () => {
    const settings = parseStoreSettings({ url: 'redis://[2001:db8::1]:7000' });

    assert.deepEqual(settings.kind === 'single' && settings.address, {
      host: '2001:db8::1',
      port: 7000,
    });
  });

  test('of sentinels name the master', () => {
    const settings = parseStoreSettings({
      url: 'redis+sentinel://s1,s2:26380/main/2',
      sentinelCredentials: { password: 'x' },
    });

    assert.deepEqual(settings, {
      kind: 'sentinel',
      addresses: [
        { host: 's1', port: 26_379 },
        { host: 's2', port: 26_380 },
      ],
      masterName: 'main',
      database: 2,
      credentials: {},
      sentinelCredentials: { password: 'x' },
      partitions: 1,
    });
  });

  test('of a Cluster carry its seeds and the partitions', () => {
    const settings = parseStoreSettings({ url: 'redis+cluster://c1,c2:7001/0', partitions: 16 });

    assert.deepEqual(settings, {
      kind: 'cluster',
      addresses: [
        { host: 'c1', port: 6379 },
        { host: 'c2', port: 7001 },
      ],
      credentials: {},
      sentinelCredentials: {},
      partitions: 16,
    });
  });

  test('with TLS carry what the files held', () => {
    const tls = { ca: 'CA', cert: 'CERT', key: 'KEY', serverName: 'redis.internal' };

    assert.deepEqual(parseStoreSettings({ url: 'rediss://h', tls }).tls, tls);
    assert.deepEqual(parseStoreSettings({ url: 'REDISS+cluster://h' }).tls, {});
  });

  const wrong: Readonly<Record<string, readonly [StoreSettingsInput, string]>> = {
    'another scheme': [{ url: 'http://h' }, 'no known scheme in "http://h"'],
    'no scheme': [{ url: 'localhost:6379' }, 'no known scheme in "localhost:6379"'],
    'several hosts for one server': [{ url: 'redis://a,b' }, '2 hosts'],
    'no host': [{ url: 'redis://' }, 'host ""'],
    'a host with a space': [{ url: 'redis://a b' }, 'host "a b"'],
    'port 0': [{ url: 'redis://h:0' }, 'port 0'],
    'a port beyond the last': [{ url: 'redis://h:65536' }, 'port 65536'],
    'a database that is no number': [{ url: 'redis://h/main' }, 'database "main"'],
    'a database in a Cluster': [{ url: 'redis+cluster://h/1' }, 'database "1"'],
    'sentinels without a master name': [{ url: 'redis+sentinel://h' }, 'no master name'],
    'a query': [{ url: 'redis://h?x=1' }, 'a query or fragment'],
    'a broken escape': [{ url: 'redis://a%zz@h' }, 'a broken percent escape'],
    'TLS files without a TLS scheme': [
      { url: 'redis://h', tls: {} },
      'TLS settings with a plain scheme',
    ],
    'a certificate without its key': [
      { url: 'rediss://h', tls: { cert: 'C' } },
      'a client certificate without its key, or the key alone',
    ],
    'no partition': [{ url: 'redis://h', partitions: 0 }, '0'],
    'too many partitions': [
      { url: 'redis://h', partitions: MAX_PARTITIONS + 1 },
      String(MAX_PARTITIONS + 1),
    ],
    'too many hosts': [{ url: `redis+cluster://${'h,'.repeat(64)}h` }, '65 hosts'],
  };
  for (const [what, [input, message]] of Object.entries(wrong)) {
    test(`refuse ${what}, and say what would be right`, () => {
      assert.throws(
        () => parseStoreSettings(input),
        (error) => {
          assert.ok(error instanceof WeirError);
          assert.equal(error.code, 'STORE_SETTINGS_INVALID');
          assert.equal(error.details['wrong'], message);
          assert.equal(typeof error.details['right'], 'string');
          return true;
        },
      );
    });
  }

  test('never show a password in an error', () => {
    assert.throws(
      () => parseStoreSettings({ url: 'rediz://user:secret@h' }),
      (error) => error instanceof WeirError && !JSON.stringify(error.details).includes('secret'),
    );
  });

  test('take as many partitions and hosts as their bounds say', () => {
    assert.equal(
      parseStoreSettings({ url: 'redis://h', partitions: MAX_PARTITIONS }).partitions,
      MAX_PARTITIONS,
    );
    const many = parseStoreSettings({ url: `redis+cluster://${'h,'.repeat(63)}h` });
    assert.equal(many.kind === 'cluster' && many.addresses.length, 64);
  });
});
