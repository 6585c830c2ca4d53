import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { feedParts, partitions } from '../../test/support/splits.ts';
import { defaultHttp1Limits, maxConnectionOptions } from './limits.ts';
import type { Http1Limits } from './limits.ts';
import { RequestHead } from './request-head.ts';

const HOST = 'Host: a.example\r\n';

function parse(text: string, limits: Partial<Http1Limits> = {}): RequestHead {
  const head = new RequestHead({ ...defaultHttp1Limits, ...limits });
  assert.equal(feedParts(head, [text]), 'complete, 0 more');
  return head;
}

function outcomeOf(text: string, limits: Partial<Http1Limits> = {}): string {
  const head = new RequestHead({ ...defaultHttp1Limits, ...limits });
  const outcomes = new Set<string>();
  for (const parts of partitions(text)) outcomes.add(feedParts(head, parts));
  return [...outcomes].join(' or ');
}

const accepted: Readonly<Record<string, string>> = {
  'a plain request': `GET / HTTP/1.1\r\n${HOST}\r\n`,
  'a request of HTTP/1.0 without Host': 'GET / HTTP/1.0\r\n\r\n',
  'an empty line before the request line': `\r\nGET / HTTP/1.1\r\n${HOST}\r\n`,
  'an unknown method of token characters': `M-SEARCH!#$%&'*+.^_\`|~9 / HTTP/1.1\r\n${HOST}\r\n`,
  'a method of 32 bytes': `${'M'.repeat(32)} / HTTP/1.1\r\n${HOST}\r\n`,
  'a lower-case method': `get / HTTP/1.1\r\n${HOST}\r\n`,
  'OPTIONS *': `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`,
  'an absolute-form target that agrees with Host': `GET http://A.example/x HTTP/1.1\r\n${HOST}\r\n`,
  'an absolute-form target without a path': `GET http://a.example HTTP/1.1\r\n${HOST}\r\n`,
  'an absolute-form target of HTTP/1.0 without Host': 'GET https://a.example?q HTTP/1.0\r\n\r\n',
  'raw bytes above ASCII in the target': `GET /caf\xe9\xff HTTP/1.1\r\n${HOST}\r\n`,
  'marks that are no URI characters in the target': `GET /<a>|"{}\\^\` HTTP/1.1\r\n${HOST}\r\n`,
  'a value of several words with whitespace around': `GET / HTTP/1.1\r\n${HOST}A: \t b c\td \t\r\n\r\n`,
  'an empty value': `GET / HTTP/1.1\r\n${HOST}A:\r\nB: \r\n\r\n`,
  'bytes above ASCII in a value': `GET / HTTP/1.1\r\n${HOST}A: \x80\xff\r\n\r\n`,
  'a Host with a port': 'GET / HTTP/1.1\r\nHost: a:8080\r\n\r\n',
  'a Host with an empty port': 'GET / HTTP/1.1\r\nHost: a:\r\n\r\n',
  'a Host that is an IPv6 address': 'GET / HTTP/1.1\r\nhost: [::1]:80\r\n\r\n',
  'a Host with an underscore and a percent escape': 'GET / HTTP/1.1\r\nHost: a_b%41\r\n\r\n',
  'a Content-Length': `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`,
  'a Content-Length with leading zeros': `POST / HTTP/1.1\r\n${HOST}Content-Length: 005\r\n\r\n`,
  'Transfer-Encoding: chunked': `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: Chunked\r\n\r\n`,
  'the largest Content-Length': `PUT / HTTP/1.1\r\n${HOST}Content-Length: 9007199254740991\r\n\r\n`,
  'several Connection lines': `GET / HTTP/1.1\r\n${HOST}Connection: a, ,b\r\nConnection: close\r\n\r\n`,
};

