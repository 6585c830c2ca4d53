import assert from 'node:assert/strict';
import { BlockList, isIP } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { Address, Networks, addressText, clientName, readAddress, withoutPort } from './address.ts';

describe('readAddress', () => {
  const addresses: Readonly<Record<string, readonly [sent: string, text: string]>> = {
    'reads a dotted quad': ['203.0.113.7', '203.0.113.7'],
    'reads the largest dotted quad': ['255.255.255.255', '255.255.255.255'],
    'reads an address with zero octets': ['0.0.0.0', '0.0.0.0'],
    'reads a full IPv6 address': ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:5:6'],
    'reads a shortened IPv6 address': ['2001:DB8::1', '2001:db8::1'],
    'reads the loopback': ['::1', '::1'],
    'reads the unspecified address': ['::', '::'],
    'reads an address that ends in a gap': ['2001:db8::', '2001:db8::'],
    'reads an IPv4-mapped address as IPv4': ['::ffff:203.0.113.7', '203.0.113.7'],
    'reads an IPv4-mapped address in groups as IPv4': ['::FFFF:cb00:7107', '203.0.113.7'],
    'reads an embedded dotted quad': ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
    'passes over a zone': ['fe80::1%eth0', 'fe80::1'],
  };
  for (const [claim, [sent, text]] of Object.entries(addresses)) {
    it(claim, () => {
      const address = new Address();

      assert.equal(readAddress(sent, address), true);
      assert.equal(addressText(address), text);
    });
  }

  const garbage: Readonly<Record<string, string>> = {
    'an empty text': '',
    'a name': 'unknown',
    'an obfuscated identifier': '_hidden',
    'too few octets': '1.2.3',
    'too many octets': '1.2.3.4.5',
    'an octet of 256': '1.2.3.256',
    'an octet with a leading zero': '1.2.3.04',
    'an empty octet': '1..3.4',
    'a leading dot': '.1.2.3.4',
    'a final dot': '1.2.3.',
    'a port': '1.2.3.4:80',
    'a letter in an octet': '1.2.3.a',
    'more chars than a dotted quad has': '1.2.3.400000000000',
    'too few groups': '1:2:3:4:5:6:7',
    'too many groups': '1:2:3:4:5:6:7:8:9',
    'a gap where none fits': '1:2:3:4::5:6:7:8',
    'two gaps': '1::2::3',
    'a group of five digits': '12345::',
    'a group that is not hexadecimal': 'g::',
    'a dotted quad before the gap': '1.2.3.4::1',
    'a dotted quad that is none at the end': '::1.2.3.256',
    'a single colon at the end': '1:2:3:4:5:6:7:',
    brackets: '[::1]',
  };
  for (const [what, text] of Object.entries(garbage)) {
    it(`refuses ${what}`, () => {
      const address = new Address();
      readAddress('192.0.2.1', address);

      assert.equal(readAddress(text, address), false);
      assert.equal(addressText(address), '');
      assert.equal(clientName(address, 64), '');
    });
  }

  it('accepts what node:net accepts, and means what URLs mean', () => {
    const piece = fc.constantFrom('::', ':', '.', '0', '1', 'ff', 'ffff', '255', '01', '1.2.3.4');
    const text = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
    );
    fc.assert(
      fc.property(text, (sent) => {
        const address = new Address();
        const isAddress = readAddress(sent, address);

        assert.equal(isAddress, isIP(sent) !== 0);
        if (isAddress) assert.equal(addressText(address), referenceText(sent));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('clientName', () => {
  it('is the whole IPv4 address, whatever the prefix of IPv6', () => {
    assert.equal(clientName(addressOf('203.0.113.7'), 32), '203.0.113.7');
  });

  const networks: Readonly<Record<number, string>> = {
    32: '2001:db8:0:0:0:0:0:0/32',
    33: '2001:db8:8000:0:0:0:0:0/33',
    64: '2001:db8:8001:2:0:0:0:0/64',
    127: '2001:db8:8001:2:3:4:5:6/127',
    128: '2001:db8:8001:2:3:4:5:7/128',
  };
  for (const [length, name] of Object.entries(networks)) {
    it(`is the network of ${length} bits of an IPv6 address`, () => {
      assert.equal(clientName(addressOf('2001:db8:8001:2:3:4:5:7'), Number(length)), name);
    });
  }
});

describe('Networks', () => {
  const cases: Readonly<Record<string, readonly [cidr: string, inside: string, outside: string]>> =
    {
      'end at the last address of an IPv4 network': ['192.0.2.0/25', '192.0.2.127', '192.0.2.128'],
      'hold one IPv4 address with 32 bits': ['192.0.2.1/32', '192.0.2.1', '192.0.2.2'],
      'hold every IPv4 address, and no other, with 0 bits': ['0.0.0.0/0', '255.0.0.1', '::1'],
      'hold every IPv6 address, and no other, with 0 bits': ['::/0', '2001:db8::1', '192.0.2.1'],
      'hold IPv4-mapped addresses as IPv4': ['192.0.2.0/24', '::ffff:192.0.2.9', '::192.0.2.9'],
      'compare the first word': ['2001:db8::/32', '2001:db8:ffff::', '2001:db9::'],
      'compare the second word': ['2001:db8:0:8000::/49', '2001:db8:0:8000::1', '2001:db8:1::'],
      'compare the third word': ['2001:db8:0:0:1::/80', '2001:db8::1:0:0:5', '2001:db8::2:0:0:5'],
      'compare the fourth word': ['2001:db8::1/128', '2001:db8::1', '2001:db8::2'],
    };
  for (const [claim, [cidr, inside, outside]] of Object.entries(cases)) {
    it(claim, () => {
      const networks = new Networks([cidr]);

      assert.equal(networks.has(addressOf(inside)), true);
      assert.equal(networks.has(addressOf(outside)), false);
    });
  }

  it('hold nothing when there are none', () => {
    assert.equal(new Networks([]).has(addressOf('192.0.2.1')), false);
  });

  it('hold no unreadable address', () => {
    assert.equal(new Networks(['0.0.0.0/0', '::/0']).has(new Address()), false);
  });

  it('hold what node:net finds in them', () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6()).map(referenceText);
    const cidr = fc.tuple(address, fc.integer({ min: 0, max: 128 })).map(([text, length]) => {
      const bits = text.includes(':') ? length : length % 33;
      const family = text.includes(':') ? ipaddr.IPv6 : ipaddr.IPv4;
      const network = family.networkAddressFromCIDR(`${text}/${String(bits)}`).toString();
      return [network, bits] as const;
    });
    fc.assert(
      fc.property(cidr, address, ([network, length], sent) => {
        const list = new BlockList();
        list.addSubnet(network, length, familyOf(network));
        const expected = familyOf(sent) === familyOf(network) && list.check(sent, familyOf(sent));

        const networks = new Networks([`${network}/${String(length)}`]);

        assert.equal(networks.has(addressOf(sent)), expected);
      }),
      { numRuns: 1_000 },
    );
  });

  function familyOf(text: string): 'ipv4' | 'ipv6' {
    return text.includes(':') ? 'ipv6' : 'ipv4';
  }
});

describe('withoutPort', () => {
  const elements: Readonly<Record<string, readonly [element: string, address: string]>> = {
    'leaves an IPv4 address alone': ['192.0.2.1', '192.0.2.1'],
    'takes the port off an IPv4 address': ['192.0.2.1:8080', '192.0.2.1'],
    'leaves an IPv6 address alone': ['2001:db8::1', '2001:db8::1'],
    'takes the brackets off an IPv6 address': ['[2001:db8::1]', '2001:db8::1'],
    'takes brackets and port off an IPv6 address': ['[2001:db8::1]:443', '2001:db8::1'],
    'leaves a port that is none': ['192.0.2.1:http', '192.0.2.1:http'],
    'leaves a bracket that is not closed': ['[::1', '[::1'],
    'leaves what follows a closing bracket and is no port': ['[::1]x', '[::1]x'],
  };
  for (const [claim, [element, address]] of Object.entries(elements)) {
    it(claim, () => {
      assert.equal(withoutPort(element), address);
    });
  }
});

function addressOf(text: string): Address {
  const address = new Address();
  assert.equal(readAddress(text, address), true, text);
  return address;
}

/** How URLs write an address; an IPv4-mapped one as IPv4. */
function referenceText(text: string): string {
  if (!text.includes(':')) return text;
  const host = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(host);
  if (mapped === null) return host;
  const [high, low] = [mapped[1], mapped[2]].map((group) => Number.parseInt(String(group), 16));
  return [Number(high) >> 8, Number(high) & 255, Number(low) >> 8, Number(low) & 255].join('.');
}
