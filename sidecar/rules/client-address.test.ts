import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledClientIP } from '../../contract/bundle.ts';
import { Address, addressText } from './address.ts';
import { ClientAddressPlan, MAX_FORWARDED_ELEMENTS } from './client-address.ts';

const PEER = '192.0.2.1';

describe('with no trusted hop', () => {
  it('believes the socket only', () => {
    assert.equal(clientOf({}, '203.0.113.7'), PEER);
  });

  it('gives no address for a peer that has none', () => {
    assert.equal(clientOf({}, undefined, '/run/app.sock'), '');
  });
});

describe('with trusted hops', () => {
  const chains: Readonly<
    Record<string, readonly [hops: number, forwardedFor: string | undefined, client: string]>
  > = {
    'one hop takes the right-most element': [1, '203.0.113.7, 198.51.100.2', '198.51.100.2'],
    'two hops take the second from the right': [2, '1.1.1.1, 203.0.113.7, 9.9.9.9', '203.0.113.7'],
    'as many elements as hops take the left-most': [2, '203.0.113.7, 9.9.9.9', '203.0.113.7'],
    'fewer elements than hops leave the socket': [2, '203.0.113.7', PEER],
    'no field leaves the socket': [1, undefined, PEER],
    'an empty field leaves the socket': [1, '', PEER],
    'empty elements do not count': [2, '203.0.113.7, , 9.9.9.9 ,', '203.0.113.7'],
    'an element that cannot be read leaves the socket': [1, '203.0.113.7, unknown', PEER],
    'garbage further left does no harm': [1, 'x, <script>, 203.0.113.7', '203.0.113.7'],
    'a port is not part of the address': [1, '203.0.113.7:4711', '203.0.113.7'],
    'a port is not part of a bracketed address': [1, '[2001:db8::7]:4711', '2001:db8::7'],
    'an IPv4-mapped element is an IPv4 address': [1, '::ffff:203.0.113.7', '203.0.113.7'],
  };
  for (const [claim, [trustedHops, forwardedFor, client]] of Object.entries(chains)) {
    it(claim, () => {
      assert.equal(clientOf({ trustedHops }, forwardedFor), client);
    });
  }
});

describe('with trusted proxies', () => {
  const trustedProxies = ['192.0.2.0/24', '10.0.0.0/8', '2001:db8:aa::/48'];
  const chains: Readonly<
    Record<string, readonly [forwardedFor: string | undefined, client: string]>
  > = {
    'the right-most address outside is the client': [
      '1.1.1.1, 203.0.113.7, 10.0.0.1',
      '203.0.113.7',
    ],
    'what a client claims further left is not believed': ['10.0.0.9, 203.0.113.7', '203.0.113.7'],
    'proxies of both families are passed over': ['203.0.113.7, 2001:db8:aa::1', '203.0.113.7'],
    'a chain of proxies only gives the left-most': ['10.0.0.2, 10.0.0.1', '10.0.0.2'],
    'no field gives the proxy': [undefined, PEER],
    'an element that cannot be read gives the proxy that wrote it': ['8.8.8.8, unknown', PEER],
    'empty elements do not count': [', 203.0.113.7,, 10.0.0.1,', '203.0.113.7'],
  };
  for (const [claim, [forwardedFor, client]] of Object.entries(chains)) {
    it(claim, () => {
      assert.equal(clientOf({ trustedProxies }, forwardedFor), client);
    });
  }

  it('a peer that is no proxy is the client, whatever it claims', () => {
    assert.equal(clientOf({ trustedProxies }, '203.0.113.7', '198.51.100.1'), '198.51.100.1');
  });

  it('a peer that cannot be read has no address', () => {
    assert.equal(clientOf({ trustedProxies }, '203.0.113.7', ''), '');
  });

  it('a chain is followed for the number of elements it may have', () => {
    const proxies = new Array<string>(MAX_FORWARDED_ELEMENTS - 1).fill('10.0.0.1');

    const client = clientOf({ trustedProxies }, ['203.0.113.7', ...proxies].join(','));

    assert.equal(client, '203.0.113.7');
  });

  it('a longer chain is not followed to its end', () => {
    const proxies = new Array<string>(MAX_FORWARDED_ELEMENTS).fill('10.0.0.1');

    const client = clientOf({ trustedProxies }, ['203.0.113.7', ...proxies].join(','));

    assert.equal(client, '10.0.0.1');
  });
});

function clientOf(
  config: Partial<CompiledClientIP>,
  forwardedFor: string | undefined,
  peer: string = PEER,
): string {
  const plan = new ClientAddressPlan({
    trustedHops: 0,
    trustedProxies: [],
    ipv6PrefixLength: 64,
    ...config,
  });
  const address = new Address();
  plan.read(peer, forwardedFor, address);
  return addressText(address);
}
