// The kubelet's probes, done by the sidecar: asked over the admin listener, as the kubelet asks.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { encodeAppProbes, type AppCheck, type AppProbe } from '../../contract/app-probe.ts';
import { dumpMetrics, renderMetrics } from '../../sidecar/admin/metric.ts';
import { openAdmin } from '../../sidecar/admin/server.ts';
import { AppHealth } from '../../sidecar/app-health/app-health.ts';
import {
  answerHealth,
  openGrpcApp,
  openHttpApp,
  openHttpsApp,
  openSilentApp,
  type GrpcCall,
} from '../support/probed-app.ts';
import { eventually, freePort } from '../support/redis.ts';
import { SidecarProcess } from '../support/sidecar.ts';

interface Asked {
  readonly status: number;
  readonly text: string;
}

interface Kubelet extends AsyncDisposable {
  readonly ask: (path: string) => Promise<Asked>;
  readonly metrics: () => Promise<string>;
}

/** The admin listener of a sidecar with these probes. */
async function openKubelet(probes: readonly AppProbe[]): Promise<Kubelet> {
  const health = await AppHealth.open(encodeAppProbes(probes));
  const metrics = (): Promise<string> => renderMetrics([dumpMetrics([health.metric])]);
  const admin = await openAdmin(
    { host: '127.0.0.1', port: 0 },
    {
      ...{ whyNotReady: () => 'no policies yet', metrics, describe: () => ({}) },
      startDraining: () => undefined,
      appHealth: (path, asker) => health.answer(path, asker),
    },
  );
  return {
    metrics,
    async ask(path) {
      const answer = await fetch(`http://127.0.0.1:${admin.address.port}/app-health/${path}`, {
        headers: { 'user-agent': 'kube-probe/1.36' },
      });
      return { status: answer.status, text: await answer.text() };
    },
    [Symbol.asyncDispose]: () => admin[Symbol.asyncDispose](),
  };
}

function probeOf(check: AppCheck, changes: Partial<AppProbe> = {}): AppProbe {
  return { container: 'app', probe: 'readyz', timeoutSeconds: 10, check, ...changes };
}

function http(port: number, changes: Partial<Extract<AppCheck, { kind: 'http' }>> = {}): AppCheck {
  return { kind: 'http', port, path: '/ready', scheme: 'HTTP', headers: [], ...changes };
}

/** One question about one check. */
async function askOnce(check: AppCheck, changes: Partial<AppProbe> = {}): Promise<Asked> {
  await using kubelet = await openKubelet([probeOf(check, changes)]);
  return await kubelet.ask('app/readyz');
}

