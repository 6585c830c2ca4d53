// Programs that people have: curl and h2load by prior knowledge. Machines without them leave these tests out, and say so.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { Http2Upstream } from '../support/http2.ts';
import { SidecarProcess } from '../support/sidecar.ts';

const run = promisify(execFile);

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: some }
spec:
  selector: {}
  rules:
    - name: all
      match: [{ path: { type: Exact, value: /limited } }]
      buckets: [{ capacity: 100, refill: { tokens: 1, every: 1h } }]
    - name: three
      match: [{ path: { type: Exact, value: /three } }]
      buckets: [{ capacity: 3, refill: { tokens: 1, every: 1h } }]
`;

async function whyNot(program: string, flag: string): Promise<string | false> {
  try {
    const { stdout } = await run(program, [flag]);
    return program === 'curl' && !stdout.includes('HTTP2') ? 'this curl has no HTTP/2' : false;
  } catch {
    return `${program} is not installed`;
  }
}

async function open(): Promise<AsyncDisposable & { readonly sidecar: SidecarProcess }> {
  await using stack = new AsyncDisposableStack();
  const upstream = stack.use(
    await Http2Upstream.open((stream) => {
      stream.respond({ 'content-type': 'text/plain' });
      stream.pipe(stream);
      stream.on('end', () => stream.end());
    }),
  );
  const sidecar = stack.use(
    await SidecarProcess.open({ files: { 'p.yaml': POLICY }, upstreamPort: upstream.port }),
  );
  const open = stack.move();
  return { sidecar, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

describe('curl by prior knowledge', { skip: await whyNot('curl', '--version') }, () => {
  it('gets what it sends, and 429 with its reason over the limit', async () => {
    await using all = await open();
    const url = `http://127.0.0.1:${all.sidecar.port}/three`;
    const curl = async (...args: readonly string[]): Promise<string> =>
      (await run('curl', ['-si', '--http2-prior-knowledge', ...args])).stdout;

    const sent = await curl('--data-binary', 'as it is', url);
    const [second, third] = [await curl(url), await curl(url)];
    const refused = await curl(url);

    assert.match(sent, /^HTTP\/2 200 .*\r\n\r\nas it is$/s);
    assert.match(second + third, /^HTTP\/2 200 .*HTTP\/2 200 /s);
    assert.match(refused, /^HTTP\/2 429 .*"violated-policies":\["some\/three\/main"\]/s);
  });
});

describe('h2load', { skip: await whyNot('h2load', '--version') }, () => {
  it('has every one of its requests answered over many streams, and exactly the limit admitted', async () => {
    await using all = await open();
    const base = `http://127.0.0.1:${all.sidecar.port}`;

    const free = await run('h2load', ['-n', '3000', '-c', '6', '-m', '20', `${base}/free`]);
    const limited = await run('h2load', ['-n', '1000', '-c', '4', '-m', '10', `${base}/limited`]);

    assert.match(free.stdout, /3000 succeeded, 0 failed, 0 errored, 0 timeout/);
    assert.match(limited.stdout, /status codes: 100 2xx, 0 3xx, 900 4xx, 0 5xx/);
  });
});
