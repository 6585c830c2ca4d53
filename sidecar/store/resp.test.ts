import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { encodeCommand } from './resp.ts';

describe('a command in RESP', () => {
  it('is an array of bulk strings whose lengths count bytes', () => {
    assert.equal(
      encodeCommand('set', ['ключ', 1_023, 1_024, -1]).toString(),
      '*5\r\n$3\r\nset\r\n$8\r\nключ\r\n$4\r\n1023\r\n$4\r\n1024\r\n$2\r\n-1\r\n',
    );
  });

  it('is what the client itself would write', () => {
    const arg = fc.oneof(fc.string({ unit: 'binary' }), fc.maxSafeInteger());

    fc.assert(
      fc.property(
        fc.stringMatching(/^[a-z]{1,9}$/),
        fc.array(arg, { maxLength: 20 }),
        (name, args) => {
          const command = new Command(name, [...args]);
          command.promise.catch(() => undefined);

          assert.equal(encodeCommand(name, args).toString(), String(command.toWritable({})));
        },
      ),
    );
  });
});
