import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  FLAG,
  frame,
  framesIn,
  PREFACE_BYTES,
  rawFrame,
  settings,
  shown,
  uint32,
} from '../../test/support/http2-frames.ts';
import { fieldsOf, Side } from '../../test/support/http2-side.ts';
import type { EndpointOptions } from './endpoint.ts';
import type { Stream } from './stream.ts';

const { ack, endHeaders, endStream, padded } = FLAG;

/** GET / from a, as the static table has it. */
const GET = Buffer.from('828684010161', 'hex');
const GET_TEXT = ':method=GET :scheme=http :path=/ :authority=a';
/** 200. */
const OK = Buffer.from('88', 'hex');
/** t: 1 */
const TRAILERS = Buffer.from('0001740131', 'hex');

function request(id: number, flags: number = endStream): Buffer {
  return frame('HEADERS', id, GET, flags | endHeaders);
}

function trailers(id: number): Buffer {
  return frame('HEADERS', id, TRAILERS, endHeaders | endStream);
}

function windowUpdate(id: number, by: number): Buffer {
  return frame('WINDOW_UPDATE', id, uint32(by));
}

function reset(id: number, code = 8): Buffer {
  return frame('RST_STREAM', id, uint32(code));
}

/** A server whose client has said hello. */
function server(options: Partial<EndpointOptions> = {}): Side {
  const side = new Side('server', options);
  side.receive(PREFACE_BYTES, frame('SETTINGS', 0));
  side.sent();
  return side;
}

/** A client whose server has said hello. */
function client(options: Partial<EndpointOptions> = {}, ...entries: [number, number][]): Side {
  const side = new Side('client', options);
  side.receive(frame('SETTINGS', 0, settings(...entries)));
  side.sent();
  return side;
}

function frames(side: Side): string[] {
  return shown(side.sentFrames());
}

describe('the beginning of a connection', () => {
  it('is SETTINGS and the window of the connection for a server', () => {
    assert.deepEqual(frames(new Side('server')), [
      `SETTINGS 0 ${settings([4, 100], [6, 1_000], [3, 3], [8, 1]).toString('hex')}`,
      'WINDOW_UPDATE 0 +200',
    ]);
  });

  it('is the preface in front of the same for a client', () => {
    const sent = new Side('client').sent();
    assert.deepEqual(sent.subarray(0, PREFACE_BYTES.length), PREFACE_BYTES);
    assert.deepEqual(shown(sent.subarray(PREFACE_BYTES.length)), [
      `SETTINGS 0 ${settings([4, 100], [6, 1_000], [2, 0]).toString('hex')}`,
      'WINDOW_UPDATE 0 +200',
    ]);
  });

  it('may come in any pieces', () => {
    const bytes = Buffer.concat([PREFACE_BYTES, frame('SETTINGS', 0), request(1)]);
    for (let at = 1; at < bytes.length; at += 1) {
      const side = new Side('server');
      side.sent();
      side.receive(bytes.subarray(0, at));
      // Whether a frame has fields is known from its fourth byte on.
      const isHead = at < PREFACE_BYTES.length || at >= PREFACE_BYTES.length + 13;
      assert.equal(side.endpoint.isWithinHead, isHead, String(at));
      side.receive(bytes.subarray(at));
      assert(!side.endpoint.isWithinHead);
      assert.deepEqual(side.told(), [`request 1 ${GET_TEXT} END`]);
      assert.deepEqual(frames(side), ['SETTINGS 0 ACK ']);
    }
  });

  it('is a fault with another preface, from the first byte that differs', () => {
    for (let at = 0; at < PREFACE_BYTES.length; at += 1) {
      const bytes = Buffer.from(PREFACE_BYTES.subarray(0, at + 1));
      bytes[at] = 0x7e;
      const side = new Side('server');
      side.sent();
      side.receive(bytes);
      assert.deepEqual(frames(side), ['GOAWAY 0 after 0 by 1 no preface of HTTP/2']);
    }
  });

  it('is a fault when the first frame is no SETTINGS', () => {
    for (const first of [request(1), frame('PING', 0, '12345678'), windowUpdate(0, 1)]) {
      const side = new Side('server');
      side.sent();
      side.receive(PREFACE_BYTES, first);
      assert.deepEqual(frames(side), ['GOAWAY 0 after 0 by 1 the first frame is no SETTINGS']);
    }
  });
});

