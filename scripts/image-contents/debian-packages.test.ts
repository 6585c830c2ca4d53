import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { closureOf, licencesOf, parsePackages } from './debian-packages.ts';

const STATUS = `Package: iptables
Status: install ok installed
Architecture: amd64
Version: 1.8.9-2
Depends: libxtables12 (= 1.8.9-2), libc6 (>= 2.36) | libc, virtual-thing
Conffiles:
 /etc/ethertypes b0a1d6bd8ac6a3ee7a3f4b0f3dd2ff9b
Description: rules
 of two lines

Package: libxtables12
Status: install ok installed
Architecture: amd64
Version: 1.8.9-2
Pre-Depends: libc6

Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36

Package: gone
Status: deinstall ok config-files
Version: 1
`;

const installed = new Map(parsePackages(STATUS).map((one) => [one.name, one]));

describe("Debian's packages", () => {
  it('are read from the list of dpkg, those that were removed left out', () => {
    assert.deepEqual([...installed.keys()], ['iptables', 'libxtables12', 'libc6']);
  });

  it('keep their paragraph for scanners, without what only dpkg needs', () => {
    const paragraph = installed.get('iptables')?.paragraph;

    assert.match(paragraph ?? '', /^Package: iptables\nArchitecture: amd64\n/);
    assert.match(paragraph ?? '', /Description: rules\n of two lines\n$/);
    assert.doesNotMatch(paragraph ?? '', /Status|Conffiles|ethertypes/);
  });

  it('are read from distroless, which gives no status', () => {
    assert.equal(parsePackages('Package: tzdata\nVersion: 1\n')[0]?.name, 'tzdata');
  });

  it('bring what they need, but not what the base has', () => {
    const names = (present: readonly string[]): readonly string[] =>
      closureOf('iptables', installed, new Set(present)).map(({ name }) => name);

    assert.deepEqual(names(['libc6']), ['iptables', 'libxtables12']);
    assert.deepEqual(names([]), ['iptables', 'libxtables12', 'libc6']);
    assert.deepEqual(names(['iptables']), []);
  });

  it('are missed with their name', () => {
    assert.throws(() => closureOf('nothing', installed, new Set()), /has no package nothing/);
  });

  it('name their licences in a copyright file with a format, and nowhere else', () => {
    const copyright =
      'Format: https://example\n\nFiles: *\nLicense: GPL-2+\n text\n\nLicense: Artistic\n\nLicense: GPL-2+\n';

    assert.equal(licencesOf(copyright), 'Artistic, GPL-2+');
    assert.equal(licencesOf('This is free. License: see below'), undefined);
  });
});
