// npm run bench:micro: the pieces of a request's way, nanoseconds each, against the recorded baseline.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { do_not_optimize, measure } from 'mitata';
import { readArguments } from '../scripts/arguments.ts';
import type { CompiledRule } from '../contract/bundle.ts';
import { Denial } from '../sidecar/enforcement/denial.ts';
import { QuotaFields } from '../sidecar/enforcement/quota-fields.ts';
import { defaultHttp1Limits } from '../sidecar/http1/limits.ts';
import { RequestHead } from '../sidecar/http1/request-head.ts';
import { hashKeyText } from '../sidecar/limiter/bucket-key.ts';
import { bucketsOfTier } from '../sidecar/limiter/bucket.ts';
import type { TierBuckets } from '../sidecar/limiter/bucket.ts';
import { forwardedRequestHead, hopFields } from '../sidecar/proxy/forwarded-head.ts';
import { Evaluation } from '../sidecar/rules/evaluation.ts';
import { normalPath } from '../sidecar/rules/request-target.ts';
import { Limiter } from '../sidecar/store/limiter.ts';
import { MemoryStore } from '../sidecar/store/memory-store.ts';
import { policyOf, ruleOf, rulesOf, tierOf } from '../test/support/rule-bundle.ts';
import { machineFacts } from './machine.ts';
import type { MicroResult } from './micro-result.ts';
import { keep, writeReport } from './report.ts';

const { values: flags } = readArguments({
  command: 'npm run bench:micro',
  about: "The pieces of a request's way, nanoseconds each, against the recorded baseline.",
  lines: ['--record   make this run the baseline (bench/results/micro.json)'],
  config: { options: { record: { type: 'boolean', default: false } } },
});

const WRK_HEAD = 'GET /v1/users/42 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nX-Api-Key: client-1\r\n\r\n';
const BROWSER_HEAD = [
  'GET /v1/users/42?tenant=a&page=2 HTTP/1.1',
  'Host: shop.example',
  'Connection: keep-alive',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'Accept-Language: en-GB,en;q=0.9',
  'Accept-Encoding: gzip, deflate, br',
  'Cookie: session=0123456789abcdef0123456789abcdef; theme=dark',
  'X-Api-Key: client-1',
  'X-Forwarded-For: 203.0.113.7',
  'Referer: https://shop.example/',
  'Cache-Control: no-cache',
  '',
  '',
].join('\r\n');

const LIMIT = { capacity: 1e8, unitsPerToken: 1, unitsPerTick: 100, tickUs: 1 } as const;
const HEADER_KEY: CompiledRule['key'] = [{ kind: 'header', name: 'x-api-key' }];
const WIDE_KEY: CompiledRule['key'] = [
  { kind: 'clientIP' },
  { kind: 'header', name: 'x-api-key' },
  { kind: 'pathSegment', index: 2 },
];

const bundleRuns = await ruleBenches();
const benches: readonly (readonly [name: string, run: () => unknown])[] = [
  ['parse a request head, 2 fields', parsing(WRK_HEAD)],
  ['parse a request head, 12 fields', parsing(BROWSER_HEAD)],
  ['write the head for the upstream', forwarding()],
  ['normalise a plain path', () => normalPath('/v1/users/42?tenant=a')],
  ['normalise an escaped path', () => normalPath('/v1/%75sers/../users/42?tenant=a')],
  ...bundleRuns,
  ['hash a new key', () => hashKeyText('k1h9:x-api-key8:client-1')],
  ['decide in the embedded store, known key', deciding()],
  ['quota fields, new numbers', quotaFields()],
  ['answer to a refused request, new wait', denying()],
];

const found: { name: string; ns: number }[] = [];
for (const [name, run] of benches) {
  // The lower quartile: what a piece costs when nobody else has the core.
  const { p25 } = await measure(() => {
    do_not_optimize(run());
  });
  found.push({ name, ns: Number(p25.toFixed(1)) });
}
const baseline = await readBaseline();
for (const { name, ns } of found) {
  const before = baseline?.benches.find((one) => one.name === name)?.ns;
  const against = before === undefined ? 'new' : `${(ns / before).toFixed(2)} × the baseline`;
  process.stdout.write(`${name.padEnd(48)} ${ns.toFixed(0).padStart(7)} ns   ${against}\n`);
}
if (flags.record) {
  const at = new Date().toISOString();
  await keep('micro.json', { at, machine: machineFacts(), benches: found } satisfies MicroResult);
  await writeReport();
}