describe('a request that comes', () => {
  it('is told with its fields, then its data, then its trailers', () => {
    const side = server();
    side.receive(request(1, 0), frame('DATA', 1, 'abc'), trailers(1));
    assert.deepEqual(side.told(), [`request 1 ${GET_TEXT}`, 'data 1 abc', 'fields 1 t=1 END']);
    assert.equal(side.endpoint.openStreams, 1);
  });

  it('may have its fields in several frames', () => {
    const side = server();
    side.receive(frame('HEADERS', 1, GET.subarray(0, 1), endStream));
    assert(side.endpoint.isWithinHead);
    assert.deepEqual([side.endpoint.headsRead, side.endpoint.pendingHeadBytes], [0, 1]);
    side.receive(
      frame('CONTINUATION', 1, GET.subarray(1, 4)),
      frame('CONTINUATION', 1, GET.subarray(4), endHeaders),
    );
    assert.deepEqual([side.endpoint.headsRead, side.endpoint.pendingHeadBytes], [1, 0]);
    assert.deepEqual(side.told(), [`request 1 ${GET_TEXT} END`]);
  });

  it('is over when both sides have ended', () => {
    const side = server();
    side.receive(request(1, 0));
    side.endpoint.sender.fields(side.stream(1), fieldsOf('a: b'), true);
    assert.equal(side.endpoint.openStreams, 1);
    side.receive(frame('DATA', 1, 'abc', endStream));
    assert.equal(side.endpoint.openStreams, 0);
    side.receive(request(3, 0));
    side.endpoint.sender.fields(side.stream(3), fieldsOf('a: b'), true);
    side.receive(trailers(3));
    side.receive(request(5));
    side.endpoint.sender.fields(side.stream(5), fieldsOf('a: b'), true);
    assert.deepEqual(
      side.told().filter((line) => line.startsWith('over')),
      ['over 1', 'over 3', 'over 5'],
    );
    assert.deepEqual(frames(side), ['HEADERS 1 END', 'HEADERS 3 END', 'HEADERS 5 END']);
  });

  it('is told to be too large, and the connection goes on', () => {
    const side = server({ maxHeaderLines: 3 });
    side.receive(request(1), request(3));
    assert.deepEqual(side.told(), ['request 1 too large END', 'request 3 too large END']);
  });

  it('is refused above the limit, and what is under way for it is ignored', () => {
    const side = server();
    for (const id of [1, 3, 5]) side.receive(request(id));
    side.told();
    side.receive(request(7, 0), frame('DATA', 7, 'abc'), trailers(7), windowUpdate(7, 1));
    assert.deepEqual(frames(side), ['RST_STREAM 7 by 7']);
    assert.equal(side.endpoint.streamsRefused, 1);
    assert.deepEqual(side.told(), []);
    side.receive(reset(1), request(9));
    assert.deepEqual(side.told(), ['reset 1 8', 'over 1', `request 9 ${GET_TEXT} END`]);
  });

  it('keeps the table in step even when it is refused', () => {
    const side = server({ maxConcurrentStreams: 0 });
    const indexed = frame('HEADERS', 1, Buffer.from('4001610162', 'hex'), endHeaders);
    side.receive(indexed, frame('HEADERS', 3, Buffer.from('be', 'hex'), endHeaders));
    assert.deepEqual(frames(side), ['RST_STREAM 1 by 7', 'RST_STREAM 3 by 7']);
  });
});