describe('an HTTP probe that the sidecar does', () => {
  it('asks the app what the kubelet would have asked', async () => {
    const seen: string[] = [];
    await using app = await openHttpApp(({ method, url, rawHeaders }, response) => {
      seen.push(`${method ?? ''} ${url ?? ''}`, rawHeaders.join('|'));
      response.end('well');
    });
    const headers = [
      { name: 'X-Probe', value: 'one' },
      { name: 'X-Probe', value: 'two' },
      { name: 'accept', value: '' },
    ];

    const { status, text } = await askOnce(http(app.port, { path: 'a b?c=d#e', headers }));

    assert.deepEqual([status, text], [200, 'ok\n']);
    assert.deepEqual(seen, [
      'GET /a%20b?c=d',
      `Host|127.0.0.1:${app.port}|User-Agent|kube-probe/1.36|X-Probe|one|X-Probe|two|Connection|close`,
    ]);
  });

  it('lets the probe choose Host and User-Agent', async () => {
    let seen: readonly string[] = [];
    await using app = await openHttpApp(({ headers }, response) => {
      seen = [headers.host ?? '', headers['user-agent'] ?? ''];
      response.end();
    });
    const headers = [
      { name: 'host', value: 'shop.example.com' },
      { name: 'USER-AGENT', value: 'mine' },
    ];

    await askOnce(http(app.port, { headers }));

    assert.deepEqual(seen, ['shop.example.com', 'mine']);
  });

  it('succeeds from 200 to 399, and else says the status of the app', async () => {
    let answer = 200;
    await using app = await openHttpApp((_, response) => response.writeHead(answer).end('secret'));
    await using kubelet = await openKubelet([probeOf(http(app.port))]);
    const expected = [
      ...[
        [200, 200],
        [204, 200],
        [304, 200],
        [399, 200],
        [400, 400],
        [404, 404],
      ],
      ...[
        [503, 503],
        [599, 599],
        [600, 503],
        [999, 503],
      ],
    ];

    for (const [given = 0, status] of expected) {
      answer = given;
      const asked = await kubelet.ask('app/readyz');
      assert.equal(asked.status, status, `${given}`);
      assert.ok(!asked.text.includes('secret'));
    }
  });

  it('takes any certificate, and asks nothing of a plain port by TLS', async () => {
    await using app = await openHttpsApp((_, response) => response.end('well'));

    const secure = await askOnce(http(app.port, { scheme: 'HTTPS' }));
    const plain = await askOnce(http(app.port));

    assert.equal(secure.status, 200);
    assert.equal(plain.status, 503);
  });

  it('reaches an app that listens on ::1 alone', async () => {
    await using app = await openHttpApp((_, response) => response.end(), '::1');

    assert.equal((await askOnce(http(app.port))).status, 200);
  });

  it('says so when nobody listens', async () => {
    const port = await freePort();

    const { status, text } = await askOnce(http(port));

    assert.equal(status, 503);
    assert.match(
      text,
      new RegExp(`^readyz of container app \\(http on port ${port}\\): .*ECONNREFUSED`),
    );
  });

  it('gives up when its time is over, before and within an answer', async () => {
    await using silent = await openSilentApp();
    await using slow = await openHttpApp((_, response) => response.writeHead(200).write('a'));
    const short = { timeoutSeconds: 1 };

    const answers = await Promise.all([
      askOnce(http(silent.port), short),
      askOnce(http(silent.port, { scheme: 'HTTPS' }), short),
      askOnce(http(slow.port), short),
    ]);

    for (const { status, text } of answers) {
      assert.equal(status, 504);
      assert.match(text, /no answer within 1 s/);
    }
  });

  it('waits for no more of a body than the kubelet reads', async () => {
    await using app = await openHttpApp((_, response) => {
      response.writeHead(200).write('x'.repeat(20_000));
    });

    assert.equal((await askOnce(http(app.port))).status, 200);
  });

  it('fails on an answer that breaks off or is no HTTP', async () => {
    await using broken = await openHttpApp((_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('x');
      setImmediate(() => response.destroy());
    });
    await using other = await openGrpcApp(() => undefined);
    await using upgrading = await openHttpApp(({ socket }) => {
      socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');
    });

    for (const { port } of [broken, other, upgrading]) {
      assert.equal((await askOnce(http(port))).status, 503);
    }
  });

  it('follows redirects on the same host, to another port too', async () => {
    await using second = await openHttpApp((_, response) => response.writeHead(418).end());
    const there = `http://127.0.0.1:${second.port}/x`;
    await using first = await openHttpApp(({ url }, response) => {
      response.writeHead(302, { location: url === '/ready' ? '/next?a=b' : there }).end();
    });

    assert.equal((await askOnce(http(first.port))).status, 418);
  });

  it('takes a redirect to elsewhere as success, and asks nobody', async () => {
    let asked = 0;
    await using elsewhere = await openHttpApp((_, response) => {
      asked += 1;
      response.writeHead(500).end();
    });
    // A name that leads here as well is still not the pod's own.
    for (const location of [
      `http://shop.test:${elsewhere.port}/`,
      'ftp://127.0.0.1/',
      'http://[',
    ]) {
      await using app = await openHttpApp((_, response) => {
        response.writeHead(307, { location }).end();
      });
      assert.equal((await askOnce(http(app.port))).status, 200, location);
    }
    assert.equal(asked, 0);
  });

  it('ends a circle of redirects after ten', async () => {
    let asked = 0;
    await using app = await openHttpApp((_, response) => {
      asked += 1;
      response.writeHead(301, { location: '/ready' }).end();
    });

    const { status, text } = await askOnce(http(app.port));

    assert.equal(status, 503);
    assert.match(text, /more than 10 redirects/);
    assert.equal(asked, 11);
  });
});

