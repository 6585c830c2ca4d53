import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { COMPRESSION_ERROR } from './error-code.ts';
import { HpackDecoder } from './hpack-decoder.ts';

const LIMITS = { maxBytes: 65_536, maxLines: 100 };

type Line = readonly [name: string, value: string];

function linesOf(decoder: HpackDecoder, hex: string): Line[] {
  const { fields, isTooLarge } = decoder.decode(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
  assert(!isTooLarge);
  return fields.map(({ name, value }) => [name, value]);
}

function fresh(limits: Partial<typeof LIMITS> = {}): HpackDecoder {
  return new HpackDecoder({ ...LIMITS, ...limits });
}

function assertFault(hex: string, message: string): void {
  assert.throws(() => linesOf(fresh(), hex), { code: COMPRESSION_ERROR, message });
}

/** A string of n ≤ 126 bytes, as hexadecimal. */
function string(text: string): string {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([Buffer.from([bytes.length]), bytes]).toString('hex');
}

const GET: readonly Line[] = [
  [':method', 'GET'],
  [':scheme', 'http'],
  [':path', '/'],
  [':authority', 'www.example.com'],
];
const SECURE: readonly Line[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/index.html'],
  [':authority', 'www.example.com'],
  ['custom-key', 'custom-value'],
];
const FOUND: readonly Line[] = [
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
  ['location', 'https://www.example.com'],
];
const COOKIE = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const LAST: readonly Line[] = [
  [':status', '200'],
  ['cache-control', 'private'],
  ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
  ['location', 'https://www.example.com'],
  ['content-encoding', 'gzip'],
  ['set-cookie', COOKIE],
];

/** RFC 7541 Appendix C.3 to C.6: blocks that follow each other on one connection. Responses with a table of 256 bytes. */
const EXAMPLES: Readonly<
  Record<string, readonly (readonly [hex: string, lines: readonly Line[]])[]>
> = {
  'requests as they are': [
    ['828684410f7777772e6578616d706c652e636f6d', GET],
    ['828684be58086e6f2d6361636865', [...GET, ['cache-control', 'no-cache']]],
    ['828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565', SECURE],
  ],
  'requests in Huffman coding': [
    ['828684418cf1e3c2e5f23a6ba0ab90f4ff', GET],
    ['828684be5886a8eb10649cbf', [...GET, ['cache-control', 'no-cache']]],
    ['828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf', SECURE],
  ],
  'responses as they are': [
    [
      '3fe101 4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a3231' +
        '20474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d',
      [[':status', '302'], ...FOUND],
    ],
    ['4803333037c1c0bf', [[':status', '307'], ...FOUND]],
    [
      '88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f' +
        '6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b' +
        '2076657273696f6e3d31',
      LAST,
    ],
  ],
  'responses in Huffman coding': [
    [
      '3fe101 488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad17' +
        '1863c78f0b97c8e9ae82ae43d3',
      [[':status', '302'], ...FOUND],
    ],
    ['4883640effc1c0bf', [[':status', '307'], ...FOUND]],
    [
      '88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335' +
        'dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
      LAST,
    ],
  ],
};

describe('a decoder of field blocks', () => {
  for (const [name, blocks] of Object.entries(EXAMPLES)) {
    it(`reads ${name} (RFC 7541 Appendix C)`, () => {
      const decoder = fresh();
      for (const [hex, lines] of blocks) assert.deepEqual(linesOf(decoder, hex), lines);
    });
  }

  it('reads each kind of line (RFC 7541 Appendix C.2)', () => {
    const decoder = fresh();
    const custom = `40${string('custom-key')}${string('custom-header')}`;
    assert.deepEqual(linesOf(decoder, custom), [['custom-key', 'custom-header']]);
    assert.deepEqual(linesOf(decoder, `04${string('/sample/path')}`), [[':path', '/sample/path']]);
    assert.deepEqual(linesOf(decoder, `10${string('password')}${string('secret')}`), [
      ['password', 'secret'],
    ]);
    assert.deepEqual(linesOf(decoder, '82'), [[':method', 'GET']]);
    assert.deepEqual(linesOf(decoder, 'be'), [['custom-key', 'custom-header']], 'the newest');
    assertFault('bf', 'no line 63 in the table');
  });

  it('says how each line wants to be treated', () => {
    const decoder = fresh();
    const { fields } = decoder.decode(
      Buffer.from(
        `82 41${string('a')} 01${string('b')} 11${string('c')}`.replaceAll(' ', ''),
        'hex',
      ),
    );
    assert.deepEqual(
      fields.map(({ value, indexing }) => [value, indexing]),
      [
        ['GET', 'indexed'],
        ['a', 'indexed'],
        ['b', 'plain'],
        ['c', 'never'],
      ],
    );
  });

  it('gives the same object for a line as long as a table holds it', () => {
    const decoder = fresh();
    const [first] = decoder.decode(Buffer.from(`40${string('a')}${string('b')}`, 'hex')).fields;
    const [again, method] = decoder.decode(Buffer.from('be82', 'hex')).fields;
    assert.equal(first, again);
    assert.equal(method, decoder.decode(Buffer.from('82', 'hex')).fields[0]);
  });

  it('takes names from both tables', () => {
    const decoder = fresh();
    linesOf(decoder, `40${string('mine')}${string('1')}`);
    assert.deepEqual(linesOf(decoder, `7e${string('2')} 0f30${string('3')} 0f2e${string('4')}`), [
      ['mine', '2'],
      ['mine', '3'],
      ['www-authenticate', '4'],
    ]);
  });

  it('reads an empty block, and empty strings', () => {
    assert.deepEqual(linesOf(fresh(), ''), []);
    assert.deepEqual(linesOf(fresh(), '000000'), [['', '']]);
    assert.deepEqual(linesOf(fresh(), '0180'), [[':authority', '']], 'coded');
  });

  it('reads strings of any length', () => {
    const text = 'x'.repeat(20_000);
    const length = '7fa19b01';
    const hex = `01${length}${Buffer.from(text).toString('hex')}`;
    assert.deepEqual(linesOf(fresh(), hex), [[':authority', text]]);
  });
});

describe('a table size in a block', () => {
  it('empties the table, and lets it grow again, before the first line', () => {
    const decoder = fresh();
    linesOf(decoder, `40${string('a')}${string('b')}`);
    assert.deepEqual(linesOf(decoder, '20 3fe11f 82'), [[':method', 'GET']]);
    assert.throws(() => linesOf(decoder, 'be'), { message: 'no line 62 in the table' });
  });

  it('drops what does not fit', () => {
    const decoder = fresh();
    linesOf(decoder, `40${string('a')}${string('1')}40${string('b')}${string('2')}`);
    assert.deepEqual(linesOf(decoder, '3f03be'), [['b', '2']], '34 bytes');
    assert.throws(() => linesOf(decoder, 'bf'), { message: 'no line 63 in the table' });
  });

  it('may be all that there is', () => {
    assert.deepEqual(linesOf(fresh(), '20'), []);
  });

  it('is a fault beyond what we allow', () => {
    linesOf(fresh(), '3fe11f');
    assertFault('3fe21f', 'a table of 4097 bytes');
  });

  it('is a fault behind a line', () => {
    assertFault('8220', 'a table size within a block');
  });
});

describe('a block with a fault', () => {
  const faults: Readonly<Record<string, string>> = {
    '80': 'no line 0 in the table',
    be: 'no line 62 in the table',
    '7e': 'no line 62 in the table',
    ff: 'an integer that breaks off',
    ff80: 'an integer that breaks off',
    ffffffff7f: 'no line 268435582 in the table',
    ffffffffff00: 'an integer out of bounds',
    ff8080808001: 'an integer out of bounds',
    '40': 'a string that is missing',
    '4001': 'a string that breaks off',
    '400161': 'a string that is missing',
    '40016102': 'a string that breaks off',
    '4001617f': 'an integer that breaks off',
    '417fffffff7f': 'a string that breaks off',
    '4181ff': 'a string that is no Huffman coding',
    '4182': 'a string that breaks off',
  };
  for (const [hex, message] of Object.entries(faults)) {
    it(`is refused: ${hex}, ${message}`, () => {
      assertFault(hex, message);
    });
  }

  it('is refused at every cut but those between lines', () => {
    const block = `82 41${string('abc')} 00${string('d')}${string('ef')} ff8001`.replaceAll(
      ' ',
      '',
    );
    const ends = new Set([0, 2, 12, 24]);
    for (let at = 0; at < block.length; at += 2) {
      const part = block.slice(0, at);
      if (ends.has(at)) linesOf(fresh(), part);
      else assert.throws(() => linesOf(fresh(), part), { code: COMPRESSION_ERROR }, part);
    }
  });
});

describe('a list that is too large', () => {
  const lines = ['a', 'b', 'c'].map((name) => `40${string(name)}${string('1')}`).join('');

  it('is read to its end and not kept', () => {
    for (const limits of [{ maxBytes: 3 * 34 - 1 }, { maxLines: 2 }]) {
      const decoder = fresh(limits);
      const { fields, isTooLarge } = decoder.decode(Buffer.from(lines, 'hex'));
      assert(isTooLarge);
      assert.equal(fields.length, 2);
      assert.deepEqual(linesOf(decoder, 'be'), [['c', '1']], 'the table has the last line too');
    }
  });

  it('is as large as the limits say', () => {
    const decoder = fresh({ maxBytes: 3 * 34, maxLines: 3 });
    assert.equal(linesOf(decoder, lines).length, 3);
  });

  it('does not become smaller by what follows', () => {
    const decoder = fresh({ maxBytes: 100 });
    const large = `00${string('a')}${string('x'.repeat(100))}00${string('b')}00`;
    const { fields, isTooLarge } = decoder.decode(Buffer.from(large, 'hex'));
    assert(isTooLarge);
    assert.deepEqual(fields, []);
  });
});