describe('a response that comes', () => {
  it('is told from its interim responses to its trailers', () => {
    const side = client();
    const stream = side.open(true, ':method: GET');
    const fields = frame('HEADERS', 1, OK, endHeaders);
    side.receive(fields, fields);
    stream.hasFields = true;
    side.receive(frame('DATA', 1, 'abc'), trailers(1));
    assert.deepEqual(side.told(), [
      'fields 1 :status=200',
      'fields 1 :status=200',
      'data 1 abc',
      'fields 1 t=1 END',
      'over 1',
    ]);
  });

  it('may come to several requests at once', () => {
    const side = client();
    side.open(false, ':method: POST');
    side.open(true, ':method: GET');
    assert.deepEqual(frames(side), ['HEADERS 1', 'HEADERS 3 END']);
    side.receive(frame('HEADERS', 3, OK, endHeaders | endStream));
    side.receive(frame('HEADERS', 1, OK, endHeaders | endStream));
    assert.deepEqual(side.told(), [
      'fields 3 :status=200 END',
      'over 3',
      'fields 1 :status=200 END',
    ]);
    side.endpoint.sender.end(side.stream(1), undefined);
    assert.deepEqual(side.told(), ['over 1']);
  });
});

/** What a client does wrong after its hello, and a request on stream 1 that goes on. */
const SERVER_FAULTS: Readonly<Record<string, readonly [bytes: Buffer, said: string]>> = {
  'a frame within a field block': [
    Buffer.concat([frame('HEADERS', 3, GET), frame('DATA', 1, 'x')]),
    '1 by 1 a field block breaks off',
  ],
  'a field block continued on another stream': [
    Buffer.concat([frame('HEADERS', 3, GET), frame('CONTINUATION', 1, '', endHeaders)]),
    '1 by 1 CONTINUATION of nothing',
  ],
  'CONTINUATION of nothing': [
    frame('CONTINUATION', 1, '', endHeaders),
    '1 by 1 CONTINUATION of nothing',
  ],
  'a field block without end': [
    Buffer.concat([frame('HEADERS', 3, Buffer.alloc(2_000)), frame('CONTINUATION', 3, 'x')]),
    '1 by 11 a field block without end',
  ],
  'a field block that is no HPACK': [
    frame('HEADERS', 3, '\x80', endHeaders),
    '1 by 9 no line 0 in the table',
  ],
  'a frame of a wrong length': [frame('PING', 0, '1234567'), '1 by 6 PING of 7 bytes'],
  'a frame that is too large': [
    frame('DATA', 1, Buffer.alloc(16_385)),
    '1 by 6 a frame of 16385 bytes',
  ],
  'a frame of the connection on a stream': [
    frame('PING', 1, '12345678'),
    '1 by 1 PING on a stream',
  ],
  'a frame of a stream on none': [frame('DATA', 0, 'x'), '1 by 1 DATA on no stream'],
  'more padding than frame': [frame('DATA', 1, '\x01', padded), '1 by 1 more padding than frame'],
  'a stream of a server': [request(2), '1 by 1 stream 2 of a client'],
  'a stream that was used': [
    Buffer.concat([reset(1), request(1)]),
    '1 by 5 HEADERS on stream 1, which is over',
  ],
  'a stream below one that was used': [
    Buffer.concat([request(5), request(3)]),
    '5 by 5 HEADERS on stream 3, which is over',
  ],
  'data on an idle stream': [frame('DATA', 3, 'x'), '1 by 1 a frame on stream 3, which is idle'],
  'data on an idle stream of ours': [
    frame('DATA', 2, 'x'),
    '1 by 1 a frame on stream 2, which is idle',
  ],
  'a reset of an idle stream': [reset(3), '1 by 1 RST_STREAM on an idle stream'],
  'a window of an idle stream': [windowUpdate(3, 1), '1 by 1 WINDOW_UPDATE on an idle stream'],
  'no window': [windowUpdate(0, 0), '1 by 1 WINDOW_UPDATE by 0'],
  'too large a window': [windowUpdate(0, 2 ** 31 - 65_535), '1 by 3 WINDOW_UPDATE'],
  'too large windows of streams': [
    Buffer.concat([windowUpdate(1, 100), frame('SETTINGS', 0, settings([4, 2 ** 31 - 1]))]),
    '1 by 3 SETTINGS_INITIAL_WINDOW_SIZE',
  ],
  'settings out of bounds': [
    frame('SETTINGS', 0, settings([2, 2])),
    '1 by 1 SETTINGS_ENABLE_PUSH of 2',
  ],
  'settings that break off': [frame('SETTINGS', 0, '12345'), '1 by 6 SETTINGS of 5 bytes'],
  'an answer to settings that says something': [
    frame('SETTINGS', 0, settings([1, 1]), ack),
    '1 by 6 SETTINGS with ACK',
  ],
  'a push': [frame('PUSH_PROMISE', 1, uint32(2)), '1 by 1 PUSH_PROMISE, which was never allowed'],
  'a stream that depends on itself': [
    frame('PRIORITY', 1, Buffer.concat([uint32(1), Buffer.alloc(1)])),
    '1 by 1 stream 1 depends on itself',
  ],
};

