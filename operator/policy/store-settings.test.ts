import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_PARTITIONS } from '../../contract/store-settings.ts';
import {
  PEM_BYTES_MAX,
  readStoreSecret,
  URL_LENGTH_MAX,
  type StoreSecretOutcome,
} from './store-settings.ts';

const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
const KEY = '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----';

function read(texts: Readonly<Record<string, string>>): StoreSecretOutcome {
  const data = new Map(
    Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  );
  return readStoreSecret({ name: 'weir-system/weir-store', data: Object.fromEntries(data) });
}

function message(texts: Readonly<Record<string, string>>): string {
  const outcome = read(texts);
  return outcome.kind === 'faulty' ? outcome.message : assert.fail('it is in order');
}

describe('the Secret of the store', () => {
  const good: readonly [Record<string, string>, object][] = [
    [{ url: 'redis://redis.shop:6379/0\n' }, { url: 'redis://redis.shop:6379/0' }],
    [{ url: 'rediss+sentinel://a:1,b:2/main' }, { url: 'rediss+sentinel://a:1,b:2/main' }],
    [{ host: 'redis.shop' }, { url: 'redis://redis.shop:6379' }],
    [
      { host: 'fd00::1', port: '7000', username: 'u@x', password: 'p:/w', tls: 'true' },
      { url: 'rediss://u%40x:p%3A%2Fw@[fd00::1]:7000' },
    ],
    [{ host: 'h', password: 'p', tls: 'false' }, { url: 'redis://:p@h:6379' }],
    [
      { url: 'rediss://h', 'ca.crt': CERTIFICATE, 'tls.crt': CERTIFICATE, 'tls.key': KEY },
      { url: 'rediss://h', tls: { ca: CERTIFICATE, cert: CERTIFICATE, key: KEY } },
    ],
    [
      { url: 'redis+cluster://h', partitions: String(MAX_PARTITIONS) },
      { url: 'redis+cluster://h', partitions: MAX_PARTITIONS },
    ],
  ];
  for (const [texts, settings] of good) {
    it(`with ${Object.keys(texts).join(', ')} gives ${Object.keys(settings).join(', ')}`, () => {
      assert.deepEqual(read(texts), { kind: 'settings', settings });
    });
  }

  const faulty: readonly [Record<string, string>, RegExp][] = [
    [{}, /key url: is missing/],
    [{ url: ' ' }, /key url: is missing/],
    [{ url: 'http://hunter2' }, /key url: is not an address/],
    [{ url: 'redis://h?hunter2' }, /key url/],
    [{ url: 'redis://h:notaport' }, /key url: .* right is host, host:port or \[IPv6\]:port$/],
    [{ url: 'redis://h:70000' }, /key url: .* right is 1\.\.65535$/],
    [{ url: 'redis://:hunter2@a,b' }, /key url: .* right is one host, or redis\+cluster/],
    [{ url: 'redis+sentinel://a' }, /key url: .* right is redis\+sentinel:.*<master name>$/],
    [{ url: 'redis://h/hunter2' }, /key url: .* right is a number$/],
    [{ url: `redis://${'h'.repeat(URL_LENGTH_MAX)}` }, /key url: is longer/],
    [{ url: 'redis://h', host: 'h' }, /key host: remove it/],
    [{ host: 'a b' }, /key host/],
    [{ host: 'h', port: '0' }, /key port/],
    [{ host: 'h', port: '65536' }, /key port/],
    [{ host: 'h', tls: 'yes' }, /key tls: is neither/],
    [{ url: 'rediss://h', 'tls.crt': CERTIFICATE }, /key tls\.key: is missing/],
    [{ url: 'rediss://h', 'tls.key': KEY }, /key tls\.crt: is missing/],
    [{ url: 'rediss://h', 'ca.crt': 'hunter2' }, /key ca\.crt: is not PEM/],
    [{ url: 'rediss://h', 'ca.crt': CERTIFICATE.padEnd(PEM_BYTES_MAX + 1, 'x') }, /key ca\.crt/],
    [{ url: 'redis://h', 'ca.crt': CERTIFICATE }, /key url: has TLS files/],
    [{ url: 'redis://h', partitions: '0' }, /key partitions/],
    [{ url: 'redis://h', partitions: String(MAX_PARTITIONS + 1) }, /key partitions/],
  ];
  for (const [texts, expected] of faulty) {
    it(`is told by name and key, never by value: ${expected.source}`, () => {
      const told = message({ password: 'hunter2', ...texts });

      assert.match(told, /^Secret weir-system\/weir-store, /);
      assert.match(told, expected);
      assert.doesNotMatch(told, /hunter2/);
    });
  }
});
