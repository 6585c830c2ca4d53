// Reads V8's coverage of every process of a test run and holds it against the gates.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { Report } from 'c8';
import { transform } from 'esbuild';

const PURE = [
  'contract',
  'crds',
  'sidecar/http1',
  'sidecar/http2',
  'sidecar/limiter',
  'sidecar/rules',
  'sidecar/counters',
  'operator/injection',
  'operator/policy',
];
const OVERALL_LINES = 95;

interface FileSummary {
  readonly file: string;
  readonly lines: Tally;
  readonly branches: Tally;
}

interface Tally {
  readonly total: number;
  readonly covered: number;
}

/** Prints what is below its gate; true when nothing is. `raw` holds the files that NODE_V8_COVERAGE wrote. */
export async function checkCoverage(root: string, raw: string): Promise<boolean> {
  const files = await summarise(root, raw);
  const misses = [...PURE.flatMap((folder) => missesOf(files, folder)), ...overallMiss(files)];
  for (const miss of misses) process.stdout.write(`coverage: ${miss}\n`);
  if (misses.length === 0) {
    process.stdout.write(
      `coverage: ${percent(sum(files, 'lines')).toFixed(2)} % of all lines, pure folders complete\n`,
    );
  }
  return misses.length === 0;
}

/** The shape of istanbul's coverage-summary.json, keyed by absolute path; `total` is left out. */
type Summary = Readonly<Record<string, { readonly lines: Tally; readonly branches: Tally }>>;

async function summarise(root: string, raw: string): Promise<FileSummary[]> {
  const folder = path.join(root, 'coverage');
  const report = new Report({
    tempDirectory: raw,
    resolve: root,
    src: [root],
    include: ['{contract,crds,sidecar,operator,cli}/**/*.ts'],
    exclude: ['**/*.test.ts'],
    extension: ['.ts'],
    excludeNodeModules: true,
    all: true,
    reporter: ['json-summary', 'lcovonly'],
    reportsDirectory: folder,
    omitRelative: true,
    wrapperLength: 0,
    // A full run leaves hundreds of files; merging them one by one keeps memory flat.
    ...{ mergeAsync: true },
  });
  await report.run();
  const text = await readFile(path.join(folder, 'coverage-summary.json'), 'utf8');
  const summaries: FileSummary[] = [];
  for (const [file, { lines, branches }] of Object.entries(JSON.parse(text) as Summary)) {
    if (file === 'total' || (await holdsOnlyTypes(file))) continue;
    summaries.push({ file: path.relative(root, file), lines, branches });
  }
  return summaries;
}

/** Such a file is never loaded, so nothing can cover it. */
async function holdsOnlyTypes(file: string): Promise<boolean> {
  const { code } = await transform(await readFile(file, 'utf8'), { loader: 'ts' });
  return code.trim() === '';
}

function missesOf(files: readonly FileSummary[], folder: string): string[] {
  return files
    .filter((one) => one.file.startsWith(`${folder}/`))
    .filter((one) => !isWhole(one.lines) || !isWhole(one.branches))
    .map(
      ({ file, lines, branches }) =>
        `${file}: ${describe(lines)} lines, ${describe(branches)} branches; a pure folder needs all`,
    );
}

function overallMiss(files: readonly FileSummary[]): string[] {
  const all = percent(sum(files, 'lines'));
  if (all >= OVERALL_LINES) return [];
  const worst = files
    .toSorted((a, b) => percent(a.lines) - percent(b.lines))
    .slice(0, 15)
    .map((one) => `\n  ${percent(one.lines).toFixed(1).padStart(5)} % ${one.file}`);
  return [
    `${all.toFixed(2)} % of all lines; at least ${OVERALL_LINES} % are needed${worst.join('')}`,
  ];
}

function sum(files: readonly FileSummary[], what: 'lines' | 'branches'): Tally {
  return files.reduce(
    (before, one) => ({
      total: before.total + one[what].total,
      covered: before.covered + one[what].covered,
    }),
    { total: 0, covered: 0 },
  );
}

function isWhole({ total, covered }: Tally): boolean {
  return total === covered;
}

function percent({ total, covered }: Tally): number {
  return total === 0 ? 100 : (covered / total) * 100;
}

function describe({ total, covered }: Tally): string {
  return `${covered} of ${total}`;
}