describe('a fault of the peer', () => {
  for (const [name, [bytes, said]] of Object.entries(SERVER_FAULTS)) {
    it(`ends the connection: ${name}`, () => {
      const side = server();
      side.receive(request(1, 0));
      side.sent();
      side.receive(bytes, frame('PING', 0, '12345678'));
      const sent = frames(side).filter((line) => !line.startsWith('SETTINGS 0 ACK'));
      assert.deepEqual(sent, [`GOAWAY 0 after ${said}`]);
      assert(side.endpoint.isBroken && side.endpoint.isGoingAway);
      assert.notEqual(side.endpoint.fault, 0);
      assert.equal(side.endpoint.openStreams, 0);
      assert.equal(side.told().filter((line) => line.startsWith('reset 1')).length, 1);
    });
  }

  it('ends the connection of a client: a stream that a server opens', () => {
    for (const bytes of [
      frame('HEADERS', 2, OK, endHeaders),
      frame('HEADERS', 1, OK, endHeaders),
    ]) {
      const side = client();
      side.receive(bytes);
      assert.match(
        frames(side).join(),
        /^GOAWAY 0 after 0 by 1 a frame on stream \d, which is idle$/,
      );
    }
  });

  it('ends the connection of a client: pushes that a server allows itself', () => {
    const side = client();
    side.receive(frame('SETTINGS', 0, settings([2, 1])));
    assert.deepEqual(frames(side), ['GOAWAY 0 after 0 by 1 SETTINGS_ENABLE_PUSH of 1']);
  });

  it('ends the connection: more data than it takes', () => {
    const side = server({ initialWindow: 100_000 });
    side.receive(request(1, 0));
    for (let left = 65_735; left > 0; left -= 16_384) {
      side.receive(frame('DATA', 1, Buffer.alloc(Math.min(left, 16_384))));
    }
    assert(!side.endpoint.isBroken, 'as much as was allowed');
    side.receive(frame('DATA', 1, 'x'));
    assert.match(
      frames(side).join(),
      /^GOAWAY 0 after 1 by 3 more data than the connection takes$/,
    );
  });

  it('forgets a head that it was within', () => {
    const side = server();
    side.receive(frame('HEADERS', 1, GET), frame('CONTINUATION', 1, GET).subarray(0, 10));
    assert.equal(side.endpoint.pendingHeadBytes, GET.length + 10);
    side.endpoint.close(2, 'enough');
    assert.deepEqual([side.endpoint.isWithinHead, side.endpoint.pendingHeadBytes], [false, 0]);
  });

  it('says so once', () => {
    const side = server();
    side.endpoint.close(1, 'first');
    side.endpoint.close(2, 'second');
    side.endpoint.goAway();
    assert.deepEqual(frames(side), ['GOAWAY 0 after 0 by 1 first']);
  });

  it('is not what an owner throws', () => {
    const side = server();
    side.receive(request(1, 0));
    side.onData = () => {
      throw new Error('of the owner');
    };
    assert.throws(() => {
      side.receive(frame('DATA', 1, 'x'));
    }, /of the owner/);
  });
});

/** What a client does wrong on stream 1 only, after a request there that goes on. */
const STREAM_FAULTS: Readonly<Record<string, readonly [bytes: Buffer, code: number]>> = {
  'no window': [windowUpdate(1, 0), 1],
  'too large a window': [windowUpdate(1, 2 ** 31 - 65_535), 3],
  'more data than it takes': [frame('DATA', 1, Buffer.alloc(101)), 3],
  'data behind the end': [Buffer.concat([trailers(1), frame('DATA', 1, 'x')]), 5],
  'fields behind the end': [Buffer.concat([trailers(1), trailers(1)]), 5],
  'trailers that are no end': [frame('HEADERS', 1, TRAILERS, endHeaders), 1],
};

