import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fieldsOf } from '../../test/support/http2-side.ts';
import { Http2Request, type RequestOptions, valueOf } from './request.ts';

const OPTIONS: RequestOptions = {
  peerAddress: '192.0.2.1',
  maxTargetBytes: 100,
  knownHost: '',
  isWhole: false,
};

function request(lines: readonly string[], options: Partial<RequestOptions> = {}): Http2Request {
  return new Http2Request(
    { fields: fieldsOf(...lines), isTooLarge: false },
    { ...OPTIONS, ...options },
  );
}

/** GET of `/` from a.example, with other pseudo-fields instead; empty = without. */
function pseudo(changes: Readonly<Record<string, string | undefined>> = {}): string[] {
  const fields: Readonly<Record<string, string | undefined>> = {
    method: 'GET',
    scheme: 'http',
    path: '/',
    authority: 'a.example',
    ...changes,
  };
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`:${name}: ${value}`],
  );
}

function refusal(lines: readonly string[]): string | undefined {
  return request(lines).refusal;
}

describe('a request', () => {
  it('says what its pseudo-fields say', () => {
    const one = request([...pseudo({ path: '/x?y' }), 'content-length: 5', 'a: 1']);
    assert.equal(one.refusal, undefined);
    assert.equal(one.method, 'GET');
    assert.equal(one.target, '/x?y');
    assert.equal(one.host, 'a.example');
    assert.equal(one.protocol, '');
    assert.equal(one.contentLength, 5);
    assert.equal(one.peerAddress, '192.0.2.1');
    assert.equal(request(pseudo()).contentLength, -1);
  });

  it('has its pseudo-fields in any order', () => {
    assert.equal(refusal(pseudo().toReversed()), undefined);
  });

  it('is malformed without one of them', () => {
    for (const name of ['method', 'scheme', 'path']) {
      assert.equal(refusal(pseudo({ [name]: undefined })), 'malformed', name);
    }
    assert.equal(refusal([]), 'malformed');
    assert.equal(refusal(pseudo({ path: '' })), 'malformed');
  });

  it('is malformed with one twice, one behind another line, or one that there is not', () => {
    for (const line of pseudo()) assert.equal(refusal([...pseudo(), line]), 'malformed', line);
    assert.equal(refusal(['a: 1', ...pseudo()]), 'malformed');
    assert.equal(refusal([...pseudo(), ':status: 200']), 'malformed');
    assert.equal(refusal([...pseudo(), ':other: x']), 'malformed');
    assert.equal(refusal([...pseudo(), ':protocol: websocket']), 'malformed', 'not of GET');
  });

  it('is malformed with a malformed line', () => {
    assert.equal(refusal([...pseudo(), 'connection: close']), 'malformed');
    assert.equal(refusal([...pseudo(), 'A: 1']), 'malformed');
    assert.equal(refusal([...pseudo({ path: '/\0' })]), 'malformed');
  });

  it('is refused when its fields were too many to be kept', () => {
    const one = new Http2Request({ fields: fieldsOf(...pseudo()), isTooLarge: true }, OPTIONS);
    assert.equal(one.refusal, 'head-too-large');
  });

  it('says its method also when its fields were too many: an answer to HEAD has no body', () => {
    const fields = fieldsOf(...pseudo({ method: 'HEAD' }));

    assert.equal(new Http2Request({ fields, isTooLarge: true }, OPTIONS).method, 'HEAD');
  });

  it('says one length', () => {
    const length = (...values: string[]): string | undefined =>
      refusal([...pseudo(), ...values.map((value) => `content-length: ${value}`)]);
    assert.equal(length('0'), undefined);
    assert.equal(length('5', '5'), undefined);
    for (const values of [['5', '6'], ['-1'], ['5, 5'], ['x', '5'], ['5', 'x'], ['+5'], ['']]) {
      assert.equal(length(...values), 'content-length', values.join());
    }
  });

  it('has a method that is a token of at most 32 bytes', () => {
    for (const method of ['GET', 'x', 'get', 'M-SEARCH', 'X'.repeat(32)]) {
      assert.equal(refusal(pseudo({ method })), undefined, method);
    }
    for (const method of ['', 'X'.repeat(33), 'PRI', 'G T', 'G@T', 'GÉT']) {
      assert.equal(refusal(pseudo({ method })), 'method', method);
    }
  });

  it('has a path, or a star for OPTIONS', () => {
    for (const path of ['x', 'http://a.example/', '?x', '/a b', '/#', '/\t/', '*x']) {
      assert.equal(refusal(pseudo({ path })), 'target', path);
    }
    assert.equal(refusal(pseudo({ path: '/\xe9%zz' })), undefined);
    assert.equal(refusal(pseudo({ path: '*' })), 'target');
    assert.equal(refusal(pseudo({ path: '*', method: 'OPTIONS' })), undefined);
    assert.equal(refusal(pseudo({ path: `/${'x'.repeat(99)}` })), undefined);
    assert.equal(refusal(pseudo({ path: `/${'x'.repeat(100)}` })), 'target-too-long');
  });
});

