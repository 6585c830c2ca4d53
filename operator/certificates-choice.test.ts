import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { certificateNames } from './certificates-choice.ts';
import { parseOperatorConfig } from './config.ts';

describe('the names of the own certificate', () => {
  it('are those by which the API server and sidecars know the Service', () => {
    assert.deepEqual(certificateNames(parseOperatorConfig({ namespace: 'limits' }, {})), [
      'weir-operator.limits.svc',
      'weir-operator.limits',
      'weir-operator.limits.svc.cluster.local',
      'weir-operator',
    ]);
  });

  it('are also the host of the stream and what was asked for, each once', () => {
    const flags = { 'certificate-names': 'weir-operator,10.0.0.1' };
    const hosts = ['https://limits.example.com:8443', 'https://[fd00::1]:8443'];

    const more = hosts.map((url) =>
      certificateNames(parseOperatorConfig({ ...flags, 'stream-url': url }, {})).slice(4),
    );

    assert.deepEqual(more, [
      ['limits.example.com', '10.0.0.1'],
      ['fd00::1', '10.0.0.1'],
    ]);
  });
});
