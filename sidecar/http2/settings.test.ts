import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { settings } from '../../test/support/http2-frames.ts';
import { FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, PROTOCOL_ERROR } from './error-code.ts';
import { encodeSettings, PeerSettings } from './settings.ts';

type Entry = readonly [id: number, value: number];

function applied(from: 'client' | 'server', ...entries: readonly Entry[]): PeerSettings {
  const peer = new PeerSettings();
  peer.apply(settings(...entries), from);
  return peer;
}

describe('what the peer asks for', () => {
  it('is what RFC 9113 says until it is told, and 100 streams', () => {
    const peer = new PeerSettings();
    assert(!peer.isTold);
    assert.equal(peer.headerTableBytes, 4_096);
    assert.equal(peer.initialWindow, 65_535);
    assert.equal(peer.maxConcurrentStreams, 100);
    assert(!peer.takesConnectProtocol);
  });

  it('are any number of streams once it is told and they are not limited', () => {
    const peer = applied('client');
    assert(peer.isTold);
    assert.equal(peer.maxConcurrentStreams, 2 ** 31 - 1);
    peer.apply(settings([3, 7]), 'client');
    peer.apply(settings(), 'client');
    assert.equal(peer.maxConcurrentStreams, 7, 'what is not named stays');
  });

  it('is taken setting by setting, the last one of a kind', () => {
    const peer = applied('server', [1, 0], [2, 0], [3, 5], [4, 1], [4, 2], [5, 16_384], [8, 1]);
    assert.equal(peer.headerTableBytes, 0);
    assert.equal(peer.maxConcurrentStreams, 5);
    assert.equal(peer.initialWindow, 2);
    assert(peer.takesConnectProtocol);
    peer.apply(settings([8, 0]), 'server');
    assert(!peer.takesConnectProtocol);
  });

  it('may have the greatest values, and settings that nobody knows', () => {
    const most = 0xff_ff_ff_ff;
    const peer = applied('client', [1, most], [2, 1], [3, most], [4, 2 ** 31 - 1]);
    peer.apply(
      settings([5, 0xff_ff_ff], [6, most], [7, most], [0xff_ff, most], [0x108, most]),
      'client',
    );
    assert.equal(peer.headerTableBytes, most);
    assert.equal(peer.maxConcurrentStreams, most);
    assert.equal(peer.initialWindow, 2 ** 31 - 1);
  });

  const faults: Readonly<
    Record<string, readonly [from: 'client' | 'server', Entry, code: number]>
  > = {
    ENABLE_PUSH: ['client', [2, 2], PROTOCOL_ERROR],
    'ENABLE_PUSH of a server': ['server', [2, 1], PROTOCOL_ERROR],
    INITIAL_WINDOW_SIZE: ['client', [4, 2 ** 31], FLOW_CONTROL_ERROR],
    'MAX_FRAME_SIZE (small)': ['client', [5, 16_383], PROTOCOL_ERROR],
    'MAX_FRAME_SIZE (large)': ['client', [5, 0x1_00_00_00], PROTOCOL_ERROR],
    ENABLE_CONNECT_PROTOCOL: ['server', [8, 2], PROTOCOL_ERROR],
  };
  for (const [name, [from, entry, code]] of Object.entries(faults)) {
    it(`is a fault when ${name} is out of bounds`, () => {
      const message = `SETTINGS_${name.replace(/ .*/, '')} of ${entry[1]}`;
      assert.throws(() => applied(from, entry), { code, message });
    });
  }

  it('is a fault when a setting breaks off', () => {
    const peer = new PeerSettings();
    for (const length of [1, 5, 7, 11]) {
      assert.throws(
        () => {
          peer.apply(Buffer.alloc(length), 'client');
        },
        { code: FRAME_SIZE_ERROR, message: `SETTINGS of ${length} bytes` },
      );
    }
  });
});

describe('what we ask for', () => {
  const own = { maxConcurrentStreams: 250, maxHeaderListBytes: 65_536, initialWindow: 65_535 };

  it('is as a server: windows, lists, streams, and that CONNECT may name a protocol', () => {
    const expected = settings([4, 65_535], [6, 65_536], [3, 250], [8, 1]);
    assert.deepEqual(encodeSettings({ ...own, role: 'server' }), expected);
  });

  it('is as a client: windows, lists, and no pushes', () => {
    const expected = settings([4, 65_535], [6, 65_536], [2, 0]);
    assert.deepEqual(encodeSettings({ ...own, role: 'client' }), expected);
  });
});
