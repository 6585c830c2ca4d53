// `npm run test:e2e`: images, a node, Helm, and the suites on real pods. Everything it made is gone afterwards.
//   npm run test:e2e -- test/e2e/rollouts.test.ts --repeat 5
// With WEIR_KUBECONFIG the suites run against that cluster, which must be able to pull what WEIR_E2E_VALUES (a file of
// values for the chart) and WEIR_E2E_APP_IMAGE name.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { readClusterConfig } from '../test/cluster/config.ts';
import { buildNodeImages } from '../test/cluster/images/node-images.ts';
import { openNode, whyNoNode } from '../test/cluster/node/node.ts';
import { openClients, openPrograms } from '../test/cluster/programs.ts';
import { readArguments } from './arguments.ts';
import { buildImages } from './images/build-images.ts';

const root = path.join(import.meta.dirname, '..');
/** In this order: the first installs as a user would, the last looks at what all the others did. */
const SUITES = [
  'quick-start',
  'interception',
  'probes',
  'pod-tls',
  'rollouts',
  'crashes',
  'release',
  'access',
].map((name) => `test/e2e/${name}.test.ts`);
const NODE_SUITE = 'test/e2e/node.test.ts';
/** Five rollouts of each kind under load take a quarter of an hour; what takes longer hangs. */
const TEST_TIMEOUT_MS = 1_800_000;

const { values, positionals } = readArguments({
  command: 'npm run test:e2e',
  about: `Runs the suites of test/e2e on a real node, which needs root and Linux; or on the cluster of WEIR_KUBECONFIG, with
WEIR_E2E_VALUES (a values file for the chart) and WEIR_E2E_APP_IMAGE (an image with node on its PATH).`,
  lines: [
    '--repeat N   how often each rollout is repeated (1)',
    '--keep       leave the cluster running until Ctrl-C',
  ],
  operands: ' [suite…]',
  config: {
    options: {
      repeat: { type: 'string', default: '1' },
      keep: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  },
  whyWrong: ({ values: { repeat }, positionals: files }) => {
    const unknown = files.find((file) => !existsSync(path.join(root, file)));
    if (unknown !== undefined) return `${unknown}: there is no such suite`;
    if (/^[1-9][0-9]?$/.test(repeat)) return undefined;
    return `--repeat ${repeat}: expected a number from 1 to 99`;
  },
});

interface Target extends AsyncDisposable {
  readonly environment: Readonly<Record<string, string>>;
}

process.exitCode = await main();

async function main(): Promise<number> {
  const { kubeconfig } = readClusterConfig();
  const suites = positionals.length === 0 ? [NODE_SUITE, ...SUITES] : positionals;
  const onCluster = suites.filter((suite) => suite !== NODE_SUITE);
  let worst = 0;
  // It starts nodes of its own, and there is one at a time.
  if (onCluster.length < suites.length && kubeconfig === undefined) {
    worst = await runSuite(NODE_SUITE, process.env);
  }
  if (onCluster.length === 0 && !values.keep) return worst;
  await using target = kubeconfig === undefined ? await ownNode() : await given(kubeconfig);
  const environment = {
    ...process.env,
    ...target.environment,
    WEIR_E2E_REPEAT: values.repeat,
  };
  // One after the other in the order above, which the test runner does not promise for several files.
  for (const suite of onCluster) {
    worst = Math.max(worst, await runSuite(suite, environment));
  }
  if (values.keep) await untilInterrupted(environment);
  return worst;
}

async function runSuite(suite: string, env: NodeJS.ProcessEnv): Promise<number> {
  say(suite);
  const flags = ['--test', `--test-timeout=${TEST_TIMEOUT_MS}`, '--test-force-exit'];
  const tests = spawn(process.execPath, [...flags, suite], { cwd: root, env, stdio: 'inherit' });
  const [code] = (await once(tests, 'exit')) as [number | null];
  return code ?? 1;
}

async function given(kubeconfig: string): Promise<Target> {
  const { WEIR_E2E_VALUES, WEIR_E2E_APP_IMAGE } = process.env;
  if (!WEIR_E2E_VALUES || !WEIR_E2E_APP_IMAGE) {
    throw new Error(
      'WEIR_KUBECONFIG needs WEIR_E2E_VALUES (a values file for the chart, with images the cluster can pull) and ' +
        'WEIR_E2E_APP_IMAGE (an image with node on its PATH)',
    );
  }
  const { kubectl, helm } = await openClients(readClusterConfig().home, say);
  say(`testing against ${kubeconfig}; what needs our own API server is skipped`);
  return {
    environment: {
      ...{ WEIR_KUBECONFIG: kubeconfig, WEIR_E2E_HELM: helm, WEIR_E2E_KUBECTL: kubectl },
      ...{ WEIR_E2E_VALUES, WEIR_E2E_APP_IMAGE },
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

async function ownNode(): Promise<Target> {
  const why = whyNoNode();
  if (why !== undefined) {
    throw new Error(`${why}; or name a cluster in WEIR_KUBECONFIG (--help says how)`);
  }
  await using stack = new AsyncDisposableStack();
  const out = await mkdtemp(path.join(tmpdir(), 'weir-images-'));
  stack.defer(() => rm(out, { recursive: true, force: true }));
  // What takes minutes the first time comes before the node, so that it is not kept waiting.
  const { kubectl, helm } = await openPrograms(readClusterConfig().home, say);
  const { pause, app } = await buildNodeImages({ say });
  const { images } = await buildImages({ out, isLocalBase: true, say });
  const archives = [pause, app, ...Object.values(images)].map(({ archive }) => archive);
  say('starting a node');
  const { controlPlane } = stack.use(await openNode({ images: archives, audit: true, say }));
  const owned = stack.move();
  return {
    environment: {
      ...{ WEIR_KUBECONFIG: controlPlane.kubeconfig },
      ...{ WEIR_E2E_HELM: helm, WEIR_E2E_KUBECTL: kubectl },
      WEIR_E2E_VALUES: path.join(root, 'test', 'e2e', 'values.yaml'),
      WEIR_E2E_APP_IMAGE: app.tag,
      WEIR_E2E_AUDIT_LOG: controlPlane.auditLogPath ?? '',
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function untilInterrupted(environment: Readonly<NodeJS.ProcessEnv>): Promise<void> {
  const stopped = Promise.withResolvers<undefined>();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopped.resolve(undefined);
    });
  }
  const names = ['WEIR_KUBECONFIG', 'WEIR_E2E_HELM', 'WEIR_E2E_KUBECTL', 'WEIR_E2E_VALUES'];
  const more = ['WEIR_E2E_APP_IMAGE', 'WEIR_E2E_AUDIT_LOG'];
  const lines = [...names, ...more].map((name) => `  export ${name}=${environment[name] ?? ''}`);
  process.stdout.write(`\nThe cluster stays until Ctrl-C:\n\n${lines.join('\n')}\n`);
  await stopped.promise;
}

function say(sentence: string): void {
  process.stdout.write(`e2e: ${sentence}\n`);
}
