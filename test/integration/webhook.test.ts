import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import type { InjectionEvent } from '../../operator/injection/admission-review.ts';
import { silentLog } from '../../operator/log.ts';
import { BODY_BYTES_MAX, openWebhookServer } from '../../operator/webhook/server.ts';
import type { WebhookServer } from '../../operator/webhook/server.ts';
import { createAuthority, issueLeaf } from '../../operator/certificates/authority.ts';
import { injectionConfig, simplePod, surroundings } from '../support/pods.ts';
import { eventually } from '../support/redis.ts';

interface Fixture extends AsyncDisposable {
  readonly server: WebhookServer;
  readonly ca: string;
  readonly events: readonly InjectionEvent[];
  readonly metrics: Registry;
}

async function openFixture(): Promise<Fixture> {
  const nowMs = Date.now();
  const authority = await createAuthority(nowMs);
  const leaf = await issueLeaf(authority, { names: ['127.0.0.1'], nowMs });
  const events: InjectionEvent[] = [];
  const metrics = new Registry();
  const server = await openWebhookServer({
    ...{ host: '127.0.0.1', port: 0, certificate: leaf, metrics, log: silentLog() },
    world: {
      surroundingsOf: (namespace) => {
        if (namespace === 'broken') throw new Error('a bug');
        return surroundings({ namespace });
      },
      workloadOf: (namespace, { kind, name }) => ({ apiVersion: 'apps/v1', kind, namespace, name }),
    },
    config: () => injectionConfig(),
    events: { record: (event) => events.push(event) },
  });
  const close = async (): Promise<void> => {
    await server[Symbol.asyncDispose]();
  };
  return { server, ca: authority.cert, events, metrics, [Symbol.asyncDispose]: close };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Question {
  readonly path?: string;
  readonly method?: string;
  readonly type?: string;
  readonly ca?: string;
  /** Keeps connections; each question has one of its own without it. */
  readonly agent?: Agent;
}

function ask({ server, ca }: Fixture, body: string, question: Question = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { path = '/mutate', method = 'POST', type = 'application/json' } = question;
  const headers = { 'content-type': type };
  const options = { method, ca: question.ca ?? ca, headers, agent: question.agent ?? false };
  const sent = request(`${server.url}${path}`, options, (response) => {
    let text = '';
    response.setEncoding('utf8');
    response.on('data', (part: string) => (text += part));
    response.on('end', () => {
      resolve({ status: response.statusCode ?? 0, text });
    });
  });
  sent.on('error', reject);
  sent.end(body);
  return promise;
}

function review(namespace = 'shop'): string {
  const object = simplePod({ spec: { hostNetwork: true } });
  const kind = { group: '', version: 'v1', kind: 'Pod' };
  const asked = { uid: 'u1', kind, namespace, operation: 'CREATE', object };
  return JSON.stringify({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: asked,
  });
}

describe('the webhook', () => {
  it('answers a review over TLS, tells of it, and counts it', async () => {
    await using fixture = await openFixture();

    const { status, text } = await ask(fixture, review());

    assert.equal(status, 200);
    assert.match(text, /"uid":"u1","allowed":true/);
    assert.deepEqual(
      fixture.events.map(({ reason }) => reason),
      ['HostNetwork'],
    );
    const numbers = await fixture.metrics.metrics();
    assert.match(
      numbers,
      /controller_runtime_webhook_requests_total\{webhook="\/mutate",code="200"\} 1/,
    );
    assert.match(numbers, /weir_injection_total\{result="refused",reason="HostNetwork"\} 1/);
    assert.match(numbers, /controller_runtime_webhook_requests_in_flight\{webhook="\/mutate"\} 0/);
  });

  it('says what is wrong with a request that it cannot answer', async () => {
    await using fixture = await openFixture();
    const table: readonly (readonly [number, string, Question])[] = [
      [415, review(), { type: 'text/yaml' }],
      [400, 'no json', {}],
      [400, '', {}],
      [400, '{}', {}],
      [404, review(), { path: '/validate' }],
      [404, '', { method: 'GET' }],
      [413, ' '.repeat(BODY_BYTES_MAX + 1), {}],
    ];

    for (const [status, body, question] of table) {
      const answer = await ask(fixture, body, question);
      assert.equal(answer.status, status, answer.text);
      assert.match(answer.text, /^\{"error":"[^"]{10,}/);
    }
    const most = await ask(fixture, review().padEnd(BODY_BYTES_MAX, ' '));
    assert.equal(most.status, 200);
  });

  it('answers 500 for a fault of its own, without telling its insides', async () => {
    await using fixture = await openFixture();

    const { status, text } = await ask(fixture, review('broken'));

    assert.equal(status, 500);
    assert.doesNotMatch(text, /a bug/);
  });

  it('answers what is in flight when it ends, and takes nothing after', async () => {
    await using fixture = await openFixture();
    const { server, ca, metrics } = fixture;
    const body = review();
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    const sent = request(`${server.url}/mutate`, { method: 'POST', ca, headers, agent: false });
    const answered = once(sent, 'response');
    sent.write(body.slice(0, 10));
    await eventually('the request is in flight', async () =>
      (await metrics.metrics()).includes('in_flight{webhook="/mutate"} 1'),
    );

    const ended = server[Symbol.asyncDispose]();
    sent.end(body.slice(10));

    const [response] = (await answered) as [IncomingMessage];
    assert.equal(response.statusCode, 200);
    response.resume();
    await ended;
    await assert.rejects(ask(fixture, body));
  });

  it('ends each kept connection with an answer once it drains, and takes new ones', async () => {
    await using fixture = await openFixture();
    const agent = new Agent({ keepAlive: true });
    const kept = (): number => Object.values(agent.freeSockets).flat().length;
    await ask(fixture, review(), { agent });
    await eventually('the connection is kept', () => kept() === 1);

    fixture.server.drain();
    const over = await ask(fixture, review(), { agent });
    await eventually('it is not kept any more', () => kept() === 0);
    const anew = await ask(fixture, review(), { agent });

    agent.destroy();
    assert.deepEqual([over.status, anew.status], [200, 200]);
  });

  it('takes a new certificate without being restarted', async () => {
    await using fixture = await openFixture();
    const nowMs = Date.now();
    const next = await createAuthority(nowMs);
    await assert.rejects(ask(fixture, review(), { ca: next.cert }));

    fixture.server.setCertificate(await issueLeaf(next, { names: ['127.0.0.1'], nowMs }));

    assert.equal((await ask(fixture, review(), { ca: next.cert })).status, 200);
    await assert.rejects(ask(fixture, review()));
  });
});
