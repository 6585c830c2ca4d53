// Restarts under load: half of the requests over kept connections, half with one connection each. A request that is not
// answered as the rules say is a failure, whoever's it is. `npm run test:e2e -- --repeat 5 test/e2e/rollouts.test.ts` is
// the claim; once each is what CI has time for.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { annotations } from '../../contract/names.ts';
import { listAt, textAt, valueAt } from '../cluster/json-value.ts';
import { eventually } from '../support/redis.ts';
import type { TrafficResult } from './pods/traffic.ts';
import { conditionOf, E2e, SETTLE_MS, SYSTEM, type Flow, type Room } from './support/e2e.ts';
import { deployment, podTemplate, policy, service, type AppOptions } from './support/workloads.ts';

const PER_SECOND = 100;
/** No rollout takes as long; a flow that nobody ends, ends. */
const MAX_SECONDS = 240;
/** Far above what is sent: the rules are asked, and refuse nobody. */
const PLENTY = 1_000_000;
/** As applications have it that were made for rollouts: the endpoints lag behind. */
const OWN_PRE_STOP = { lifecycle: { preStop: { sleep: { seconds: 5 } } } };

interface Kind {
  readonly name: string;
  readonly options: AppOptions;
}

const KINDS: readonly Kind[] = [
  { name: 'native', options: { annotations: { [annotations.mode]: 'takeover' } } },
  {
    name: 'ordinary',
    options: { annotations: { [annotations.mode]: 'takeover', [annotations.native]: 'false' } },
  },
  { name: 'redirect', options: { annotations: { [annotations.mode]: 'redirect' } } },
];