const refused: Readonly<Record<string, readonly [reason: string, text: string]>> = {
  'both Content-Length and Transfer-Encoding': [
    'length-and-chunked',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ],
  'Transfer-Encoding before Content-Length': [
    'length-and-chunked',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n`,
  ],
  'two differing lengths': [
    'content-length-repeated',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\nContent-Length: 4\r\n\r\n`,
  ],
  'the same length twice': [
    'content-length-repeated',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\nContent-Length: 3\r\n\r\n`,
  ],
  'a list of lengths': ['content-length', `POST / HTTP/1.1\r\n${HOST}Content-Length: 3, 3\r\n\r\n`],
  'a signed length': ['content-length', `POST / HTTP/1.1\r\n${HOST}Content-Length: +3\r\n\r\n`],
  'a negative length': ['content-length', `POST / HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`],
  'a hexadecimal length': [
    'content-length',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 0x3\r\n\r\n`,
  ],
  'a fraction as length': [
    'content-length',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1.0\r\n\r\n`,
  ],
  'an empty length': ['content-length', `POST / HTTP/1.1\r\n${HOST}Content-Length:\r\n\r\n`],
  'a length with a space inside': [
    'content-length',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 1 2\r\n\r\n`,
  ],
  'a length past 2^53 − 1': [
    'content-length',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 9007199254740992\r\n\r\n`,
  ],
  'a length of 17 digits': [
    'content-length',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 00000000000000003\r\n\r\n`,
  ],
  'a transfer coding before chunked': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: gzip, chunked\r\n\r\n`,
  ],
  'chunked twice': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, chunked\r\n\r\n`,
  ],
  'chunked not last': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, identity\r\n\r\n`,
  ],
  'identity as transfer coding': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: identity\r\n\r\n`,
  ],
  'a coding that only looks like chunked': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n`,
  ],
  'a quoted chunked': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: "chunked"\r\n\r\n`,
  ],
  'chunked with a parameter': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked;a=b\r\n\r\n`,
  ],
  'a vertical tab before chunked': [
    'field-value',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: \x0bchunked\r\n\r\n`,
  ],
  'a tab behind chunked': [
    'transfer-encoding',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\t\r\n\r\n`,
  ],
  'a space behind a length': [
    'content-length',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3 \r\n\r\n`,
  ],
  'two Transfer-Encoding lines': [
    'transfer-encoding-repeated',
    `POST / HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ],
  'chunks in HTTP/1.0': [
    'transfer-encoding',
    `POST / HTTP/1.0\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`,
  ],
  'a bare LF after the request line': ['bare-lf', `GET / HTTP/1.1\n${HOST}\r\n`],
  'a bare LF after a field': ['bare-lf', 'GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n'],
  'a bare LF as the closing line': ['bare-lf', 'GET / HTTP/1.1\r\nHost: a\r\n\n'],
  'a leading bare LF': ['bare-lf', `\nGET / HTTP/1.1\r\n${HOST}\r\n`],
  'two empty lines before the request line': ['method', `\r\n\r\nGET / HTTP/1.1\r\n${HOST}\r\n`],
  'a bare CR in a value': ['field-value', 'GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n'],
  'a CR before CRLF': ['field-value', 'GET / HTTP/1.1\r\nHost: a\r\r\n\r\n'],
  'a bare CR in the target': ['target', `GET /a\rb HTTP/1.1\r\n${HOST}\r\n`],
  'NUL in a value': ['field-value', 'GET / HTTP/1.1\r\nHost: a\r\nA: b\0c\r\n\r\n'],
  'DEL in a value': ['field-value', 'GET / HTTP/1.1\r\nHost: a\r\nA: b\x7f\r\n\r\n'],
  'a space before the colon': ['space-before-colon', 'GET / HTTP/1.1\r\nHost : a\r\n\r\n'],
  'a tab before the colon': ['space-before-colon', 'GET / HTTP/1.1\r\nHost\t: a\r\n\r\n'],
  'a folded line': ['obs-fold', 'GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n'],
  'whitespace before the first field': ['obs-fold', 'GET / HTTP/1.1\r\n Host: a\r\n\r\n'],
  'a line without a colon': ['field-name', 'GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n'],
  'an empty name': ['field-name', 'GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n'],
  'a name with a slash': ['field-name', 'GET / HTTP/1.1\r\nHost: a\r\nA/B: c\r\n\r\n'],
  'a name above ASCII': ['field-name', 'GET / HTTP/1.1\r\nHost: a\r\n\xe9: c\r\n\r\n'],
  'no Host in HTTP/1.1': ['host-missing', 'GET / HTTP/1.1\r\nA: b\r\n\r\n'],
  'no Host with an absolute-form target': ['host-missing', 'GET http://a/ HTTP/1.1\r\n\r\n'],
  'two Hosts': ['host-repeated', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n'],
  'an empty Host': ['host-invalid', 'GET / HTTP/1.1\r\nHost:\r\n\r\n'],
  'a Host with userinfo': ['host-invalid', 'GET / HTTP/1.1\r\nHost: u@a\r\n\r\n'],
  'a Host with a path': ['host-invalid', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n'],
  'a list of Hosts': ['host-invalid', 'GET / HTTP/1.1\r\nHost: a b\r\n\r\n'],
  'a Host with a port past 65535': ['host-invalid', 'GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n'],
  'a Host with a port of letters': ['host-invalid', 'GET / HTTP/1.1\r\nHost: a:b\r\n\r\n'],
  'a Host with a broken escape': ['host-invalid', 'GET / HTTP/1.1\r\nHost: a%4\r\n\r\n'],
  'a Host with an open bracket': ['host-invalid', 'GET / HTTP/1.1\r\nHost: [::1\r\n\r\n'],
  'a Host with a zone': ['host-invalid', 'GET / HTTP/1.1\r\nHost: [fe80::1%25a]\r\n\r\n'],
  'an absolute-form target that differs from Host': [
    'host-mismatch',
    `GET http://b.example/ HTTP/1.1\r\n${HOST}\r\n`,
  ],
  'an absolute-form target with another port than Host': [
    'host-mismatch',
    `GET http://a.example:80/ HTTP/1.1\r\n${HOST}\r\n`,
  ],
  'an absolute-form target with userinfo': [
    'target',
    `GET http://u@a.example/ HTTP/1.1\r\n${HOST}\r\n`,
  ],
  'an absolute-form target of another scheme': [
    'target',
    `GET ftp://a.example/ HTTP/1.1\r\n${HOST}\r\n`,
  ],
  'a target without a slash': ['target', `GET index.html HTTP/1.1\r\n${HOST}\r\n`],
  'a target with a fragment': ['target', `GET /a#b HTTP/1.1\r\n${HOST}\r\n`],
  'a target with a space': ['target', `GET /a b HTTP/1.1\r\n${HOST}\r\n`],
  'a target with DEL': ['target', `GET /\x7f HTTP/1.1\r\n${HOST}\r\n`],
  'an asterisk without OPTIONS': ['target', `GET * HTTP/1.1\r\n${HOST}\r\n`],
  CONNECT: ['connect', `CONNECT a.example:443 HTTP/1.1\r\n${HOST}\r\n`],
  'HTTP/0.9': ['request-line', 'GET /\r\n'],
  'HTTP/0.9 with a version': ['version', `GET / HTTP/0.9\r\n${HOST}\r\n`],
  'HTTP/1.2': ['version', `GET / HTTP/1.2\r\n${HOST}\r\n`],
  'HTTP/2.0': ['version', `GET / HTTP/2.0\r\n${HOST}\r\n`],
  'the preface of HTTP/2': ['http2-preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  'the method of that preface in HTTP/1.1': ['method', `PRI / HTTP/1.1\r\n${HOST}\r\n`],
  'a version in lower case': ['request-line', `GET / http/1.1\r\n${HOST}\r\n`],
  'a version of letters': ['request-line', `GET / HTTP/x.1\r\n${HOST}\r\n`],
  'a version with a comma': ['request-line', `GET / HTTP/1,1\r\n${HOST}\r\n`],
  'a minor version of letters': ['request-line', `GET / HTTP/1.x\r\n${HOST}\r\n`],
  'a version of two digits': ['request-line', `GET / HTTP/1.10\r\n${HOST}\r\n`],
  'two spaces before the target': ['target', `GET  / HTTP/1.1\r\n${HOST}\r\n`],
  'two spaces before the version': ['target', `GET /  HTTP/1.1\r\n${HOST}\r\n`],
  'a trailing space in the request line': ['request-line', `GET / HTTP/1.1 \r\n${HOST}\r\n`],
  'a tab as separator': ['request-line', `GET\t/ HTTP/1.1\r\n${HOST}\r\n`],
  'no target': ['request-line', `GET HTTP/1.1\r\n${HOST}\r\n`],
  'a leading space': ['method', ` GET / HTTP/1.1\r\n${HOST}\r\n`],
  'a method with a parenthesis': ['request-line', `GE(T / HTTP/1.1\r\n${HOST}\r\n`],
  'a method of 33 bytes': ['method', `${'M'.repeat(33)} / HTTP/1.1\r\n${HOST}\r\n`],
  'a Connection option that is no token': [
    'connection-options',
    `GET / HTTP/1.1\r\n${HOST}Connection: a b\r\n\r\n`,
  ],
  'Connection that nominates Content-Length': [
    'connection-options',
    `POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\nConnection: content-length\r\n\r\n`,
  ],
  'Connection that nominates Transfer-Encoding': [
    'connection-options',
    `GET / HTTP/1.1\r\n${HOST}Connection: close, Transfer-Encoding\r\n\r\n`,
  ],
  'Connection that nominates Host behind one that nominates Connection': [
    'connection-options',
    `GET / HTTP/1.1\r\n${HOST}Connection: connection\r\nConnection: host\r\n\r\n`,
  ],
};

