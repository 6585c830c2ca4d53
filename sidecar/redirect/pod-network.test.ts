import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasNetAdmin, hasRoutedIpv6, remedyForPrivilege } from './pod-network.ts';

function status(effective: string): string {
  return `Name:\tnode\nCapPrm:\t0000000000001000\nCapEff:\t${effective}\nCapBnd:\t0000000000001000\n`;
}

describe('what the redirect program may do', () => {
  it('is told by the effective capability alone', () => {
    assert.equal(hasNetAdmin(status('0000000000001000')), true);
    assert.equal(hasNetAdmin(status('000001ffffffffff')), true);
    assert.equal(hasNetAdmin(status('0000000000000000')), false);
    assert.equal(hasNetAdmin(status('000001ffffffefff')), false);
    assert.equal(hasNetAdmin(''), false);
  });

  it('is given by another setting to root than to a user', () => {
    assert.match(remedyForPrivilege(0), /capabilities\.add/);
    assert.match(remedyForPrivilege(65_532), /user 65532 .* runAsUser: 0/);
  });
});

describe('the IPv6 addresses of a pod', () => {
  const LOOPBACK = '00000000000000000000000000000001 01 80 10 80       lo';
  const LINK = 'fe80000000000000a8aaaafffe000001 02 40 20 80     eth0';
  const PRIVATE = 'fd000018000700000000000000000001 02 40 00 80     eth0';

  it('count when they are of global scope', () => {
    assert.equal(hasRoutedIpv6([LOOPBACK, LINK, PRIVATE].join('\n')), true);
  });

  it('do not count on the loopback device or the link', () => {
    assert.equal(hasRoutedIpv6([LOOPBACK, LINK].join('\n')), false);
    assert.equal(hasRoutedIpv6(''), false);
  });
});
