import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '../../test/support/redis.ts';
import { StoredLimit } from '../limiter/stored-limit.ts';
import { ACQUIRE, type Reply } from '../limiter/token-bucket.ts';
import { Attempt, toReply, type Router } from './attempt.ts';
import type { CommandChannel, CommandSink } from './redis-node.ts';
import { decideOneByOne } from './split-call.ts';
import type { FailureKind, StoreCall } from './store.ts';

const limit = new StoredLimit(1, { capacity: 5, unitsPerToken: 10, unitsPerTick: 1, tickUs: 1 });

/** A server that answers each command by the next of its lines: an error's text, or a reply. */
class FakeChannel implements CommandChannel {
  isReady = true;
  readonly lastError = 'fake error';
  readonly commands: string[][] = [];
  reconnects = 0;
  readonly #answers: (string | readonly unknown[])[];

  constructor(...answers: readonly (string | readonly unknown[])[]) {
    this.#answers = [...answers];
  }

  send(name: string, args: readonly (string | number)[], sink: CommandSink): void {
    this.commands.push([name, ...args.map(String)]);
    if (name === 'asking') return;
    const answer = this.#answers.shift();
    if (typeof answer === 'string') sink.onError(new Error(answer));
    else if (answer !== undefined) sink.onReply(answer);
  }

  reconnect(): void {
    this.reconnects += 1;
  }

  get names(): string[] {
    return this.commands.map(([name = '', script = '']) => `${name} ${script}`.trim());
  }
}

class FakeRouter implements Router {
  readonly script = 'TEXT';
  readonly digest = 'SHA';
  doubts = 0;
  moved: string | undefined = undefined;
  readonly #home: FakeChannel;
  readonly #away: FakeChannel | undefined;

  constructor(home: FakeChannel, away?: FakeChannel) {
    this.#home = home;
    this.#away = away;
  }

  nodeFor(): CommandChannel {
    return this.#home;
  }

  onMoved(_call: StoreCall, address: string): CommandChannel | undefined {
    this.moved = address;
    return this.#away;
  }

  nodeAt(): CommandChannel | undefined {
    return this.#away;
  }

  decideOneByOne(call: StoreCall): void {
    decideOneByOne(call, this);
  }

  onDoubt(): void {
    this.doubts += 1;
  }
}

class RecordedCall implements StoreCall {
  settled = false;
  readonly keys: readonly string[];
  readonly limits: readonly StoredLimit[];
  readonly operations: readonly number[];
  readonly replies: Reply[] = [];
  readonly failures: (readonly [FailureKind, string])[] = [];

  constructor(
    operations: readonly number[] = [ACQUIRE, 1, 0, 1, 1, 1],
    keys: readonly string[] = ['k1'],
  ) {
    this.keys = keys;
    this.limits = keys.map(() => limit);
    this.operations = operations;
  }

  onReply(reply: Reply): void {
    this.settled = true;
    this.replies.push(reply);
  }

  onFailure(kind: FailureKind, detail: string): void {
    this.settled = true;
    this.failures.push([kind, detail]);
  }
}

/** The place of the first limit of a call. */
const FIRST_LIMIT = '\0\x01';
const GRANTED = [7, 1, 0, 40];