describe('a fault on one stream', () => {
  for (const [name, [bytes, code]] of Object.entries(STREAM_FAULTS)) {
    it(`ends the stream and no other: ${name}`, () => {
      const side = server();
      side.receive(request(1, 0), request(3, 0));
      side.sent();
      side.told();
      side.receive(bytes, frame('DATA', 3, 'x'));
      assert.deepEqual(frames(side), [`RST_STREAM 1 by ${code}`]);
      assert.deepEqual(
        side.told().filter((line) => !line.startsWith('fields')),
        [`reset 1 ${code}`, 'over 1', 'data 3 x'],
      );
      assert.equal(side.endpoint.openStreams, 1);
    });
  }

  it('is data of another length than the message said', () => {
    const cases: [due: number, ...frames: Buffer[]][] = [
      [2, frame('DATA', 1, 'abc')],
      [4, frame('DATA', 1, 'abc', endStream)],
      [4, frame('DATA', 1, 'abc'), trailers(1)],
    ];
    for (const [due, ...bytes] of cases) {
      const side = server();
      side.receive(request(1, 0));
      side.stream(1).bytesDue = due;
      side.receive(...bytes);
      assert.deepEqual(frames(side), ['RST_STREAM 1 by 1']);
    }
  });

  it('is data of a response without fields', () => {
    const side = client();
    side.open(true, ':method: GET');
    side.sent();
    side.receive(frame('DATA', 1, 'abc'));
    assert.deepEqual(frames(side), ['RST_STREAM 1 by 1']);
    assert.deepEqual(side.told(), ['reset 1 1', 'over 1']);
  });
});

describe('a frame on a stream that is over', () => {
  it('is ignored after we have reset it', () => {
    const side = server();
    side.receive(request(1, 0));
    side.endpoint.reset(side.stream(1), 2);
    side.endpoint.reset(side.stream(1), 2);
    assert.deepEqual(frames(side), ['RST_STREAM 1 by 2']);
    side.told();
    side.receive(frame('DATA', 1, 'abc'), windowUpdate(1, 5), trailers(1), reset(1));
    assert.deepEqual(frames(side), []);
    assert.deepEqual(side.told(), []);
  });

  it('is answered when the peer had ended it', () => {
    const side = server();
    side.receive(request(1));
    side.endpoint.sender.fields(side.stream(1), fieldsOf('a: b'), true);
    side.sent();
    side.receive(windowUpdate(1, 5), reset(1), frame('DATA', 1, 'abc'));
    assert.deepEqual(frames(side), ['RST_STREAM 1 by 5']);
    const other = client();
    other.open(true, ':method: GET');
    other.receive(frame('HEADERS', 1, OK, endHeaders | endStream));
    other.sent();
    other.receive(frame('HEADERS', 1, OK, endHeaders | endStream));
    assert.deepEqual(frames(other), ['RST_STREAM 1 by 5']);
  });
});

