import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { describe, it } from 'node:test';
import type { WebhookList } from '../certificates/ca-bundle.ts';
import type { KubeObject } from '../kube/object.ts';
import type { FailedCreate } from '../policy/failed-creation.ts';
import type { ExtraWatch } from './cluster-watch.ts';
import { FailedCreations } from './failed-creations.ts';
import { WebhookWatch } from './webhook-watch.ts';

/** Keeps what was added, and tells it what a test says. */
class Watched {
  readonly fieldSelectors: (string | undefined)[] = [];
  readonly namespaces: (readonly string[] | undefined)[] = [];
  tell: (object: object | undefined) => void = () => assert.fail('nothing is watched');

  add<Type extends KubeObject>({ options, onChange }: ExtraWatch<Type>): void {
    this.fieldSelectors.push(options.fieldSelector);
    this.namespaces.push(options.namespaces);
    this.tell = (object) => {
      const { transform = (same: Type): Type => same } = options;
      // The test's objects are of the type that the watch brings.
      const after = object === undefined ? {} : { after: transform(object as Type) };
      onChange({ key: 'it', ...after });
    };
  }
}

function configuration(...bundles: readonly (string | undefined)[]): WebhookList {
  const webhooks = bundles.map((pem, index) => ({
    name: `w${index}`,
    clientConfig: pem === undefined ? {} : { caBundle: Buffer.from(pem).toString('base64') },
  }));
  return { metadata: { name: 'weir-inject' }, webhooks };
}

describe("the webhook's configuration", () => {
  const ABSENT = 'there is no MutatingWebhookConfiguration weir-inject';
  const UNTRUSTED = 'weir-inject does not hold our CA yet';

  it('is watched by its name, and its absence told', () => {
    const watched = new Watched();
    const watch = new WebhookWatch(watched, 'weir-inject');
    const before = watch.trustProblem('PEM', true);

    watched.tell(configuration('PEM'));
    const there = watch.trustProblem('PEM', true);
    watched.tell(undefined);

    assert.deepEqual(watched.fieldSelectors, ['metadata.name=weir-inject']);
    assert.deepEqual([before, there, watch.trustProblem('PEM', true)], [ABSENT, undefined, ABSENT]);
  });

  it('trusts us when every entry holds our very CA, or any where somebody else writes it', () => {
    const watched = new Watched();
    const watch = new WebhookWatch(watched, 'weir-inject');
    const rows: readonly (readonly [WebhookList, string | undefined, string | undefined])[] = [
      [configuration('PEM', 'PEM'), undefined, undefined],
      [configuration('PEM', 'OTHER'), UNTRUSTED, undefined],
      [configuration('PEM', undefined), UNTRUSTED, UNTRUSTED],
      [configuration('PEM', ''), UNTRUSTED, UNTRUSTED],
      [{ metadata: { name: 'weir-inject' } }, undefined, undefined],
    ];

    for (const [list, ours, others] of rows) {
      watched.tell(list);
      assert.deepEqual(
        [watch.trustProblem('PEM', true), watch.trustProblem('PEM', false)],
        [ours, others],
      );
    }
  });

  it('is told of until the listener is let go', () => {
    const watched = new Watched();
    const watch = new WebhookWatch(watched, 'weir-inject');
    let told = 0;
    const listening = watch.onChange(() => (told += 1));

    watched.tell(configuration('PEM'));
    listening[Symbol.dispose]();
    watched.tell(undefined);

    assert.equal(told, 1);
  });
});

describe('creations that failed', () => {
  const regarding = { apiVersion: 'apps/v1', kind: 'ReplicaSet', namespace: 'shop', name: 'api' };
  const event = { reason: 'FailedCreate', note: 'exceeded quota', regarding };

  it('are told with no more than is read of them, until the listener is let go', () => {
    const watched = new Watched();
    const heard: FailedCreate[] = [];
    const listening = new FailedCreations(watched, []).onFailure((one) => heard.push(one));

    watched.tell({ metadata: { name: 'e' }, ...event, series: { count: 9 } });
    listening[Symbol.dispose]();
    watched.tell({ metadata: { name: 'f' }, ...event });

    assert.deepEqual(watched.fieldSelectors, ['reason=FailedCreate']);
    assert.deepEqual(heard, [event]);
  });

  it('are nothing where an Event went, or is about nothing', () => {
    const watched = new Watched();
    const heard: FailedCreate[] = [];
    new FailedCreations(watched, []).onFailure((one) => heard.push(one));

    watched.tell(undefined);
    watched.tell({ metadata: { name: 'e' } });
    watched.tell({ metadata: { name: 'f' }, regarding });

    assert.deepEqual(heard, [{ reason: '', note: '', regarding }]);
  });

  it('are looked for in the namespaces that the operator works in', () => {
    const [all, some] = [new Watched(), new Watched()];

    new FailedCreations(all, []);
    new FailedCreations(some, ['shop']);

    assert.deepEqual([all.namespaces, some.namespaces], [[undefined], [['shop']]]);
  });
});