function parsing(text: string): () => unknown {
  const head = new RequestHead(defaultHttp1Limits);
  return () => {
    head.reset();
    return head.feed(text);
  };
}

function parsed(text: string): RequestHead {
  const head = new RequestHead(defaultHttp1Limits);
  head.peerAddress = '192.0.2.1';
  if (head.feed(text) !== 'complete') throw new Error('the head of a bench is not valid');
  return head;
}

function forwarding(): () => unknown {
  const head = parsed(BROWSER_HEAD);
  const hop = hopFields('192.0.2.1', 'http', '');
  return () => forwardedRequestHead(head, hop);
}

async function ruleBenches(): Promise<[name: string, run: () => unknown][]> {
  const matching = ruleOf({ match: [prefix('/v1')], key: HEADER_KEY });
  const elsewhere = Array.from({ length: 31 }, (_, i) =>
    ruleOf({ name: `other-${String(i)}`, match: [prefix(`/other-${String(i)}`)], key: HEADER_KEY }),
  );
  const everywhere = Array.from({ length: 32 }, (_, i) =>
    ruleOf({ name: `all-${String(i).padStart(2, '0')}`, match: [prefix('/v1')], key: HEADER_KEY }),
  );
  return [
    ['match 1 rule, header key', await evaluating([matching])],
    ['match 1 of 32 rules, header key', await evaluating([matching, ...elsewhere])],
    ['match 32 of 32 rules, header key', await evaluating(everywhere)],
    ['match 1 rule, key of three parts', await evaluating([ruleOf({ key: WIDE_KEY })])],
  ];
}

function prefix(value: string): CompiledRule['match'][number] {
  return { path: { type: 'Prefix', value } };
}

async function evaluating(rules: readonly CompiledRule[]): Promise<() => unknown> {
  const set = await rulesOf(policyOf({ rules }));
  const head = parsed(BROWSER_HEAD);
  const out = new Evaluation();
  return () => set.evaluate(head, out);
}

function tier(): TierBuckets {
  const buckets = [{ name: 'main', limit: LIMIT }];
  const rule = ruleOf({ key: HEADER_KEY, tiers: [tierOf({ buckets })] });
  return bucketsOfTier(policyOf({ rules: [rule] }), rule, tierOf({ buckets }));
}

function deciding(): () => unknown {
  let nowUs = 1_000_000;
  const clock = { nowUs: () => (nowUs += 10), wallUs: () => nowUs };
  const limiter = new Limiter({ store: new MemoryStore(clock), clock });
  const [buckets, weights] = [tier(), [1]];
  const waiter = { pending: undefined, onOutcome: () => undefined };
  return () => {
    limiter.acquire([limiter.keyed(buckets, 'k1h9:x-api-key8:client-1')], weights, 1, waiter);
  };
}

function firstBucket(): ReturnType<typeof tier>['buckets'][number]['bucket'] {
  const [bucket] = tier().buckets;
  if (bucket === undefined) throw new Error('a tier has a bucket');
  return bucket.bucket;
}

function quotaFields(): () => unknown {
  const fields = new QuotaFields(firstBucket());
  let tokens = 0;
  return () => fields.lines((tokens = (tokens + 1) % 1_000), 1);
}

function denying(): () => unknown {
  const denial = new Denial(policyOf(), 'policy/rule/main');
  let wait = 0;
  return () =>
    denial.prepare((wait = (wait + 1) % 60), 'RateLimit: "policy/rule/main";r=0;t=1\r\n');
}

async function readBaseline(): Promise<MicroResult | undefined> {
  const file = path.join(import.meta.dirname, 'results', 'micro.json');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as MicroResult);
}
