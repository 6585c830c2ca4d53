import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DynamicTable } from './dynamic-table.ts';
import { Field } from './field.ts';

/** A line of 32 + 1 + `length` bytes. */
function line(name: string, length = 0): Field {
  return new Field(name, 'x'.repeat(length), 'indexed');
}

function names(table: DynamicTable): string {
  return Array.from({ length: table.count }, (_, at) => table.at(at)?.name).join('');
}

describe('a dynamic table', () => {
  it('holds the newest line first', () => {
    const table = new DynamicTable();
    for (const name of 'abc') table.add(line(name));
    assert.equal(names(table), 'cba');
    assert.equal(table.at(3), undefined);
  });

  it('numbers its lines without ever using a number twice', () => {
    const table = new DynamicTable();
    table.resize(33);
    for (const [at, name] of ['a', 'b', 'c'].entries()) {
      assert.equal(table.nextNumber, at);
      table.add(line(name));
    }
    assert.equal(table.count, 1);
  });

  it('drops the oldest lines, and says so, when a new one needs their place', () => {
    let dropped = '';
    const table = new DynamicTable(({ name }) => (dropped += name));
    table.resize(100);
    for (const name of 'abc') table.add(line(name));
    assert.equal(names(table), 'cba', '3 × 33 bytes');
    table.add(line('d', 2));
    assert.equal(names(table), 'dc');
    assert.equal(dropped, 'ab');
  });

  it('drops the oldest lines when it shrinks, and keeps the rest when it grows again', () => {
    const table = new DynamicTable();
    for (const name of 'abc') table.add(line(name));
    table.resize(66);
    assert.equal(names(table), 'cb');
    table.resize(4_096);
    assert.equal(table.maxBytes, 4_096);
    assert.equal(names(table), 'cb');
    table.resize(0);
    assert.equal(table.count, 0);
  });

  it('is emptied by a line that is larger than the whole', () => {
    const table = new DynamicTable();
    table.resize(40);
    table.add(line('a'));
    table.add(line('b', 8));
    assert.equal(table.count, 0);
    table.add(line('c', 7));
    assert.equal(names(table), 'c', '40 bytes just fit');
  });

  it('goes on for far more lines than it has places', () => {
    const table = new DynamicTable();
    for (let at = 0; at < 1_000; at += 1) table.add(line(String(at)));
    assert.equal(table.count, 4_096 / 35 - ((4_096 / 35) % 1));
    assert.equal(table.at(0)?.name, '999');
    assert.equal(table.at(table.count - 1)?.name, String(1_000 - table.count));
  });
});
