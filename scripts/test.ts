// `npm test`: every suite, with line coverage over this process' children too (a sidecar under test is a process of
// its own), and the gates: 100 % of the lines and branches of pure folders, 95 % of all lines.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { checkCoverage } from './coverage.ts';

const root = path.join(import.meta.dirname, '..');
const raw = path.join(root, 'coverage', 'raw');

const SUITES = [
  '{contract,crds,sidecar,operator,cli,scripts,bench}/**/*.test.ts',
  'test/{conformance,property,integration,regression,docs}/**/*.test.ts',
];

/** A hung test is a failure, not a wait; the longest suites (property, four processes × 20 s) stay well below. */
const TEST_TIMEOUT_MS = 600_000;

const only = process.argv.slice(2);
await rm(path.join(root, 'coverage'), { recursive: true, force: true });
await mkdir(raw, { recursive: true });
const suites = spawn(
  process.execPath,
  [
    '--test',
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    '--test-concurrency=2',
    ...(only.length > 0 ? only : SUITES),
  ],
  { cwd: root, stdio: 'inherit', env: { ...process.env, NODE_V8_COVERAGE: raw } },
);
const [code] = (await once(suites, 'exit')) as [number | null];
if (code !== 0) process.exit(code ?? 1);
// A part of the suites cannot reach the gates of the whole.
if (only.length === 0) process.exitCode = (await checkCoverage(root, raw)) ? 0 : 1;