describe('a TCP probe that the sidecar does', () => {
  it('succeeds when the port takes a connection', async () => {
    await using app = await openSilentApp();

    assert.equal((await askOnce({ kind: 'tcp', port: app.port })).status, 200);
    assert.equal((await askOnce({ kind: 'tcp', port: await freePort() })).status, 503);
  });
});

describe('a gRPC probe that the sidecar does', () => {
  it('asks the health service of the app by name', async () => {
    const calls: GrpcCall[] = [];
    await using app = await openGrpcApp((stream, call) => {
      calls.push(call);
      answerHealth(stream, { serving: 1 });
    });

    const { status } = await askOnce({ kind: 'grpc', port: app.port, service: 'shop' });

    assert.equal(status, 200);
    const [call] = calls;
    assert.equal(call?.path, '/grpc.health.v1.Health/Check');
    assert.equal(call.authority, `127.0.0.1:${app.port}`);
    assert.deepEqual([...call.message], [0, 0, 0, 0, 6, 0x0a, 4, ...Buffer.from('shop')]);
  });

  it('fails for every other status, in words', async () => {
    const answers = [
      { answer: { serving: 2 }, words: /NOT_SERVING/ },
      { answer: { serving: 0 }, words: /UNKNOWN/ },
      { answer: { serving: 1, grpcStatus: 14 }, words: /gRPC status 14/ },
      { answer: { grpcStatus: 5 }, words: /gRPC status 5/ },
      { answer: { grpcStatus: 12 }, words: /no grpc\.health\.v1\.Health/ },
    ];
    for (const { answer, words } of answers) {
      await using app = await openGrpcApp((stream) => {
        answerHealth(stream, answer);
      });

      const { status, text } = await askOnce({ kind: 'grpc', port: app.port, service: '' });

      assert.equal(status, 503);
      assert.match(text, words);
    }
  });

  it('fails on what is no answer of gRPC', async () => {
    const faults: readonly Parameters<typeof openGrpcApp>[0][] = [
      (stream) => {
        stream.respond({ ':status': 404 }, { endStream: true });
      },
      (stream) => {
        stream.respond({ ':status': 200, 'grpc-status': '0' }, { endStream: true });
      },
      (stream) => {
        stream.respond({ ':status': 200 });
        stream.end('x'.repeat(10_000));
      },
      (stream) => {
        stream.close();
      },
    ];
    for (const fault of faults) {
      await using app = await openGrpcApp(fault);
      assert.equal((await askOnce({ kind: 'grpc', port: app.port, service: '' })).status, 503);
    }
    await using plain = await openHttpApp((_, response) => response.end());
    const other = await askOnce({ kind: 'grpc', port: plain.port, service: '' });
    const nobody = await askOnce({ kind: 'grpc', port: await freePort(), service: '' });
    assert.deepEqual([other.status, nobody.status], [503, 503]);
  });

  it('gives up when its time is over', async () => {
    await using app = await openGrpcApp(() => undefined);
    await using silent = await openSilentApp();

    for (const { port } of [app, silent]) {
      const check: AppCheck = { kind: 'grpc', port, service: '' };
      assert.equal((await askOnce(check, { timeoutSeconds: 1 })).status, 504);
    }
  });
});

