import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from '../contract/errors.ts';
import { describeRunConfig, parseRunConfig, redactUrl } from './config.ts';
import { settings } from './run-settings.ts';
import { environmentName } from '../contract/setting.ts';

const needed = { policy: ['p.yaml'], upstream: 'localhost:3000' };

function refusal(
  flags: Readonly<Record<string, string | readonly string[]>>,
  environment: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> {
  try {
    parseRunConfig({ ...needed, ...flags }, environment);
  } catch (error) {
    assert(error instanceof WeirError);
    assert.equal(error.code, 'CONFIG_INVALID');
    return error.details;
  }
  return assert.fail('was accepted');
}

describe('the configuration of weir run', () => {
  it('needs only a policy and an upstream, and fills in every default', () => {
    const config = parseRunConfig(needed, {});

    assert.deepEqual(config.upstream, [{ host: 'localhost', port: 3000 }]);
    assert.deepEqual(config.listen, [{ host: '127.0.0.1', port: 8080 }]);
    assert.deepEqual(config.admin, { host: '127.0.0.1', port: 15090 });
    assert.equal(config.deadline, 50);
    assert.equal(config.lease, false);
    assert.equal(config.redis, undefined);
    assert.deepEqual(config.labels, []);
    assert.equal(config.supervise, false);
  });

  it('lets a flag beat the environment, and the environment the default', () => {
    const environment = { WEIR_DEADLINE: '20ms', WEIR_REPLICAS: '3' };

    const config = parseRunConfig({ ...needed, deadline: '10ms' }, environment);

    assert.equal(config.deadline, 10);
    assert.equal(config.replicas, 3);
    assert.equal(config.headerTimeout, 10_000);
  });

  it('takes every setting from the environment', () => {
    const environment = {
      WEIR_POLICY: 'a.yaml,b.yaml',
      WEIR_UPSTREAM: '[::1]:3000',
      WEIR_LABELS: 'app=api,tier=',
      WEIR_DEBUG_FROM: '127.0.0.0/8,fd00::/8',
      WEIR_SUPERVISE: 'true',
      WEIR_ACCESS_LOG: '0.25',
      WEIR_WORKLOAD: 'Deployment/api',
      WEIR_NAMESPACE: 'shop',
      WEIR_VIA: 'weir',
    };

    const config = parseRunConfig({}, environment);

    assert.deepEqual(config.policy, ['a.yaml', 'b.yaml']);
    assert.deepEqual(config.upstream, [{ host: '::1', port: 3000 }]);
    assert.deepEqual(config.labels, [
      ['app', 'api'],
      ['tier', ''],
    ]);
    assert.deepEqual(config.debugFrom, ['127.0.0.0/8', 'fd00::/8']);
    assert.equal(config.supervise, true);
    assert.equal(config.accessLog, 0.25);
    assert.equal(config.workload, 'Deployment/api');
    assert.equal(config.namespace, 'shop');
    assert.equal(config.via, 'weir');
  });

  it('says which option is missing and how to give it', () => {
    assert.throws(() => parseRunConfig({}, {}), {
      code: 'CONFIG_INVALID',
      details: {
        where: '--upstream',
        given: 'nothing',
        right: 'HOST:PORT of the application, such as --upstream localhost:3000',
      },
    });
    assert.throws(
      () => parseRunConfig({ upstream: 'a:1' }, {}),
      (error: WeirError) => {
        return error.details['where'] === '--policy';
      },
    );
  });

  const wrong: Readonly<Record<string, readonly [string, string, RegExp]>> = {
    'a duration without unit': ['deadline', '50', /a duration/],
    'a duration of zero': ['deadline', '0ms', /a duration/],
    'a duration with a fraction': ['deadline', '1.5s', /a duration/],
    'a duration above a day': ['deadline', '25h', /at most 24h/],
    'an upstream without port': ['upstream', 'localhost', /HOST:PORT/],
    'an upstream with port 0': ['upstream', 'localhost:0', /from 1 to 65535/],
    'a port above 65535': ['listen', 'localhost:65536', /from 0 to 65535/],
    'an address without brackets': ['listen', '::1:80', /HOST:PORT/],
    'too many workers': ['workers', '65', /from 1 to 64/],
    'a number with a sign': ['replicas', '-1', /from 1 to 10000/],
    'a level nobody knows': ['log-level', 'loud', /one of error, warn, info, debug/],
    'a share above one': ['access-log', '2', /from 0 to 1/],
    'a switch that is a word': ['supervise', 'yes', /one of true, false/],
    'a label without value sign': ['labels', 'app', /app=api/],
    'a workload without kind': ['workload', 'api', /KIND\/NAME/],
    'a namespace in capitals': ['namespace', 'Shop', /namespace name/],
    'a pseudonym with a space': ['via', 'a b', /token/],
    'a network without length': ['debug-from', '10.0.0.0', /network/],
  };
  for (const [what, [flag, value, right]] of Object.entries(wrong)) {
    it(`refuses ${what}, naming the flag and what would be right`, () => {
      const details = refusal({ [flag]: value });

      assert.equal(details['where'], `--${flag}`);
      assert.equal(details['given'], value);
      assert.match(String(details['right']), right);
    });
  }

  it('accepts both sides of every bound that it refuses beyond', () => {
    const config = parseRunConfig(
      { ...needed, workers: '64', replicas: '1', deadline: '24h', listen: 'a:65535' },
      {},
    );

    assert.equal(config.workers, 64);
    assert.equal(config.deadline, 86_400_000);
    assert.equal(config.listen[0]?.port, 65535);
  });

  it('names the variable when the environment is wrong', () => {
    const details = refusal({}, { WEIR_DEADLINE: 'soon' });

    assert.equal(details['where'], 'WEIR_DEADLINE');
  });

  it('refuses an unknown variable and suggests the one that was meant', () => {
    const details = refusal({}, { WEIR_DEADLNE: '5ms' });

    assert.equal(details['where'], 'WEIR_DEADLNE');
    assert.match(String(details['right']), /did you mean WEIR_DEADLINE\?/);
  });

  it('refuses an unknown variable that resembles none', () => {
    const details = refusal({}, { WEIR_QUANTUM_FLUX: '1' });

    assert.doesNotMatch(String(details['right']), /did you mean/);
  });

  it('leaves alone the variables of the installer, the benches and the tests', () => {
    const environment = {
      WEIR_INSTALL: '0',
      WEIR_BENCH_TRAEFIK: '/x',
      WEIR_TEST_SEED: '1',
      HOME: '/',
    };

    assert.doesNotThrow(() => parseRunConfig(needed, environment));
  });

  it('wants a client certificate and its key together', () => {
    assert.equal(
      refusal({ redis: 'rediss://h:6379', 'redis-cert': 'a.pem' })['where'],
      '--redis-key',
    );
    assert.equal(
      refusal({ redis: 'rediss://h:6379', 'redis-key': 'a.pem' })['where'],
      '--redis-cert',
    );
  });

  it('wants a store for what is said about one', () => {
    for (const flag of ['redis-ca', 'redis-cert', 'redis-key']) {
      const alone = refusal({ [flag]: 'a.pem' });
      const managed = refusal({
        ...{ policy: [], operator: 'https://op:8443', [flag]: 'a.pem' },
        ...{ 'pod-namespace': 'shop', 'pod-name': 'api', 'pod-uid': 'u' },
      });

      assert.equal(alone['where'], '--redis');
      assert.equal(alone['right'], `the store that --${flag} is for`);
      assert.equal(managed['where'], `--${flag}`);
      assert.match(String(managed['right']), /or --operator/);
    }
  });

  it('wants to know what every application speaks, or what all of them do', () => {
    const two = { upstream: ['a:1', 'b:1', 'c:1'], listen: ['d:1', 'e:1', 'f:1'] };

    const details = refusal({ ...two, 'upstream-protocol': ['h2', 'http/1.1'] });
    const config = parseRunConfig({ ...needed, ...two, 'upstream-protocol': 'h2' }, {});

    assert.equal(details['where'], '--upstream-protocol');
    assert.equal(details['given'], '2 for 3 of --upstream');
    assert.deepEqual(config.upstreamProtocol, ['h2']);
  });

  for (const [upstream, listen] of [
    ['localhost:8080', 'localhost:8080'],
    ['10.0.0.1:8080', '10.0.0.1:8080'],
    ['127.0.0.2:8080', '0.0.0.0:8080'],
    ['127.0.0.1:8080', '[::]:8080'],
    ['[::1]:8080', '[::]:8080'],
    ['localhost:8080', '[::]:8080'],
    ['localhost:8080', '127.0.0.1:8080'],
    ['LocalHost:8080', '[::1]:8080'],
    ['127.0.0.1:8080', 'localhost:8080'],
    ['localhost:8080', '0.0.0.0:8080'],
    ['localhost.:8080', 'LOCALHOST:8080'],
    ['0.0.0.0:8080', '127.0.0.1:8080'],
    ['[::]:8080', '[::1]:8080'],
    ['0.0.0.0:8080', '[::]:8080'],
    ['[::ffff:127.0.0.1]:8080', '[::]:8080'],
    ['[0:0:0:0:0:0:0:1]:8080', '[::1]:8080'],
    ['127.0.0.1:8080', '[::0]:8080'],
    ['api.test:8080', 'API.test:8080'],
  ]) {
    it(`refuses to forward to itself: --upstream ${upstream} behind --listen ${listen}`, () => {
      const both = {
        upstream: ['localhost:3000', `${upstream}`],
        listen: [`${listen}`, '127.0.0.1:9'],
      };

      const details = refusal(both);

      assert.equal(details['where'], '--upstream');
      assert.match(String(details['given']), /:8080, where --listen takes requests$/);
      assert(String(details['given']).startsWith(`${String(upstream)}, `));
    });
  }

  for (const [upstream, listen] of [
    ['[::1]:8080', '127.0.0.1:8080'],
    ['[::1]:8080', '0.0.0.0:8080'],
    ['10.0.0.1:8080', '[::]:8080'],
    ['127.0.0.1:8081', '127.0.0.1:8080'],
    ['127.0.0.2:8080', '127.0.0.1:8080'],
    ['0.0.0.0:8080', '[::1]:8080'],
    ['api.test:8080', '[::]:8080'],
  ]) {
    it(`takes what may be another application: --upstream ${upstream} behind --listen ${listen}`, () => {
      const both = { upstream: `${upstream}`, listen: `${listen}` };

      assert.equal(parseRunConfig({ ...needed, ...both }, {}).upstream.length, 1);
    });
  }

  it('never quotes a secret that it refuses', () => {
    const details = refusal({ redis: 'redis://:hunter2@h\0' });

    assert.equal(details['given'], '(not shown)');
  });

  it('prints itself with the password of the store redacted', () => {
    const config = parseRunConfig({ ...needed, redis: 'rediss://u:hunter2@h:6379/1' }, {});

    const described = describeRunConfig(config);

    assert.equal(described['redis'], 'rediss://u:***@h:6379/1');
    assert.equal(JSON.stringify(described).includes('hunter2'), false);
    assert.equal('via' in described, false);
  });

  it('redacts what follows a question mark, where credentials may stand too', () => {
    assert.equal(redactUrl('redis://h:1?password=x'), 'redis://h:1?***');
    assert.equal(redactUrl('redis://:p@h/0?a=b'), 'redis://:***@h/0?***');
  });

  it('has a variable for every flag', () => {
    const names = settings.map((setting) => environmentName(setting.name));

    assert.equal(new Set(names).size, settings.length);
    assert(names.includes('WEIR_MAX_CONNECTIONS'));
  });
});
