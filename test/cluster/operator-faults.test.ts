// One of each fault, under traffic. `npm run bench:operator-faults` goes on for ten minutes and keeps its figures.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { EnforcedApp } from './enforced-app.ts';
import { FIXED_CAPACITY, PODS, runCampaign } from './fault-campaign.ts';
import { whyNoFaults } from './test-cluster.ts';

const ONE_OF_EACH: readonly string[] = [
  'the next CA introduced, to sign soon',
  "the store's Secret rotated",
  'the leader killed, another one leads',
  'watches and all other connections to the API server cut',
  'etcd compacted and the API server restarted (410)',
  "the webhook configuration's caBundle wiped",
  'both replicas killed at once',
];

it(
  'no fault around the sidecars changes an answer or a status',
  { skip: whyNoFaults() },
  async () => {
    await using app = await EnforcedApp.open({ replicas: 2 });

    const { steady, fixed, ...report } = await runCampaign(app, {
      faults: ONE_OF_EACH,
      atLeastMs: 0,
    });

    assert.deepEqual([steady.others, fixed.others], [{}, {}], 'no answer but the policies’ own');
    assert.ok(
      steady.admitted <= steady.most && steady.admitted >= steady.least,
      JSON.stringify(steady),
    );
    assert.equal(fixed.admitted, Math.min(FIXED_CAPACITY, fixed.requests));
    assert.ok(fixed.requests > FIXED_CAPACITY, 'the fixed bucket was emptied');
    assert.deepEqual(report.flaps, []);
    assert.equal(report.fallbacks, 0, 'sidecars kept what the stream had given them');
    assert.ok(report.looks > PODS);
    assert.equal(report.strikes.length, ONE_OF_EACH.length);
  },
);
