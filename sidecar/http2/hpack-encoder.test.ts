import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Field, type Indexing } from './field.ts';
import { HpackDecoder } from './hpack-decoder.ts';
import { HpackEncoder } from './hpack-encoder.ts';

function line(name: string, value: string, indexing: Indexing = 'indexed'): Field {
  return new Field(name, value, indexing);
}

function hex(encoder: HpackEncoder, ...fields: readonly Field[]): string {
  return encoder.encode(fields).toString('hex');
}

const GET = [line(':method', 'GET'), line(':scheme', 'http'), line(':path', '/')];

describe('an encoder of field blocks', () => {
  it('writes requests as RFC 7541 does in C.3', () => {
    const encoder = new HpackEncoder();
    const authority = line(':authority', 'www.example.com');
    assert.equal(hex(encoder, ...GET, authority), '828684410f7777772e6578616d706c652e636f6d');
    assert.equal(
      hex(encoder, ...GET, authority, line('cache-control', 'no-cache')),
      '828684be58086e6f2d6361636865',
    );
    assert.equal(
      hex(
        encoder,
        line(':method', 'GET'),
        line(':scheme', 'https'),
        line(':path', '/index.html'),
        authority,
        line('custom-key', 'custom-value'),
      ),
      '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
    );
  });

  it('leaves a plain line out of the table', () => {
    const encoder = new HpackEncoder();
    const path = line(':path', '/sample/path', 'plain');
    assert.equal(hex(encoder, path), '040c2f73616d706c652f70617468');
    assert.equal(hex(encoder, path), '040c2f73616d706c652f70617468');
  });

  it('finds a plain line in a table where somebody else put it', () => {
    const encoder = new HpackEncoder();
    assert.equal(hex(encoder, line('a', 'b'), line('a', 'b', 'plain')), '4001610162be');
    assert.equal(hex(encoder, line(':method', 'GET', 'plain')), '82');
  });

  it('writes a secret so that no table may hold it, even if one does', () => {
    const encoder = new HpackEncoder();
    const secret = line('password', 'secret', 'never');
    assert.equal(hex(encoder, secret), '100870617373776f726406736563726574');
    hex(encoder, line('password', 'secret'));
    assert.equal(hex(encoder, secret), '100870617373776f726406736563726574');
    assert.equal(hex(encoder, line('authorization', 'x', 'never')), '1f080178', 'name 23');
  });

  it('counts lines from the newest', () => {
    const encoder = new HpackEncoder();
    const [a, b, c] = [line('a', ''), line('b', ''), line('c', '')];
    hex(encoder, a, b, c);
    assert.equal(hex(encoder, a, b, c), 'c0bfbe');
    hex(encoder, line('d', ''));
    assert.equal(hex(encoder, a), 'c1');
  });

  it('tells values of the same name apart', () => {
    const encoder = new HpackEncoder();
    hex(encoder, line('a', '1'), line('a', '2'));
    assert.equal(hex(encoder, line('a', '1'), line('a', '2')), 'bfbe');
    assert.equal(hex(encoder, line('a', '3', 'plain')), '0001610133');
  });

  it('forgets a line that the table has dropped', () => {
    const encoder = new HpackEncoder();
    hex(encoder, line('a', '1'), line('a', '2'));
    encoder.limitTable(34);
    const resized = '3f03';
    assert.equal(hex(encoder, line('a', '1', 'plain')), `${resized}0001610131`);
    assert.equal(hex(encoder, line('a', '2', 'plain')), 'be');
    assert.equal(hex(encoder, line('a', '1')), '4001610131');
    assert.equal(hex(encoder, line('a', '1')), 'be');
    assert.equal(hex(encoder, line('b', '1'), line('b', '1')), '4001620131be');
    assert.equal(hex(encoder, line('a', '1', 'plain')), '0001610131');
  });

  it('does not add a line that would only empty the table', () => {
    const encoder = new HpackEncoder();
    hex(encoder, line('a', '1'));
    encoder.limitTable(40);
    const large = line('a', 'x'.repeat(8));
    assert.equal(hex(encoder, large), '3f09000161087878787878787878');
    assert.equal(hex(encoder, line('a', '1')), 'be');
  });

  it('writes integers as RFC 7541 does in C.1', () => {
    const encoder = new HpackEncoder();
    const [short, longer] = ['x'.repeat(126), 'x'.repeat(127)];
    assert.match(hex(encoder, line('a', short, 'plain')), /^0001617e7878/);
    assert.match(hex(encoder, line('a', longer, 'plain')), /^0001617f007878/);
    assert.match(hex(encoder, line('a', 'x'.repeat(127 + 127), 'plain')), /^0001617f7f7878/);
    assert.match(hex(encoder, line('a', 'x'.repeat(127 + 128), 'plain')), /^0001617f80017878/);
    assert.match(hex(encoder, line('a', 'x'.repeat(1_337 + 127), 'plain')), /^0001617fb90a7878/);
  });

  it('writes blocks of any size', () => {
    const text = 'x'.repeat(100_000);
    const encoder = new HpackEncoder();
    const block = encoder.encode([line('a', '1'), line('b', text, 'plain'), line('c', '2')]);
    const decoder = new HpackDecoder({ maxBytes: 2 ** 20, maxLines: 3 });
    assert.deepEqual(
      decoder.decode(block).fields.map(({ value }) => value),
      ['1', text, '2'],
    );
  });

  it('writes bytes as Latin-1', () => {
    assert.equal(hex(new HpackEncoder(), line('a', '\xe9\xff', 'plain')), '00016102e9ff');
  });
});

describe('the size of the table', () => {
  it('is told once, before the first line', () => {
    const encoder = new HpackEncoder();
    encoder.limitTable(0);
    assert.equal(hex(encoder, line(':method', 'GET')), '2082');
    assert.equal(hex(encoder, line(':method', 'GET')), '82');
  });

  it('is not told when it stays as it is', () => {
    const encoder = new HpackEncoder();
    encoder.limitTable(4_096);
    encoder.limitTable(0xff_ff_ff_ff);
    assert.equal(hex(encoder), '', 'we never use more than 4 096 bytes');
  });

  it('is told as the smallest in between and the last', () => {
    const encoder = new HpackEncoder();
    for (const size of [100, 0, 50, 30]) encoder.limitTable(size);
    assert.equal(hex(encoder), '203e');
    encoder.limitTable(20);
    encoder.limitTable(4_096);
    assert.equal(hex(encoder), '343fe11f');
    encoder.limitTable(20);
    encoder.limitTable(4_096);
    encoder.limitTable(10);
    assert.equal(hex(encoder), '2a', 'the last is the smallest');
  });

  it('drops lines at once', () => {
    const encoder = new HpackEncoder();
    hex(encoder, line('a', '1'));
    encoder.limitTable(0);
    encoder.limitTable(4_096);
    assert.equal(hex(encoder, line('a', '1')), '203fe11f4001610131');
  });
});
