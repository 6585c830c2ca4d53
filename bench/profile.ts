// `npm run bench:profile`: where the sidecar spends its time with 2 000 keys on Redis, as V8's profiler sees it. Run
// from the sources, so that functions have their names and files. Kept in bench/results and docs/performance.md, with
// the profile itself for whoever wants to look closer (Chrome DevTools opens it).
import { readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { machineFacts } from './machine.ts';
import { sharesOf, type CpuProfile } from './profile-result.ts';
import { keep, writeReport } from './report.ts';
import { startSidecar, writePolicy } from './sidecar.ts';
import { openStage } from './stage.ts';
import { loadWithWrk, writeKeyScript } from './wrk.ts';

const KEYS = 2_000;
const LOAD = { connections: 32, warmUpSeconds: 3, seconds: 6 };
/** Finer than the default millisecond, coarse enough to slow nothing down by much. */
const INTERVAL_US = 400;

const root = path.join(import.meta.dirname, '..');
await using stack = new AsyncDisposableStack();
const { folder, upstream, redis } = await openStage(stack);
const script = await writeKeyScript(folder, KEYS);

const measured = await measure();
const profile = await readProfile();
const result = {
  at: new Date().toISOString(),
  machine: machineFacts(),
  requests: measured.requests,
  ...sharesOf(profile, { ...measured, root }),
};
for (const { name, share } of result.parts) {
  process.stdout.write(`${(100 * share).toFixed(1).padStart(5)} %  ${name}\n`);
}
await keep('profile.json', result);
await writeFile(
  path.join(import.meta.dirname, 'results', 'profile.cpuprofile'),
  JSON.stringify(profile).replaceAll(`file://${root}/`, ''),
);
await writeReport();

async function measure(): Promise<{ fromUs: number; untilUs: number; requests: number }> {
  await using sidecar = await startSidecar({
    ...{ policy: await writePolicy(folder, 'weir'), upstream, redis },
    program: path.join(root, 'cli', 'main.ts'),
    node: ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-interval=${String(INTERVAL_US)}`],
  });
  const { connections, warmUpSeconds, seconds } = LOAD;
  const load = { port: sidecar.port, connections, keys: { script } };
  await loadWithWrk({ ...load, seconds: warmUpSeconds });
  const fromUs = monotonicUs();
  const { requests } = await loadWithWrk({ ...load, seconds });
  return { fromUs, untilUs: monotonicUs(), requests };
}

/** Written when the process ends. */
async function readProfile(): Promise<CpuProfile> {
  const file = (await readdir(folder)).find((name) => name.endsWith('.cpuprofile'));
  if (file === undefined) throw new Error('the sidecar left no profile');
  return JSON.parse(await readFile(path.join(folder, file), 'utf8')) as CpuProfile;
}

/** The clock of the profile's times. */
function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}
