import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FLOW_CONTROL_ERROR, NO_ERROR, PROTOCOL_ERROR, STREAM_CLOSED } from './error-code.ts';
import { NOBODY, Stream } from './stream.ts';

function stream(facts: Partial<Pick<Stream, 'bytesDue' | 'hasFields'>> = {}): Stream {
  const one = new Stream(1, NOBODY, { send: 10, receive: 10 });
  return Object.assign(one, { hasFields: true, ...facts });
}

describe('data on a stream', () => {
  it('may come behind the fields of a message, until the last of it', () => {
    const one = stream();
    assert.equal(one.takeData(5, false), NO_ERROR);
    assert.equal(one.takeData(0, true), NO_ERROR);
    assert(one.remoteEnded);
    assert.equal(one.takeData(0, true), STREAM_CLOSED);
  });

  it('may not come before the fields', () => {
    assert.equal(stream({ hasFields: false }).takeData(5, false), PROTOCOL_ERROR);
  });

  it('may not be more than the window', () => {
    const one = stream();
    one.receiveWindow = -1;
    assert.equal(one.takeData(11, false), FLOW_CONTROL_ERROR);
  });

  it('is as much as the message said', () => {
    assert.equal(stream({ bytesDue: 5 }).takeData(5, true), NO_ERROR);
    assert.equal(stream({ bytesDue: 5 }).takeData(6, false), PROTOCOL_ERROR);
    assert.equal(stream({ bytesDue: 5 }).takeData(4, true), PROTOCOL_ERROR);
    assert.equal(stream({ bytesDue: 0 }).takeData(0, true), NO_ERROR);
    assert.equal(stream({ bytesDue: 0 }).takeData(1, true), PROTOCOL_ERROR);
    const parts = stream({ bytesDue: 5 });
    assert.equal(parts.takeData(3, false), NO_ERROR);
    assert.equal(parts.takeData(2, false), NO_ERROR);
    assert.equal(parts.takeData(0, true), NO_ERROR);
  });
});

describe('fields on a stream', () => {
  it('are trailers for a server, and end the request', () => {
    const one = stream();
    assert.equal(one.takeFields(true, 'server'), NO_ERROR);
    assert.equal(one.takeFields(true, 'server'), STREAM_CLOSED);
    assert.equal(stream().takeFields(false, 'server'), PROTOCOL_ERROR);
  });

  it('are any number of interim responses for a client, then one, then trailers', () => {
    const one = stream({ hasFields: false });
    assert.equal(one.takeFields(false, 'client'), NO_ERROR);
    assert.equal(one.takeFields(false, 'client'), NO_ERROR);
    one.hasFields = true;
    assert.equal(one.takeFields(true, 'client'), NO_ERROR);
    assert.equal(stream().takeFields(false, 'client'), PROTOCOL_ERROR);
    assert.equal(stream({ hasFields: false }).takeFields(true, 'client'), NO_ERROR);
  });

  it('may not end a message that lacks bytes', () => {
    assert.equal(stream({ bytesDue: 1 }).takeFields(true, 'client'), PROTOCOL_ERROR);
    assert.equal(stream({ bytesDue: 0 }).takeFields(true, 'client'), NO_ERROR);
  });
});

describe('a stream', () => {
  it('is over when both sides have ended', () => {
    const one = stream();
    assert(!one.isOver);
    one.localEnded = true;
    assert(!one.isOver);
    one.remoteEnded = true;
    assert(one.isOver);
  });

  it('has nobody to tell until somebody takes it on', () => {
    const one = stream();
    one.owner.onFields(one, { fields: [], isTooLarge: false }, true);
    one.owner.onData(one, Buffer.alloc(1), true);
    one.owner.onSent(one, 1);
    one.owner.onReset(one, NO_ERROR);
  });
});