describe('windows', () => {
  it('are widened when half of them has been passed on', () => {
    const side = server();
    side.receive(request(1, 0), frame('DATA', 1, Buffer.alloc(60)));
    const stream = side.stream(1);
    side.endpoint.credit(stream, 49);
    assert.deepEqual(frames(side), []);
    side.endpoint.credit(stream, 1);
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 1 +50']);
    side.receive(frame('DATA', 1, Buffer.alloc(90)));
    side.endpoint.credit(stream, 1_000);
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 1 +100'], 'never by more than came');
  });

  it('are not widened for a message that has ended', () => {
    const side = server();
    side.receive(request(1, 0), frame('DATA', 1, Buffer.alloc(60), endStream));
    side.endpoint.credit(side.stream(1), 60);
    assert.deepEqual(frames(side), []);
  });

  it('of the connection are widened by what all streams passed on', () => {
    const side = server({ initialWindow: 30_000 });
    side.receive(request(1, 0), request(3, 0));
    for (const id of [1, 3])
      side.receive(...Array.from({ length: 2 }, () => frame('DATA', id, Buffer.alloc(15_000))));
    side.endpoint.credit(side.stream(1), 30_000);
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 1 +30000']);
    side.endpoint.credit(side.stream(3), 2_867);
    assert.deepEqual(frames(side), []);
    side.endpoint.credit(side.stream(3), 1);
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 0 +32868']);
  });

  it('of the connection are widened by what nobody will pass on', () => {
    const side = server({ initialWindow: 40_000 });
    const data = [frame('DATA', 1, Buffer.alloc(16_000)), frame('DATA', 1, Buffer.alloc(16_000))];
    side.receive(request(1, 0), ...data);
    side.endpoint.reset(side.stream(1), 8);
    assert.deepEqual(frames(side), ['RST_STREAM 1 by 8']);
    side.receive(frame('DATA', 1, Buffer.alloc(868)));
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 0 +32868'], 'what came before and after');
    side.endpoint.credit(side.stream(1), 32_000);
    assert.deepEqual(frames(side), []);
  });

  it('of the connection are widened as data comes when one stream may not hold up others', () => {
    const side = server({ creditsAtOnce: true, initialWindow: 40_000 });
    side.receive(
      request(1, 0),
      frame('DATA', 1, Buffer.alloc(16_384)),
      frame('DATA', 1, Buffer.alloc(16_384)),
    );
    side.receive(frame('DATA', 1, Buffer.alloc(100)));
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 0 +32868']);
    side.endpoint.credit(side.stream(1), 32_868);
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 1 +32868']);
    side.receive(reset(1));
    assert.deepEqual(frames(side), []);
  });

  it('are widened by padding as if it had been passed on', () => {
    const side = server();
    side.receive(request(1, 0), frame('DATA', 1, `\x31abc${'\0'.repeat(49)}`, padded));
    assert.deepEqual(side.told().at(-1), 'data 1 abc');
    assert.deepEqual(frames(side), ['WINDOW_UPDATE 1 +50']);
    assert.equal(side.stream(1).owed, 3);
    side.receive(frame('DATA', 1, '\x03\0\0\0', padded | endStream));
    assert.equal(side.told().at(-1), 'data 1  END');
  });

  it('of the peer let data go that waited', () => {
    const side = client({}, [4, 3]);
    const stream = side.open(false, ':method: POST');
    side.endpoint.sender.data(stream, Buffer.from('abcdefghi'), true);
    assert.deepEqual(frames(side), ['HEADERS 1', 'DATA 1 abc']);
    side.receive(windowUpdate(0, 10));
    assert.deepEqual(frames(side), []);
    side.receive(windowUpdate(1, 2));
    assert.deepEqual(frames(side), ['DATA 1 de']);
    side.receive(frame('SETTINGS', 0, settings([4, 4])));
    assert.deepEqual(frames(side), ['SETTINGS 0 ACK ', 'DATA 1 f']);
    side.receive(frame('SETTINGS', 0, settings([4, 0])), windowUpdate(1, 4));
    assert.deepEqual(frames(side), ['SETTINGS 0 ACK '], 'below zero, then at zero');
    side.receive(windowUpdate(1, 3));
    assert.deepEqual(frames(side), ['DATA 1 ghi END']);
  });

  it('of the peer may be as large as there are', () => {
    const side = client();
    side.open(false, ':method: POST');
    side.receive(windowUpdate(0, 2 ** 31 - 1 - 65_535), windowUpdate(1, 2 ** 31 - 1 - 65_535));
    assert(!side.endpoint.isBroken);
    assert.equal(side.endpoint.openStreams, 1);
  });
});

describe('settings', () => {
  it('are answered, and an answer is not', () => {
    const side = server();
    side.receive(frame('SETTINGS', 0, settings([3, 1])), frame('SETTINGS', 0, '', ack));
    assert.deepEqual(frames(side), ['SETTINGS 0 ACK ']);
  });

  it('of a server say how many streams there may be', () => {
    const side = client({}, [3, 2]);
    assert(side.endpoint.hasRoom);
    const stream = side.open(true, ':method: GET');
    side.open(true, ':method: GET');
    assert(!side.endpoint.hasRoom);
    side.endpoint.reset(stream, 8);
    assert(side.endpoint.hasRoom);
  });

  it('say how large our table of HPACK may be', () => {
    const side = client({}, [1, 0]);
    side.open(true, ':method: GET');
    const [first] = framesIn(side.sent());
    assert.equal(first?.payload.toString('hex'), '2082');
  });
});