describe('a call on its way', () => {
  test('comes back with integers and texts', () => {
    assert.deepEqual(toReply([1, 2, Buffer.from('text')]), [1, 2, 'text']);
    assert.equal(toReply('OK'), undefined);
  });

  test('goes out by digest, once', () => {
    const [channel, call] = [new FakeChannel(GRANTED), new RecordedCall()];

    new Attempt(call, new FakeRouter(channel)).start();

    assert.deepEqual(channel.names, ['evalsha SHA']);
    assert.deepEqual(call.replies, [GRANTED]);
  });

  test('takes the script along when the server does not know it, once', () => {
    const [channel, call] = [new FakeChannel('NOSCRIPT x', GRANTED), new RecordedCall()];
    new Attempt(call, new FakeRouter(channel)).start();
    assert.deepEqual(channel.names, ['evalsha SHA', 'eval TEXT']);
    assert.equal(call.replies.length, 1);

    const [again, lost] = [new FakeChannel('NOSCRIPT x', 'NOSCRIPT y'), new RecordedCall()];
    new Attempt(lost, new FakeRouter(again)).start();
    assert.deepEqual(lost.failures, [['script', 'NOSCRIPT y']]);
  });

  test('follows a slot that moved', () => {
    const [home, away] = [new FakeChannel('MOVED 1 10.0.0.2:6379'), new FakeChannel(GRANTED)];
    const router = new FakeRouter(home, away);
    const call = new RecordedCall();

    new Attempt(call, router).start();

    assert.equal(router.moved, '10.0.0.2:6379');
    assert.deepEqual(away.names, ['evalsha SHA']);
    assert.equal(call.replies.length, 1);
  });

  test('asks the server that is taking over, with the script', () => {
    const [home, away] = [new FakeChannel('ASK 1 10.0.0.2:6379'), new FakeChannel(GRANTED)];
    const call = new RecordedCall();

    new Attempt(call, new FakeRouter(home, away)).start();

    assert.deepEqual(away.names, ['asking', 'eval TEXT']);
    assert.equal(call.replies.length, 1);
  });

  test('fails when the server it is sent to is not known', () => {
    const [call, router] = [
      new RecordedCall(),
      new FakeRouter(new FakeChannel('ASK 1 10.0.0.2:6379')),
    ];

    new Attempt(call, router).start();

    assert.deepEqual(call.failures, [['down', 'no server is known for the slot']]);
    assert.equal(router.doubts, 1);
  });

  test('fails at once without a connection', () => {
    const [channel, call] = [new FakeChannel(), new RecordedCall()];
    channel.isReady = false;

    new Attempt(call, new FakeRouter(channel)).start();

    assert.deepEqual(call.failures, [['down', 'fake error']]);
    assert.deepEqual(channel.commands, []);
  });

  test('drops the socket of a server that became a replica, and tries once more', async () => {
    const [channel, call] = [new FakeChannel('READONLY x', GRANTED), new RecordedCall()];

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('the answer is in', () => call.settled);

    assert.equal(channel.reconnects, 1);
    assert.equal(call.replies.length, 1);
  });

  test('tries once more a moment after LOADING, and no third time', async () => {
    const [channel, call] = [
      new FakeChannel('LOADING x', 'LOADING y', GRANTED),
      new RecordedCall(),
    ];
    const router = new FakeRouter(channel);

    new Attempt(call, router).start();
    await eventually('it failed', () => call.settled);

    assert.deepEqual(call.failures, [['busy', 'LOADING y']]);
    assert.equal(router.doubts, 2);
  });

  test('is not sent again once nobody waits', async () => {
    const [channel, call, other] = [
      new FakeChannel('LOADING x'),
      new RecordedCall(),
      new RecordedCall(),
    ];
    new Attempt(call, new FakeRouter(channel)).start();

    call.settled = true;
    const later = new FakeChannel('LOADING x', GRANTED);
    new Attempt(other, new FakeRouter(later)).start();
    await eventually('a retry that began later is answered', () => other.settled);

    assert.deepEqual(channel.names, ['evalsha SHA']);
  });

  test('of which nobody waits for the error is left alone', () => {
    const [channel, call] = [new FakeChannel('NOSCRIPT x'), new RecordedCall()];
    const held: CommandSink[] = [];
    channel.send = (_name, _args, sink) => held.push(sink);
    new Attempt(call, new FakeRouter(channel)).start();

    call.settled = true;
    held[0]?.onError(new Error('NOSCRIPT x'));

    assert.equal(held.length, 1);
    assert.deepEqual(call.failures, []);
  });

  test('whose reply is no list fails', () => {
    const call = new RecordedCall();
    const channel = new FakeChannel();
    channel.send = (_name, _args, sink) => {
      sink.onReply('OK');
    };

    new Attempt(call, new FakeRouter(channel)).start();

    assert.deepEqual(call.failures, [['script', 'the reply is not a list']]);
  });
});

describe('a call one key at a time', () => {
  const both = [ACQUIRE, 3, 0, 2, 1, 1, 2, 1];

  test('refunds what an earlier bucket granted in excess', async () => {
    const channel = new FakeChannel('TRYAGAIN x', [7, 3, 0, 20], [8, 1, 90, 0], [9, 2, 0, 40]);
    const call = new RecordedCall(both, ['k1', 'k2']);

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('the answer is in', () => call.settled);

    assert.deepEqual(
      channel.commands.slice(1).map((command) => command.slice(3)),
      [
        ['k1', FIRST_LIMIT, 'a\x03\0\x01\x01\x01', limit.text],
        ['k2', FIRST_LIMIT, 'a\x03\0\x01\x01\x01', limit.text],
        ['k1', FIRST_LIMIT, 'r\x02\0\x01\x01\x01', limit.text],
      ],
    );
    assert.deepEqual(call.replies, [[9, 1, 90, 40, 0]]);
  });

  test('asks no further bucket once one refused, for ever if that is its wait', async () => {
    const channel = new FakeChannel('TRYAGAIN x', [7, 0, -1, 20]);
    const call = new RecordedCall(both, ['k1', 'k2']);

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('the answer is in', () => call.settled);

    assert.deepEqual(call.replies, [[7, 0, -1, 20, 0]]);
  });

  test('says which key is under a newer limit', async () => {
    const channel = new FakeChannel('TRYAGAIN x', [7, 3, 0, 20], [8, 3, 0, 20, 1, '2 9 10 1 1']);
    const call = new RecordedCall(both, ['k1', 'k2']);

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('the answer is in', () => call.settled);

    assert.deepEqual(call.replies, [[8, 3, 0, 20, 20, 2, '2 9 10 1 1']]);
  });

  test('gives everything back for a foreign value', async () => {
    const channel = new FakeChannel('TRYAGAIN x', [7, 3, 0, 20], [8, -1, 0, -1], [9, 3, 0, 50]);
    const call = new RecordedCall(both, ['k1', 'k2']);

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('the answer is in', () => call.settled);

    assert.equal(channel.commands.at(-1)?.[5], 'r\x03\0\x01\x01\x01');
    assert.deepEqual(call.replies, [[9, -1, 0, 50, -1]]);
  });

  test('fails as the one key did', async () => {
    const channel = new FakeChannel('TRYAGAIN x', 'OOM no memory');
    const call = new RecordedCall(both, ['k1', 'k2']);

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('it failed', () => call.settled);

    assert.deepEqual(call.failures, [['oom', 'OOM no memory']]);
  });

  test('fails when a key is named that the call does not have', async () => {
    const channel = new FakeChannel('TRYAGAIN x');
    const call = new RecordedCall([ACQUIRE, 1, 0, 1, 3, 1], ['k1', 'k2']);

    new Attempt(call, new FakeRouter(channel)).start();
    await eventually('it failed', () => call.settled);

    assert.equal(call.failures[0]?.[0], 'script');
  });
});