describe('under constant load', () => {
  let e2e: E2e;
  let room: Room;
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
    room = await e2e.namespace('rollouts');
  });
  after(async () => {
    await room[Symbol.asyncDispose]();
    await e2e[Symbol.asyncDispose]();
  });

  for (const { name, options } of KINDS) {
    it(`a rolling restart of the app loses no request: ${name}`, async () => {
      await start(name, options);
      await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');

      for (let run = 1; run <= e2e.config.repeat; run += 1) {
        const result = await during(name, () => restart(name));

        assert.deepEqual(trouble(result), {}, told(`run ${run}`, result));
      }
    });
  }

  it('going from no sidecar to a sidecar loses no request of an app that has a preStop sleep', async () => {
    const name = 'joining';
    // Without a sidecar it is the app that has to end kept connections by an answer.
    const own = { container: { ...readiness(), ...OWN_PRE_STOP }, env: { EXIT: 'announced' } };
    for (let run = 1; run <= e2e.config.repeat; run += 1) {
      await start(name, { ...own, isInjected: false });

      const result = await during(name, async () => {
        await room.apply(deployment(room, name, { ...own, replicas: 2 }));
        await rolledOver(name);
      });

      assert.deepEqual(trouble(result), {}, told(`run ${run}`, result));
    }
  });

  it('going from no sidecar to a sidecar loses no more than a restart without one does', async () => {
    const name = 'bare';
    let [without, joining] = [0, 0];
    for (let run = 1; run <= e2e.config.repeat; run += 1) {
      const bare = { container: readiness(), isInjected: false };
      await start(name, bare);
      without += sum(trouble(await during(name, () => restart(name))));
      const joined = await during(name, async () => {
        await room.apply(deployment(room, name, { container: readiness(), replicas: 2 }));
        await rolledOver(name);
      });
      joining += sum(trouble(joined));
    }

    // Both are counts of rare events with the same mean: their difference has the variance of their sum, and more than
    // four standard deviations is no chance.
    const most = without + 4 * Math.sqrt(without + joining) + 1;
    assert(joining <= most, `${joining} were lost, ${without} without a sidecar`);
  });

  it('a rolling restart of the operator loses no request, and refuses no pod that requires a sidecar', async () => {
    const name = 'steady';
    await start(name, {});
    await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');

    for (let run = 1; run <= e2e.config.repeat; run += 1) {
      const asked = askForPods();
      const result = await during(name, async () => {
        await e2e.kubectl(['rollout', 'restart', '-n', SYSTEM, 'deployment/weir-operator']);
        await e2e.rolledOut(SYSTEM, 'deployment/weir-operator');
        await gone(SYSTEM, 'app.kubernetes.io/component=operator', 2);
      });
      const { refused, created } = await asked.end();

      assert.deepEqual(trouble(result), {}, told(`run ${run}`, result));
      assert.deepEqual(refused, [], `of ${created + refused.length} pods`);
      assert(created > 0);
      await room.untilPolicy(name, (one) => conditionOf(one, 'Enforced') === 'True/Enforced');
    }
  });

  it('a restart of Redis is survived as each failure mode promises', async () => {
    const capacity = 200;
    const modes = ['Local', 'Open', 'Closed'] as const;
    for (const mode of modes) {
      const name = mode.toLowerCase();
      const limited = policy(name, { capacity, more: { failureMode: mode } });
      await room.apply(limited, service(name, [{ port: 80, targetPort: 'http' }]));
      await room.apply(deployment(room, name));
    }
    for (const mode of modes) {
      await e2e.rolledOut(room.name, `deployment/${mode.toLowerCase()}`);
      await room.untilPolicy(
        mode.toLowerCase(),
        (one) => conditionOf(one, 'Enforced') === 'True/Enforced',
      );
    }

    const flows = await Promise.all(modes.map((mode) => flow(mode.toLowerCase(), 20)));
    await e2e.kubectl(['rollout', 'restart', '-n', SYSTEM, 'deployment/weir-redis']);
    await e2e.rolledOut(SYSTEM, 'deployment/weir-redis');
    await gone(SYSTEM, 'app.kubernetes.io/component=redis', 1);
    // Back on the store, which started empty: its bucket is drained too.
    await eventually('Redis is used again', async () => {
      const url = `http://closed.${room.name}/`;
      const { statuses } = await room.send({ kind: 'burst', url, count: 1, atOnce: 1 });
      return statuses['503'] === undefined;
    });
    const [local, open, closed] = await Promise.all(flows.map((one) => one.end()));
    assert(local !== undefined && open !== undefined && closed !== undefined);

    for (const one of [local, open, closed]) assert.deepEqual(one.failures, {});
    assert.deepEqual(only(local.statuses, ['200', '429']), {}, 'Local admits or refuses');
    assert.deepEqual(only(open.statuses, ['200', '429']), {}, 'Open admits');
    assert.deepEqual(only(closed.statuses, ['200', '429', '503']), {}, 'Closed answers 503');
    // docs/failure.md: the bucket, this pod's local one, and the bucket again after a restart without persistence.
    const earned = (capacity * local.milliseconds) / 3_600_000;
    const most = 3 * capacity + 3 * earned;
    assert((local.statuses['200'] ?? 0) <= most, `${local.statuses['200'] ?? 0} <= ${most}`);
  });

  /** Two copies behind a Service, with a policy. */
  async function start(name: string, options: AppOptions): Promise<void> {
    await room.apply(
      service(name, [{ port: 80, targetPort: 'http' }]),
      policy(name, { capacity: PLENTY }),
      deployment(room, name, { ...options, replicas: 2 }),
    );
    await rolledOver(name);
  }

  function flow(name: string, perSecond = PER_SECOND): Promise<Flow> {
    const url = `http://${name}.${room.name}/`;
    return room.start({ kind: 'steady', url, perSecond, maxSeconds: MAX_SECONDS });
  }

  async function during(name: string, action: () => Promise<void>): Promise<TrafficResult> {
    const running = await flow(name);
    try {
      await action();
    } finally {
      await running.end();
    }
    return running.end();
  }

  async function restart(name: string): Promise<void> {
    await e2e.kubectl(['rollout', 'restart', '-n', room.name, `deployment/${name}`]);
    await rolledOver(name);
  }

  /** The new pods serve, and the old ones have gone. */
  async function rolledOver(name: string): Promise<void> {
    await e2e.rolledOut(room.name, `deployment/${name}`);
    await gone(room.name, `app=${name}`, 2);
  }

  async function gone(namespace: string, selector: string, left: number): Promise<void> {
    const isAlone = async (): Promise<boolean> =>
      (await e2e.list(namespace, 'pods', '-l', selector)).length === left;
    await eventually(`${left} pods of ${selector}`, isAlone, SETTLE_MS);
  }

  /** Creates pods that require a sidecar, as a dry run, one after the other until it is ended. */
  function askForPods(): { end(): Promise<{ refused: readonly string[]; created: number }> } {
    const over = new AbortController();
    const refused: string[] = [];
    let created = 0;
    const work = (async (): Promise<void> => {
      while (!over.signal.aborted) {
        const template = podTemplate(room, 'dry', {}) as { metadata: object; spec: object };
        const pod = { apiVersion: 'v1', kind: 'Pod', ...template };
        const path = `/api/v1/namespaces/${room.name}/pods?dryRun=All`;
        const body = { ...pod, metadata: { ...template.metadata, generateName: 'dry-' } };
        const answer = await e2e.cluster.api.request('POST', path, { body });
        const sidecars = listAt(answer.body, 'spec', 'initContainers').map((one) =>
          textAt(one, 'name'),
        );
        if (answer.status === 201 && sidecars.includes('weir')) created += 1;
        else refused.push(textAt(answer.body, 'message'));
      }
    })();
    return {
      async end() {
        over.abort();
        await work;
        return { refused, created };
      },
    };
  }
});

function readiness(): Readonly<Record<string, unknown>> {
  return { readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 } };
}

/** Whatever is not a 200. */
function trouble({ statuses, failures }: TrafficResult): Readonly<Record<string, number>> {
  return { ...only(statuses, ['200']), ...failures };
}

function only(
  statuses: Readonly<Record<string, number>>,
  known: readonly string[],
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(statuses).filter(([status]) => !known.includes(status)));
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((before, one) => before + one, 0);
}

function told(what: string, { statuses, examples }: TrafficResult): string {
  return `${what}: ${String(valueAt(statuses, '200'))} answered; ${examples.join('; ')}`;
}