describe('a request head', () => {
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

  it('ends at its empty line, whatever follows', () => {
    assert.equal(outcomeOf(`GET / HTTP/1.1\r\n${HOST}\r\n\r\n\0`), 'complete, 3 more');
  });

  it('waits for more as long as its empty line is missing', () => {
    const text = `GET / HTTP/1.1\r\n${HOST}\r\n`;

    for (let at = 0; at < text.length; at += 1) {
      assert.equal(feedParts(new RequestHead(defaultHttp1Limits), [text.slice(0, at)]), 'more');
    }
  });

  it('shows method, target, host and fields as received', () => {
    const head = parse(
      'POST /a?b=%20 HTTP/1.1\r\nHost: A.example:80\r\nX-Key:  v 1 \r\nx-KEY: v2\r\nEmpty:\r\n\r\n',
    );

    assert.equal(head.method, 'POST');
    assert.equal(head.target, '/a?b=%20');
    assert.equal(head.host, 'A.example:80');
    assert.equal(head.header('x-key'), 'v 1, v2');
    assert.equal(head.headerCount('x-key'), 2);
    assert.equal(head.header('empty'), '');
    assert.equal(head.header('x-ke'), undefined);
    assert.equal(head.headerCount('x-kez'), 0);
    const all: string[] = [];
    head.eachHeader((name, value) => all.push(`${name}=${value}`));
    assert.deepEqual(all, ['Host=A.example:80', 'X-Key=v 1', 'x-KEY=v2', 'Empty=']);
  });

  it('tells where each line begins and ends', () => {
    const head = parse(`\r\nGET / HTTP/1.1\r\n${HOST}A:  b \r\n\r\n`);
    const lineAt = (line: number): string =>
      head.text.slice(head.lineStart(line), head.lineEnd(line));

    assert.equal(head.start, 2);
    assert.deepEqual([lineAt(0), lineAt(1)], [HOST, 'A:  b \r\n']);
    assert.equal(head.end, head.text.length);
  });

  it('takes the host of an absolute-form target where HTTP/1.0 has no Host', () => {
    assert.equal(parse('GET http://b.example:81/x HTTP/1.0\r\n\r\n').host, 'b.example:81');
    assert.equal(parse('GET /x HTTP/1.0\r\n\r\n').host, '');
  });

  it('tells how the body ends', () => {
    const framingOf = (fields: string): unknown[] => {
      const head = parse(`POST / HTTP/1.1\r\n${HOST}${fields}\r\n`);
      return [head.framing, head.contentLength];
    };

    assert.deepEqual(framingOf(''), ['none', 0]);
    assert.deepEqual(framingOf('Content-Length: 0\r\n'), ['none', 0]);
    assert.deepEqual(framingOf('content-length: 1\r\n'), ['length', 1]);
    assert.deepEqual(framingOf('TRANSFER-ENCODING: chunked\r\n'), ['chunked', 0]);
  });

  it('tells whether the connection ends after it', () => {
    const closes = (version: string, fields: string): boolean =>
      parse(`GET / HTTP/${version}\r\n${HOST}${fields}\r\n`).wantsClose;

    assert.equal(closes('1.1', ''), false);
    assert.equal(closes('1.1', 'Connection: keep-alive\r\n'), false);
    assert.equal(closes('1.1', 'Connection: Keep-Alive\r\n'), false);
    assert.equal(closes('1.1', 'Connection: KEEP-ALIVE, te\r\n'), false);
    assert.equal(closes('1.1', 'Connection: x, Close\r\n'), true);
    assert.equal(closes('1.0', 'Connection: keep-alive\r\n'), true);
  });

  it('offers an upgrade only where both ends can agree on it', () => {
    const upgradeOf = (start: string, fields: string): string =>
      parse(`${start}\r\n${HOST}${fields}\r\n`).upgrade;
    const get = 'GET / HTTP/1.1';

    assert.equal(upgradeOf(get, 'Connection: Upgrade\r\nUpgrade: websocket\r\n'), 'websocket');
    assert.equal(
      upgradeOf(get, 'Connection: upgrade\r\nUpgrade: a, h2c\r\nUpgrade: b\r\n'),
      'a, b',
    );
    assert.equal(upgradeOf(get, 'Connection: upgrade\r\nUpgrade: h2c, H2,HTTP/2.0,\r\n'), '');
    assert.equal(upgradeOf(get, 'Upgrade: websocket\r\n'), '');
    assert.equal(upgradeOf(get, 'Connection: upgrade\r\n'), '');
    assert.equal(upgradeOf('GET / HTTP/1.0', 'Connection: upgrade\r\nUpgrade: a\r\n'), '');
    assert.equal(
      upgradeOf('POST / HTTP/1.1', 'Content-Length: 1\r\nConnection: upgrade\r\nUpgrade: a\r\n'),
      '',
    );
  });

  it('knows the methods that may be sent twice', () => {
    const idempotent = (method: string): boolean =>
      parse(`${method} / HTTP/1.1\r\n${HOST}\r\n`).isIdempotent;

    for (const method of ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']) {
      assert.equal(idempotent(method), true, method);
    }
    for (const method of ['POST', 'PATCH', 'get', 'PROPFIND']) {
      assert.equal(idempotent(method), false, method);
    }
  });

  it('forgets one message before the next', () => {
    const head = parse(
      `POST /a HTTP/1.0\r\n${HOST}Content-Length: 4\r\nConnection: close, a\r\nA: b\r\n\r\n`,
    );

    assert.equal(feedParts(head, [`GET /c HTTP/1.1\r\n${HOST}\r\n`]), 'complete, 0 more');

    assert.deepEqual(
      [head.method, head.target, head.framing, head.wantsClose, head.count, head.header('a')],
      ['GET', '/c', 'none', false, 1, undefined],
    );
    head.reset();
    assert.deepEqual([head.begun, head.method, head.target, head.host], [false, '', '', '']);
  });
});

