import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeHuffman } from './huffman.ts';

function decoded(hex: string): string | undefined {
  const bytes = Buffer.from(hex, 'hex');
  return decodeHuffman(bytes, 0, bytes.length);
}

/** Bits as bytes; the last one is filled with `padding`. */
function packed(bits: string, padding = '1'): string {
  const whole = bits.padEnd(Math.ceil(bits.length / 8) * 8, padding);
  return (whole.match(/.{8}/g) ?? [])
    .map((byte) => Number.parseInt(byte, 2).toString(16).padStart(2, '0'))
    .join('');
}

/** The strings that RFC 7541 codes in C.4 and C.6. */
const EXAMPLES: Readonly<Record<string, string>> = {
  f1e3c2e5f23a6ba0ab90f4ff: 'www.example.com',
  a8eb10649cbf: 'no-cache',
  '25a849e95ba97d7f': 'custom-key',
  '25a849e95bb8e8b4bf': 'custom-value',
  '6402': '302',
  aec3771a4b: 'private',
  d07abe941054d444a8200595040b8166e082a62d1bff: 'Mon, 21 Oct 2013 20:13:21 GMT',
  '9d29ad171863c78f0b97c8e9ae82ae43d3': 'https://www.example.com',
  '640eff': '307',
  '9bd9ab': 'gzip',
  '94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007':
    'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1',
};

/** Codes of RFC 7541 Appendix B: at least one of each length. */
const CODES: readonly (readonly [byte: number, code: string])[] = [
  [0x30, '00000'],
  [0x20, '010100'],
  [0x3a, '1011100'],
  [0x26, '11111000'],
  [0x58, '11111100'],
  [0x21, '1111111000'],
  [0x7c, '11111111100'],
  [0x23, '111111111010'],
  [0x00, '1111111111000'],
  [0x5e, '11111111111100'],
  [0x3c, '111111111111100'],
  [0x5c, '1111111111111110000'],
  [0x80, '11111111111111100110'],
  [0x99, '111111111111111011100'],
  [0x81, '1111111111111111010010'],
  [0x01, '11111111111111111011000'],
  [0x09, '111111111111111111101010'],
  [0xc7, '1111111111111111111101100'],
  [0xc0, '11111111111111111111100000'],
  [0xcb, '111111111111111111111011110'],
  [0x02, '1111111111111111111111100010'],
  [0xf9, '1111111111111111111111111110'],
  [0x0a, '111111111111111111111111111100'],
  [0x16, '111111111111111111111111111110'],
];

const END_MARK = '1'.repeat(30);

describe('Huffman coding', () => {
  for (const [hex, text] of Object.entries(EXAMPLES)) {
    it(`reads "${text}" as RFC 7541 codes it`, () => {
      assert.equal(decoded(hex), text);
    });
  }

  for (const [byte, code] of CODES) {
    it(`reads byte ${byte} at every bit of a byte`, () => {
      // Each "0" in front moves what follows by five bits.
      for (let before = 0; before < 8; before += 1) {
        const text = '0'.repeat(before) + String.fromCharCode(byte);
        assert.equal(decoded(packed('00000'.repeat(before) + code)), text);
      }
    });
  }

  it('reads an empty string', () => {
    assert.equal(decoded(''), '');
  });

  it('reads the part that is meant and nothing around it', () => {
    const bytes = Buffer.from('ffa8eb10649cbf00', 'hex');
    assert.equal(decodeHuffman(bytes, 1, 7), 'no-cache');
    assert.equal(decodeHuffman(bytes, 1, 6), undefined, 'a code that the end cuts off');
  });

  it('takes up to seven ones as padding', () => {
    for (let zeros = 1; zeros <= 8; zeros += 1) {
      assert.equal(decoded(packed('00000'.repeat(zeros))), '0'.repeat(zeros));
    }
  });

  it('refuses padding of a whole byte', () => {
    assert.equal(decoded(`${packed('00000')}ff`), undefined);
    assert.equal(decoded('ff'), undefined);
  });

  it('refuses padding that is not all ones', () => {
    assert.equal(decoded(packed('00000', '0')), undefined);
    assert.equal(decoded(packed('0000011', '0')), undefined);
    assert.equal(decoded(packed('000000000011111', '0')), undefined);
  });

  it('refuses a long code that the end cuts off', () => {
    assert.equal(decoded('fffffa'), undefined);
  });

  it('refuses an end mark within the string and at its end', () => {
    assert.equal(decoded(packed(END_MARK)), undefined);
    assert.equal(decoded(packed(`00000${END_MARK}00000`)), undefined);
  });

  it('reads strings that are longer than any before', () => {
    const text = '0'.repeat(40_000);
    assert.equal(decoded(packed('00000'.repeat(text.length))), text);
  });
});
