import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseOperatorConfig } from './config.ts';
import { injectionConfigOf } from './injection-settings.ts';

const FACTS = { version: '1.2.3', minor: 36, trust: 'PEM' };

describe('what is injected', () => {
  it('follows from the settings, with images that are named each by itself', () => {
    const config = injectionConfigOf(parseOperatorConfig({ image: 'weir:2' }, {}), FACTS);

    assert.deepEqual(
      [config.image, config.redirectImage],
      ['weir:2', 'weir.dev/redirect-init:0.1.0'],
    );
    assert.equal('imagePullPolicy' in config, false);
    assert.equal(config.operatorUrl, 'https://weir-operator.weir-system.svc:8443');
    assert.deepEqual([config.version, config.serverMinor, config.operatorCa], ['1.2.3', 36, 'PEM']);
    assert.deepEqual(config.resources, {
      requests: { cpu: '20m', memory: '128Mi' },
      limits: { memory: '256Mi' },
      cpuLimit: '1',
    });
  });

  it('takes each of them where it was given', () => {
    const flags = {
      'redirect-image': 'weir-redirect:2',
      'image-pull-policy': 'Never',
      'stream-url': 'https://limits.example.com:9',
    };

    const config = injectionConfigOf(parseOperatorConfig(flags, {}), FACTS);

    assert.deepEqual(
      [config.redirectImage, config.imagePullPolicy, config.operatorUrl],
      ['weir-redirect:2', 'Never', 'https://limits.example.com:9'],
    );
  });
});