describe('the bounds of a request head', () => {
  const text = `GET / HTTP/1.1\r\n${HOST}A: b\r\n\r\n`;

  it('admit a head of exactly the bytes allowed and refuse one more', () => {
    assert.equal(outcomeOf(text, { maxHeadBytes: text.length }), 'complete, 0 more');
    assert.equal(outcomeOf(text, { maxHeadBytes: text.length - 1 }), 'head-too-large');
  });

  it('do not count the empty line before the request line', () => {
    assert.equal(outcomeOf(`\r\n${text}`, { maxHeadBytes: text.length }), 'complete, 0 more');
  });

  it('refuse an endless line without waiting for its end', () => {
    assert.equal(
      outcomeOf('GET /aaaaaaaaaaaaaaaaaaaaaaaaaaa', { maxHeadBytes: 16 }),
      'head-too-large',
    );
  });

  it('admit exactly the field lines allowed and refuse one more', () => {
    assert.equal(outcomeOf(text, { maxFieldLines: 2 }), 'complete, 0 more');
    assert.equal(outcomeOf(text, { maxFieldLines: 1 }), 'too-many-fields');
  });

  it('hold for the default number of field lines, past what is reserved at first', () => {
    const lines = (n: number): string => `GET / HTTP/1.1\r\n${HOST}${'A: b\r\n'.repeat(n - 1)}\r\n`;
    const { maxFieldLines } = defaultHttp1Limits;

    const head = parse(lines(maxFieldLines));

    assert.equal(head.headerCount('a'), maxFieldLines - 1);
    assert.equal(head.host, 'a.example');
    assert.equal(feedParts(head, [lines(maxFieldLines + 1)]), 'too-many-fields');
  });

  it('admit exactly the Connection options allowed, repeated ones counted once, and refuse one more', () => {
    const withOptions = (count: number): string => {
      const options = Array.from({ length: count }, (_, n) => `x-${n}, x-0`).join(', ');
      return `GET / HTTP/1.1\r\n${HOST}Connection: ${options}\r\nConnection: X-0\r\n\r\n`;
    };
    const head = new RequestHead(defaultHttp1Limits);

    assert.equal(feedParts(head, [withOptions(maxConnectionOptions)]), 'complete, 0 more');
    assert.equal(feedParts(head, [withOptions(maxConnectionOptions + 1)]), 'connection-options');
  });

  it('admit a target of exactly the bytes allowed and refuse one more', () => {
    const target = `/${'t'.repeat(9)}`;
    const request = `GET ${target} HTTP/1.1\r\n${HOST}\r\n`;

    assert.equal(outcomeOf(request, { maxTargetBytes: 10 }), 'complete, 0 more');
    assert.equal(outcomeOf(request, { maxTargetBytes: 9 }), 'target-too-long');
  });
});