describe('frames that ask for nothing', () => {
  it('are PRIORITY, those of unknown types, and answers to PINGs', () => {
    const side = server();
    const priority = frame('PRIORITY', 9, Buffer.concat([uint32(1), Buffer.alloc(1)]));
    side.receive(
      priority,
      rawFrame(0x10, 0, 'x'),
      rawFrame(0xff, 3),
      frame('PING', 0, '12345678', ack),
    );
    assert.deepEqual(frames(side), []);
    assert(!side.endpoint.isBroken);
  });

  it('are not PINGs, which come back', () => {
    const side = server();
    side.receive(frame('PING', 0, '12345678'));
    assert.deepEqual(frames(side), ['PING 0 ACK 3132333435363738']);
  });
});

describe('a flood', () => {
  /** What each of them costs us of ten thousand. */
  const floods: Readonly<Record<string, readonly [cost: number, bytes: (at: number) => Buffer]>> = {
    PING: [1, () => frame('PING', 0, '12345678')],
    SETTINGS: [1, () => frame('SETTINGS', 0)],
    'unknown frames': [1, () => rawFrame(0x10, 0)],
    'empty data': [1, () => frame('DATA', 1)],
    'data on a stream that is over': [1, () => frame('DATA', 3, 'x')],
    'requests that are reset': [
      21,
      (at) => Buffer.concat([request(2 * at + 5), reset(2 * at + 5)]),
    ],
    'requests above the limit': [20, (at) => request(2 * at + 5)],
  };
  for (const [name, [cost, bytes]] of Object.entries(floods)) {
    it(`ends the connection: ${name}`, () => {
      const side = server({ maxConcurrentStreams: name.includes('above') ? 1 : 3 });
      side.receive(request(1, 0), request(3), reset(3));
      side.endpoint.forgive();
      let count = 0;
      while (!side.endpoint.isBroken && count < 20_000) {
        side.receive(bytes(count));
        count += 1;
      }
      assert.equal(count, Math.floor(10_000 / cost) + 1);
      assert.match(frames(side).at(-1) ?? '', /by 11 too many frames that bring nothing$/);
    });
  }

  it('is none of resets by a server: it can only reset what it was asked', () => {
    const side = client();
    for (let at = 0; at < 5_000; at += 1) {
      const { id } = side.open(true, ':method: GET');
      side.receive(reset(id, 0));
    }
    assert(!side.endpoint.isBroken);
    assert.equal(side.endpoint.openStreams, 0);
  });

  it('is made of requests that its owner finds useless as well', () => {
    class Blaming extends Side {
      override onRequest(stream: Stream): void {
        this.endpoint.blame();
        this.endpoint.reset(stream, 1);
      }
    }
    const side = new Blaming('server');
    side.receive(PREFACE_BYTES, frame('SETTINGS', 0));
    let count = 0;
    while (!side.endpoint.isBroken && count < 1_000) {
      side.receive(request(2 * count + 1));
      count += 1;
    }
    assert.equal(count, 500);
  });

  it('is none when time passes in between', () => {
    const side = server();
    for (let at = 0; at < 30_000; at += 1) {
      if (at % 9_000 === 0) side.endpoint.forgive();
      side.receive(frame('PING', 0, '12345678'));
    }
    assert(!side.endpoint.isBroken);
  });
});

