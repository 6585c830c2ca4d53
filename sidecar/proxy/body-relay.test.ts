import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, it } from 'node:test';
import { defaultHttp1Limits } from '../http1/limits.ts';
import { MessageBody } from '../http1/message-body.ts';
import { BodyRelay } from './body-relay.ts';

const READ_BYTES = 65_536;

/** The other side: takes a piece when it is told to, and keeps what it has taken. */
class Reader extends Writable {
  readonly taken: string[] = [];
  readonly memory = new Set<ArrayBufferLike>();
  readonly #waiting: (() => void)[] = [];
  isSlow = false;

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    const take = (): void => {
      this.taken.push(bytes.toString('latin1'));
      this.memory.add(bytes.buffer);
      done();
    };
    if (this.isSlow) this.#waiting.push(take);
    else take();
  }

  /** Takes everything that waits. */
  async takeAll(): Promise<void> {
    this.isSlow = false;
    this.#waiting.shift()?.();
    if (this.writableLength === 0) return;
    await new Promise((resolve) => this.once('drain', resolve));
  }
}

interface Relayed {
  readonly reader: Reader;
  /** Reads as a socket does, over what was read before, and relays it. */
  readonly read: (text: string) => Promise<void>;
}

function relayTo(reader: Reader): Relayed {
  const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
  const relay = new BodyRelay(readBuffer);
  const body = new MessageBody(defaultHttp1Limits);
  body.begin('close', 0);
  return {
    reader,
    read: async (text) => {
      const bytes = readBuffer.subarray(0, readBuffer.write(text, 'latin1'));
      body.take(bytes);
      relay.write(reader, bytes, body);
      // Node tells of a write in the next tick.
      await new Promise(setImmediate);
    },
  };
}

describe('a body on its way', () => {
  it('stands in the same memory again once it is written', async () => {
    const { reader, read } = relayTo(new Reader());

    for (const letter of ['a', 'b', 'c']) await read(letter.repeat(READ_BYTES));

    assert.deepEqual(
      reader.taken.map((text) => [text.length, text[0], text.at(-1)]),
      ['a', 'b', 'c'].map((letter) => [READ_BYTES, letter, letter]),
    );
    assert.equal(reader.memory.size, 1);
  });

  it('stays as it was read until the other side has taken it', async () => {
    const { reader, read } = relayTo(new Reader());
    reader.isSlow = true;

    for (const letter of ['a', 'b', 'c']) await read(letter.repeat(READ_BYTES));
    await reader.takeAll();

    assert.deepEqual(
      reader.taken.map((text) => [text.length, text[0], text.at(-1)]),
      ['a', 'b', 'c'].map((letter) => [READ_BYTES, letter, letter]),
    );
  });

  it('takes no more memory than it has where small pieces wait', async () => {
    const { reader, read } = relayTo(new Reader());
    reader.isSlow = true;

    for (let i = 0; i < 500; i += 1) await read(String(i).padStart(100, '.'));
    await reader.takeAll();

    assert.equal(reader.taken.join('').length, 50_000);
    const bytes = [...reader.memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
    assert(bytes < 3 * READ_BYTES, `${String(bytes)} bytes`);
  });

  it('is forgotten with a reader that has gone', async () => {
    const { reader, read } = relayTo(new Reader());
    reader.on('error', () => undefined);
    reader.isSlow = true;

    await read('a'.repeat(READ_BYTES));
    reader.destroy(new Error('gone'));
    await read('b'.repeat(READ_BYTES));

    assert.deepEqual(reader.taken, []);
  });
});
