import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { feedParts, partitions } from '../../test/support/splits.ts';
import { defaultHttp1Limits } from './limits.ts';
import { ResponseHead } from './response-head.ts';

function parse(text: string): ResponseHead {
  const head = new ResponseHead(defaultHttp1Limits);
  assert.equal(feedParts(head, [text]), 'complete, 0 more');
  return head;
}

function outcomeOf(text: string): string {
  const head = new ResponseHead(defaultHttp1Limits);
  const outcomes = new Set<string>();
  for (const parts of partitions(text)) outcomes.add(feedParts(head, parts));
  return [...outcomes].join(' or ');
}

const accepted: Readonly<Record<string, string>> = {
  'a plain response': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n',
  'an empty reason': 'HTTP/1.1 200 \r\n\r\n',
  'no reason and no space before it': 'HTTP/1.1 200\r\n\r\n',
  'a reason above ASCII': 'HTTP/1.1 200 d\xe9j\xe0 vu\r\n\r\n',
  'HTTP/1.0': 'HTTP/1.0 404 Not Found\r\n\r\n',
  'status 999': 'HTTP/1.1 999 No\r\n\r\n',
  'a Connection with several options': 'HTTP/1.1 200 OK\r\nConnection: upgrade, x\r\n\r\n',
};

const refused: Readonly<Record<string, readonly [reason: string, text: string]>> = {
  'HTTP/2': ['status-line', 'HTTP/2.0 200 OK\r\n\r\n'],
  'HTTP/1.2': ['status-line', 'HTTP/1.2 200 OK\r\n\r\n'],
  'a status of two digits': ['status-line', 'HTTP/1.1 20 OK\r\n\r\n'],
  'a status of four digits': ['status-line', 'HTTP/1.1 2000 OK\r\n\r\n'],
  'a status below 100': ['status-line', 'HTTP/1.1 099 OK\r\n\r\n'],
  'a status of letters': ['status-line', 'HTTP/1.1 2x0 OK\r\n\r\n'],
  'a tab before the status': ['status-line', 'HTTP/1.1\t200 OK\r\n\r\n'],
  'a control character in the reason': ['status-line', 'HTTP/1.1 200 O\0K\r\n\r\n'],
  'a short status line': ['status-line', 'HTTP/1.1 \r\n\r\n'],
  'something else than HTTP': ['status-line', 'SSH-2.0-OpenSSH_9.2\r\n'],
  'an empty line first': ['status-line', '\r\nHTTP/1.1 200 OK\r\n\r\n'],
  'a bare LF': ['bare-lf', 'HTTP/1.1 200 OK\n\n'],
  'both framings': [
    'length-and-chunked',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n',
  ],
  'two lengths': [
    'content-length-repeated',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n',
  ],
  'a malformed length': ['content-length', 'HTTP/1.1 200 OK\r\nContent-Length: 2a\r\n\r\n'],
  'two transfer codings': [
    'transfer-encoding-repeated',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n',
  ],
  'another transfer coding': [
    'transfer-encoding',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
  ],
  'chunks in HTTP/1.0': [
    'transfer-encoding',
    'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  ],
  'a Connection option that is no token': [
    'connection-options',
    'HTTP/1.1 200 OK\r\nConnection: a;b\r\n\r\n',
  ],
  'a Connection that nominates the framing': [
    'connection-options',
    'HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: content-length\r\n\r\n',
  ],
};

describe('a response head', () => {
  for (const [claim, text] of Object.entries(accepted)) {
    it(`is accepted at every split: ${claim}`, () => {
      assert.equal(outcomeOf(text), 'complete, 0 more');
    });
  }

  for (const [claim, [reason, text]] of Object.entries(refused)) {
    it(`is refused at every split: ${claim}`, () => {
      assert.equal(outcomeOf(text), reason);
    });
  }

  it('tells how the body ends, given the method', () => {
    const framingOf = (start: string, fields: string, method: string): string =>
      parse(`HTTP/1.1 ${start}\r\n${fields}\r\n`).framingFor(method);
    const length = 'Content-Length: 2\r\n';
    const chunked = 'Transfer-Encoding: CHUNKED\r\n';

    assert.equal(framingOf('200 OK', length, 'GET'), 'length');
    assert.equal(framingOf('200 OK', 'Content-Length: 0\r\n', 'GET'), 'none');
    assert.equal(framingOf('200 OK', chunked, 'GET'), 'chunked');
    assert.equal(framingOf('200 OK', '', 'GET'), 'close');
    assert.equal(framingOf('200 OK', length, 'HEAD'), 'none');
    assert.equal(framingOf('200 OK', chunked, 'HEAD'), 'none');
    assert.equal(framingOf('204 No Content', '', 'GET'), 'none');
    assert.equal(framingOf('304 Not Modified', length, 'GET'), 'none');
    assert.equal(framingOf('103 Early Hints', '', 'GET'), 'none');
  });

  it('is interim below 200, except when it switches protocols', () => {
    const interim = (start: string): boolean => parse(`HTTP/1.1 ${start}\r\n\r\n`).isInterim;

    assert.equal(interim('100 Continue'), true);
    assert.equal(interim('101 Switching Protocols'), false);
    assert.equal(interim('103 Early Hints'), true);
    assert.equal(interim('200 OK'), false);
  });

  it('tells whether the upstream will close', () => {
    const closes = (start: string): boolean => parse(`${start}\r\n\r\n`).wantsClose;

    assert.equal(closes('HTTP/1.1 200 OK'), false);
    assert.equal(closes('HTTP/1.1 200 OK\r\nConnection: keep-alive'), false);
    assert.equal(closes('HTTP/1.1 200 OK\r\nConnection: Keep-Alive, Close'), true);
    assert.equal(closes('HTTP/1.0 200 OK'), true);
  });
});