describe('leaving', () => {
  it('is asked of a client, and requests that come all the same are served', () => {
    const side = server();
    side.endpoint.askToLeave();
    assert.deepEqual(frames(side), ['GOAWAY 0 after 2147483647 by 0 ']);
    side.receive(request(1));
    assert.deepEqual(side.told(), [`request 1 ${GET_TEXT} END`]);
  });

  it('lets open streams end and ignores new ones, trailers and all', () => {
    const side = server();
    side.receive(request(1, 0));
    side.endpoint.goAway();
    side.endpoint.goAway();
    assert.deepEqual(frames(side), ['GOAWAY 0 after 1 by 0 ']);
    side.told();
    side.receive(
      request(3, 0),
      frame('DATA', 3, 'abc'),
      trailers(3),
      frame('DATA', 1, 'x', endStream),
    );
    assert.deepEqual(side.told(), ['data 1 x END']);
    assert.deepEqual(frames(side), []);
  });

  it('never takes back which stream was the last', () => {
    const side = server();
    side.receive(request(1, 0));
    side.endpoint.goAway();
    side.receive(request(3));
    side.endpoint.askToLeave();
    side.endpoint.close(2, 'at last');
    assert.deepEqual(frames(side), [
      'GOAWAY 0 after 1 by 0 ',
      'GOAWAY 0 after 1 by 0 ',
      'GOAWAY 0 after 1 by 2 at last',
    ]);
  });

  it('of a server ends the streams that it has not looked at', () => {
    const side = client();
    for (let count = 0; count < 3; count += 1) side.open(true, ':method: GET');
    side.receive(frame('GOAWAY', 0, Buffer.concat([uint32(3, 0), Buffer.from('why')])));
    assert.deepEqual(side.told(), ['reset 5 7', 'over 5', 'goaway 0']);
    assert(!side.endpoint.hasRoom);
    assert.equal(side.endpoint.openStreams, 2);
  });

  it('of a client is told and ends nothing', () => {
    const side = server();
    side.receive(request(1, 0), frame('GOAWAY', 0, uint32(0, 2)));
    assert.deepEqual(side.told().slice(1), ['goaway 2']);
    assert.equal(side.endpoint.openStreams, 1);
  });

  it('of both ends takes no more streams either', () => {
    const side = server();
    side.receive(request(1, 0), frame('GOAWAY', 0, uint32(0, 0)));
    side.endpoint.goAway();
    side.told();
    side.receive(request(3));
    assert.deepEqual(frames(side), ['GOAWAY 0 after 1 by 0 ']);
    assert.deepEqual(side.told(), []);
  });

  it('abruptly tells the owners of all streams', () => {
    const side = server();
    side.receive(request(1), request(3));
    side.sent();
    side.told();
    side.endpoint.abandon(2);
    assert.deepEqual(side.told(), ['reset 1 2', 'over 1', 'reset 3 2', 'over 3']);
    side.receive(request(5));
    side.endpoint.credit(side.stream(1), 10);
    assert.deepEqual(side.told(), []);
    assert.deepEqual(frames(side), []);
  });

  it('tells no owner of a stream that another one has ended meanwhile', () => {
    const side = server();
    side.receive(request(1), request(3));
    side.told();
    const { endpoint } = side;
    side.onReset = () => {
      endpoint.reset(side.stream(3), 8);
    };
    endpoint.abandon(2);
    assert.deepEqual(side.told(), ['over 3', 'over 1']);
  });
});

describe('a stream that the peer resets', () => {
  it('is told to its owner before anybody else: only it knows what else has to end', () => {
    const side = server();
    side.receive(request(1, 0), reset(1, 5));
    assert.deepEqual(side.told().slice(1), ['reset 1 5', 'over 1']);
    side.endpoint.sender.data(side.stream(1), Buffer.from('abc'), true);
    side.endpoint.sender.end(side.stream(1), undefined);
    assert.deepEqual(frames(side), []);
  });
});

describe('a stream that is answered', () => {
  it('may be so while its request is told', () => {
    const side = server();
    const { endpoint } = side;
    side.onRequest = (stream) => {
      endpoint.sender.fields(stream, fieldsOf('a: b'), true);
    };
    side.receive(request(1));
    assert.equal(endpoint.openStreams, 0);
    assert.deepEqual(frames(side), ['HEADERS 1 END']);
    assert.deepEqual(side.told(), ['over 1']);
  });

  it('may end the connection while its data is told', () => {
    const side = server();
    side.receive(request(1, 0));
    const { endpoint } = side;
    side.onData = () => {
      endpoint.close(2, 'enough');
    };
    side.receive(Buffer.concat([frame('DATA', 1, 'x'), frame('PING', 0, '12345678')]));
    assert.deepEqual(frames(side), ['GOAWAY 0 after 1 by 2 enough']);
  });
});