describe('the probes of a pod', () => {
  it('are kept apart by container and kind, and counted so', async () => {
    await using well = await openHttpApp((_, response) => response.end());
    await using ill = await openHttpApp((_, response) => response.writeHead(500).end());
    await using kubelet = await openKubelet([
      probeOf(http(well.port), { probe: 'livez' }),
      probeOf(http(ill.port), { probe: 'readyz' }),
      probeOf(http(ill.port), { container: 'other', probe: 'livez' }),
    ]);

    const asked = await Promise.all(
      ['app/livez', 'app/readyz', 'other/livez', 'app/startupz', 'app/../app/livez'].map((path) =>
        kubelet.ask(path),
      ),
    );

    assert.deepEqual(
      asked.map(({ status }) => status),
      [200, 500, 500, 404, 200],
    );
    assert.match(asked[3]?.text ?? '', /app-health\/app\/livez, .*app-health\/other\/livez/);
    const text = await kubelet.metrics();
    const series = 'weir_app_probes_total{container="app",probe="livez",outcome="succeeded"}';
    assert.match(text, new RegExp(`^${series.replaceAll(/[{}]/g, '\\$&')} [12]$`, 'm'));
    assert.match(text, /container="other",probe="livez",outcome="failed"} 1\n/);
    assert.match(text, /container="other",probe="livez",outcome="timed-out"} 0\n/);
  });

  it('share one check among all who ask at a time', async () => {
    const waiting: (() => void)[] = [];
    await using app = await openHttpApp((_, response) => waiting.push(() => response.end()));
    await using kubelet = await openKubelet([probeOf(http(app.port))]);
    const asked = Array.from({ length: 20 }, () => kubelet.ask('app/readyz'));
    await eventually('the app is asked', () => Promise.resolve(waiting.length > 0));
    const known = await kubelet.ask('app/livez');

    for (const answer of waiting) answer();
    const statuses = new Set((await Promise.all(asked)).map(({ status }) => status));

    assert.equal(known.status, 404);
    assert.deepEqual([...statuses], [200]);
    assert.ok(waiting.length < 20, `${waiting.length} questions`);
  });
});

const ONE_A_DAY = `
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: one, namespace: shop }
spec:
  selector: {}
  rules:
    - name: all
      buckets: [{ capacity: 1, refill: { tokens: 1, every: 24h } }]
`;

describe('a sidecar with probes of its app', () => {
  for (const flags of [[], ['--supervise', 'true']]) {
    const how = flags.length === 0 ? 'in one process' : 'with a supervisor';
    it(`answers them past its limits, while it drains and without a store, ${how}`, async () => {
      await using app = await openHttpApp((_, response) => response.end('well'));
      await using sidecar = await SidecarProcess.open({
        files: { 'one.yaml': ONE_A_DAY },
        upstreamPort: app.port,
        flags: [...flags, '--redis', `redis://127.0.0.1:${await freePort()}`],
        env: { WEIR_APP_PROBES: encodeAppProbes([probeOf(http(app.port))]) },
      });
      const statuses: number[] = [];
      const ask = async (): Promise<void> => {
        statuses.push((await sidecar.ask('/app-health/app/readyz')).status);
      };

      for (let i = 0; i < 3; i += 1) await ask();
      await sidecar.ask('/drain', 'POST');
      await ask();

      assert.deepEqual(statuses, [200, 200, 200, 200]);
      assert.equal((await sidecar.ask('/readyz')).status, 503);
      assert.equal(await sidecar.metric('weir_requests_total', '{verdict="allowed"}'), 0);
      const labels = '{container="app",probe="readyz",outcome="succeeded"}';
      assert.equal(await sidecar.metric('weir_app_probes_total', labels), 4);
      const config = await (await sidecar.ask('/config')).text();
      assert.ok(!config.includes('/ready'), 'credentials in headers are not shown');
    });
  }

  it('does not start with probes that it cannot read', async () => {
    await assert.rejects(
      SidecarProcess.open({
        files: { 'one.yaml': ONE_A_DAY },
        upstreamPort: 1,
        env: { WEIR_APP_PROBES: '[{"container":"app"}]' },
      }),
      /WEIR_APP_PROBES.*probes as the webhook writes them/,
    );
  });
});
