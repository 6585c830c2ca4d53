import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Histogram } from '../counters/histogram.ts';
import { dumpMetrics, renderMetrics, type Metric } from './metric.ts';

function metricsOf(requests: number, age: number, seconds: readonly number[]): readonly Metric[] {
  const histogram = new Histogram([0.001, 0.01]);
  for (const one of seconds) histogram.observe(one);
  return [
    {
      definition: {
        name: 'weir_requests_total',
        help: 'requests',
        kind: 'counter',
        labels: ['verdict'],
        across: 'sum',
      },
      read: () => [{ labels: { verdict: 'allowed' }, value: requests }],
    },
    {
      definition: { name: 'weir_age', help: 'age', kind: 'gauge', labels: [], across: 'max' },
      read: () => [{ labels: {}, value: age }],
    },
    {
      definition: { name: 'weir_s', help: 's', kind: 'histogram', labels: [], across: 'sum' },
      read: () => histogram,
    },
  ];
}

describe('metrics', () => {
  it('render plain numbers as Prometheus reads them, histograms cumulative', async () => {
    const text = await renderMetrics([dumpMetrics(metricsOf(3, 7, [0.0005, 0.001, 0.005, 1]))]);

    assert.match(text, /^# TYPE weir_requests_total counter$/m);
    assert.match(text, /^weir_requests_total\{verdict="allowed"\} 3$/m);
    assert.match(text, /^weir_s_bucket\{le="0\.001"\} 2$/m);
    assert.match(text, /^weir_s_bucket\{le="0\.01"\} 3$/m);
    assert.match(text, /^weir_s_bucket\{le="\+Inf"\} 4$/m);
    assert.match(text, /^weir_s_count 4$/m);
  });

  it('add up over workers, or take the largest where a sum says nothing', async () => {
    const text = await renderMetrics([
      dumpMetrics(metricsOf(3, 7, [0.005])),
      dumpMetrics(metricsOf(4, 2, [0.005])),
    ]);

    assert.match(text, /^weir_requests_total\{verdict="allowed"\} 7$/m);
    assert.match(text, /^weir_age 7$/m);
    assert.match(text, /^weir_s_count 2$/m);
  });
});
