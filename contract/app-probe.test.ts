import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  APP_PROBES_LENGTH_MAX,
  APP_PROBES_MAX,
  appHealthPath,
  encodeAppProbes,
  type AppProbe,
} from './app-probe.ts';
import { parseAppProbes } from './app-probe-schema.ts';
import { WeirError } from './errors.ts';

const HTTP: AppProbe = {
  container: 'app',
  probe: 'readyz',
  timeoutSeconds: 1,
  check: {
    ...{ kind: 'http', port: 8080, path: '/ready?a=$(HOME)', scheme: 'HTTPS' },
    headers: [{ name: 'Host', value: '$$x' }],
  },
};
const TCP: AppProbe = { ...HTTP, probe: 'livez', check: { kind: 'tcp', port: 1 } };
const GRPC: AppProbe = {
  ...{ container: 'side-car', probe: 'startupz', timeoutSeconds: 3_600 },
  check: { kind: 'grpc', port: 65_535, service: '' },
};

function whyRefused(value: unknown): string {
  try {
    parseAppProbes(typeof value === 'string' ? value : JSON.stringify(value));
  } catch (error) {
    assert(error instanceof WeirError);
    assert.equal(error.code, 'CONFIG_INVALID');
    return `${String(error.details['given'])}; ${String(error.details['right'])}`;
  }
  return 'accepted';
}

function many(count: number): readonly AppProbe[] {
  return Array.from({ length: count }, (_, index) => ({ ...TCP, container: `c${index}` }));
}

describe('the probes of an app', () => {
  it('are read as they were written, and hold nothing that Kubernetes would replace', () => {
    const text = encodeAppProbes([HTTP, TCP, GRPC]);

    assert.deepEqual(parseAppProbes(text), [HTTP, TCP, GRPC]);
    assert.ok(!text.includes('$'));
  });

  it('have a path for each container and kind', () => {
    assert.equal(appHealthPath(HTTP), '/app-health/app/readyz');
    assert.equal(appHealthPath(GRPC), '/app-health/side-car/startupz');
  });

  it('are refused with the field that is wrong', () => {
    assert.match(whyRefused('[{'), /probes as the webhook writes them/);
    assert.match(whyRefused([{ ...TCP, check: { kind: 'tcp', port: 0 } }]), /check\.port/);
    assert.match(whyRefused([{ ...TCP, check: { kind: 'tcp', port: 65_536 } }]), /check\.port/);
    assert.match(whyRefused([{ ...TCP, check: { kind: 'exec' } }]), /check/);
    assert.match(whyRefused([{ ...TCP, container: '../x' }]), /container/);
    assert.match(whyRefused([{ ...TCP, probe: 'healthz' }]), /probe/);
    assert.match(whyRefused([{ ...TCP, timeoutSeconds: 0 }]), /timeoutSeconds/);
    assert.match(whyRefused([{ ...TCP, timeoutSeconds: 3_601 }]), /timeoutSeconds/);
  });

  it('are there once for each container and kind', () => {
    assert.match(whyRefused([TCP, TCP]), /app-health\/app\/livez; each container and kind once/);
    assert.equal(whyRefused([TCP, HTTP]), 'accepted');
  });

  it('are bounded in number and length', () => {
    assert.equal(whyRefused(many(APP_PROBES_MAX)), 'accepted');
    assert.notEqual(whyRefused(many(APP_PROBES_MAX + 1)), 'accepted');
    const padded = (length: number): string => encodeAppProbes([TCP]).padEnd(length);
    assert.equal(whyRefused(padded(APP_PROBES_LENGTH_MAX)), 'accepted');
    assert.match(whyRefused(padded(APP_PROBES_LENGTH_MAX + 1)), /65536 characters at most/);
  });
});
