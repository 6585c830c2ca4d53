import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isNetwork } from './network.ts';

describe('a network', () => {
  const good = [
    '10.0.0.0/8',
    '0.0.0.0/0',
    '255.255.255.255/32',
    '192.0.2.128/25',
    '::/0',
    '::1/128',
    'fd00::/8',
    'FD00::/8',
    '2001:db8:8000::/33',
    '64:ff9b::/96',
  ];
  const bad: [string, string[]][] = [
    ['has no host bits', ['10.0.0.5/8', '192.0.2.128/24', 'fd00::1/64', '2001:db8:8000::/32']],
    ['has a length', ['10.0.0.0', '10.0.0.0/', '::']],
    ['has a length of the family', ['10.0.0.0/33', '::/129']],
    ['has no leading zeros', ['010.0.0.0/8', '10.0.0.00/8', '10.0.0.0/08']],
    ['is not IPv4-mapped', ['::ffff:10.0.0.0/104', '::ffff:0:0/96']],
    ['has no zone', ['fe80::%eth0/64']],
    ['has four parts', ['10.0.0/8', '10/8', '0x0a000000/8']],
    [
      'is an address at all',
      ['', '/8', 'a/8', 'example.com/8', '1.2.3.256/32', ':::/0', '10.0.0.0/8/8', ' 10.0.0.0/8'],
    ],
  ];

  it('is an address of either family and a length', () => {
    for (const network of good) assert(isNetwork(network), network);
  });

  for (const [claim, networks] of bad) {
    it(claim, () => {
      for (const network of networks) assert(!isNetwork(network), network);
    });
  }
});
