// `npm run test:cluster`: the suites that need a real API server, one file after the other, each with a control plane
// of its own. The programs are made first, where a wait of minutes can be seen and no test's timeout runs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import process from 'node:process';
import { readClusterConfig } from '../test/cluster/config.ts';
import { openPrograms } from '../test/cluster/programs.ts';

const root = path.join(import.meta.dirname, '..');
const SUITES = ['test/cluster/**/*.test.ts'];
/** A rollout under faults takes a minute or two; what takes longer hangs. */
const TEST_TIMEOUT_MS = 600_000;

const { home, kubeconfig } = readClusterConfig();
if (kubeconfig === undefined) await openPrograms(home, say);
else say(`testing against ${kubeconfig}; tests that stop a control plane's processes are skipped`);

const only = process.argv.slice(2);
const flags = [
  ...['--test', `--test-timeout=${TEST_TIMEOUT_MS}`, '--test-concurrency=1'],
  // A connection that is reset from both sides at once leaves a handle that Node waits for at its end, for ever.
  '--test-force-exit',
];
const suites = spawn(process.execPath, [...flags, ...(only.length > 0 ? only : SUITES)], {
  cwd: root,
  stdio: 'inherit',
});
const [code] = (await once(suites, 'exit')) as [number | null];
process.exitCode = code ?? 1;

function say(sentence: string): void {
  process.stdout.write(`cluster: ${sentence}\n`);
}
