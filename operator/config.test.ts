import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../contract/errors.ts';
import { describeOperatorConfig, parseOperatorConfig } from './config.ts';

function refusalOf(
  flags: Record<string, string>,
  environment: Record<string, string> = {},
): unknown {
  try {
    parseOperatorConfig(flags, environment);
  } catch (error) {
    if (error instanceof WeirError) return error.details;
    throw error;
  }
  return assert.fail('it was accepted');
}

describe('the configuration of the operator', () => {
  it('needs nothing to be given', () => {
    const config = parseOperatorConfig({}, {});

    assert.equal(config.namespace, 'weir-system');
    assert.deepEqual(config.webhook, { host: '::', port: 9443 });
    assert.deepEqual(config.watchNamespaces, []);
  });

  it('takes a flag before a variable before the default', () => {
    const environment = { WEIR_MODE: 'redirect', WEIR_SERVICE: 'limits' };

    const config = parseOperatorConfig({ mode: 'takeover' }, environment);

    assert.deepEqual(
      [config.mode, config.service, config.logLevel],
      ['takeover', 'limits', 'info'],
    );
  });

  it('splits lists at commas', () => {
    const config = parseOperatorConfig({}, { WEIR_WATCH_NAMESPACES: 'shop, blog' });

    assert.deepEqual(config.watchNamespaces, ['shop', 'blog']);
  });

  it('is printed by flag name, as far as it is known', () => {
    const described = describeOperatorConfig(parseOperatorConfig({}, {}));

    assert.equal(described['drain-seconds'], 5);
    assert.ok(!('kubeconfig' in described));
  });

  it('names the flag that cannot be read, what it said, and what would be right', () => {
    assert.deepEqual(refusalOf({ 'drain-seconds': '3601' }), {
      where: '--drain-seconds',
      given: '3601',
      right: 'a whole number from 0 to 3600',
    });
    assert.equal(parseOperatorConfig({ 'drain-seconds': '3600' }, {}).drainSeconds, 3_600);
  });

  it('names a variable that is none of its own, and the one that was meant', () => {
    assert.match(JSON.stringify(refusalOf({}, { WEIR_MODES: 'auto' })), /did you mean WEIR_MODE\?/);
  });

  it('leaves the variables of the kubelet for Services alone', () => {
    const environment = {
      WEIR_OPERATOR_SERVICE_HOST: '10.0.0.1',
      WEIR_OPERATOR_SERVICE_PORT_STREAM: '8443',
      WEIR_OPERATOR_PORT: 'tcp://10.0.0.1:8443',
      WEIR_OPERATOR_PORT_8443_TCP_ADDR: '10.0.0.1',
      WEIR_SERVICE_HOST: '10.0.0.2',
    };

    assert.doesNotThrow(() => parseOperatorConfig({}, environment));
  });

  it('wants a folder with certificates from files, and none with its own', () => {
    assert.match(JSON.stringify(refusalOf({ certificates: 'files' })), /--certificate-dir/);
    assert.match(JSON.stringify(refusalOf({ 'certificate-dir': '/tls' })), /--certificate-dir/);
    assert.doesNotThrow(() =>
      parseOperatorConfig({ certificates: 'files', 'certificate-dir': '/tls' }, {}),
    );
  });
});