describe('the host of a request', () => {
  it('is its authority, or its Host without one', () => {
    assert.equal(request(pseudo({ authority: 'a:1' })).host, 'a:1');
    assert.equal(request([...pseudo({ authority: undefined }), 'host: b:2']).host, 'b:2');
  });

  it('is missing where the authority is empty, whatever Host says: two readers would see two', () => {
    const one = request([...pseudo({ authority: '' }), 'host: b:2']);

    assert.deepEqual([one.host, one.refusal], ['', 'host-missing']);
  });

  it('is not missing', () => {
    assert.equal(refusal(pseudo({ authority: undefined })), 'host-missing');
    assert.equal(refusal(pseudo({ authority: '' })), 'host-missing');
    assert.equal(refusal([...pseudo({ authority: undefined }), 'host: ']), 'host-missing');
  });

  it('is a host with an optional port', () => {
    for (const authority of ['a b', 'u@a.example', 'a:b', 'a/b', '[::1', 'a:65536']) {
      assert.equal(refusal(pseudo({ authority })), 'host-invalid', authority);
    }
    assert.equal(refusal(pseudo({ authority: '[::1]:80' })), undefined);
  });

  it('is not looked at again when it is known', () => {
    const known = request(pseudo({ authority: 'not valid' }), { knownHost: 'not valid' });
    assert.equal(known.refusal, undefined);
  });

  it('is the same in every line, but for the case', () => {
    assert.equal(refusal([...pseudo(), 'host: A.example']), undefined);
    assert.equal(refusal([...pseudo(), 'host: b.example']), 'host-mismatch');
    assert.equal(refusal([...pseudo(), 'host: ']), 'host-mismatch');
    const two = ['host: a.example', 'host: b.example'];
    assert.equal(refusal([...pseudo(), ...two]), 'host-repeated');
    assert.equal(refusal([...pseudo({ authority: undefined }), ...two]), 'host-repeated');
    const same = ['host: a.example', 'host: a.example'];
    assert.equal(refusal([...pseudo({ authority: undefined }), ...same]), 'host-repeated');
  });
});

describe('the length of a body', () => {
  it('is not announced by a request that ends with its fields', () => {
    const announced = [...pseudo(), 'content-length: 3'];
    assert.equal(request(announced, { isWhole: true }).refusal, 'malformed');
    assert.equal(request(announced, { isWhole: false }).refusal, undefined);
    assert.equal(request([...pseudo(), 'content-length: 0'], { isWhole: true }).refusal, undefined);
  });
});

describe('CONNECT', () => {
  const connect = { method: 'CONNECT', scheme: undefined, path: undefined };
  const extended = [...pseudo({ method: 'CONNECT' }), ':protocol: websocket'];

  it('is not served when it says where to and nothing else', () => {
    assert.equal(refusal(pseudo(connect)), 'connect');
  });

  it('is malformed with a path or a scheme, or without an authority', () => {
    assert.equal(refusal(pseudo({ ...connect, path: '/' })), 'malformed');
    assert.equal(refusal(pseudo({ ...connect, scheme: 'http' })), 'malformed');
    assert.equal(refusal(pseudo({ ...connect, authority: undefined })), 'malformed');
    assert.equal(refusal(pseudo({ method: 'CONNECT' })), 'malformed');
  });

  it('is served as a GET when it names a protocol', () => {
    const one = request(extended);
    assert.equal(one.refusal, undefined);
    assert.equal(one.protocol, 'websocket');
    assert.equal(one.method, 'GET');
    assert(!one.isIdempotent);
  });

  it('is malformed when it names a protocol and lacks something, or names none', () => {
    for (const line of extended.slice(1)) {
      const rest = extended.filter((one) => one !== line);
      assert.equal(refusal(rest), 'malformed', line);
    }
    assert.equal(refusal([...pseudo({ method: 'CONNECT' }), ':protocol: ']), 'malformed');
    assert.equal(refusal([...pseudo(connect), ':protocol: ']), 'malformed');
  });
});

describe('what the rules see of a request', () => {
  const one = request([...pseudo(), 'a: 1', 'b: 2', 'a: 3']);

  it('are the lines of a name as one value', () => {
    assert.equal(one.header('a'), '1, 3');
    assert.equal(one.header('b'), '2');
    assert.equal(one.header('c'), undefined);
    assert.equal(one.headerCount('a'), 2);
    assert.equal(one.headerCount('c'), 0);
    assert.equal(valueOf(one.fields, 'a'), '1, 3');
  });

  it('are all lines but pseudo-fields', () => {
    const seen: string[] = [];
    one.eachHeader((name, value) => seen.push(`${name}=${value}`));
    assert.deepEqual(seen, ['a=1', 'b=2', 'a=3']);
  });

  it('is whether it may be sent twice', () => {
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE']) {
      assert(request(pseudo({ method })).isIdempotent, method);
    }
    for (const method of ['POST', 'PATCH', 'get']) {
      assert(!request(pseudo({ method })).isIdempotent, method);
    }
  });

  it('is whether it is a call of gRPC', () => {
    const type = (value: string): boolean =>
      request([...pseudo(), `content-type: ${value}`]).isGrpc;
    assert(type('application/grpc'));
    assert(type('application/grpc+proto'));
    assert(type('application/grpc;charset=utf-8'));
    assert(!type('application/grpc-web+proto'));
    assert(!type('application/json'));
    assert(!one.isGrpc);
  });
});
