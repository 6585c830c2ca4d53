import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';

const root = path.join(import.meta.dirname, '..');

/** Those that take options. */
const SCRIPTS: Readonly<Record<string, string>> = {
  'npm run demo --': 'scripts/demo.ts',
  'npm run dev:cluster --': 'scripts/dev-cluster.ts',
  'npm run test:e2e --': 'scripts/test-e2e.ts',
  'npm run generate --': 'scripts/generate.ts',
  'npm run mutate:limiter --': 'scripts/mutate-limiter.ts',
  'npm run images --': 'scripts/images.ts',
  'npm run bench:peers --': 'bench/peers.ts',
  'npm run bench:scale --': 'bench/scale.ts',
  'npm run bench:micro --': 'bench/micro.ts',
  'npm run bench:faults --': 'bench/faults.ts',
  'npm run bench:control --': 'bench/control.ts',
  'npm run bench:operator-faults --': 'bench/operator-faults.ts',
  'npm run fuzz --': 'bench/fuzz.ts',
  'npm run soak --': 'bench/soak.ts',
  'node bench/store-faults.ts': 'bench/store-faults.ts',
};

interface Ran {
  readonly code: number | string | null | undefined;
  readonly out: string;
  readonly err: string;
}

function run(script: string, ...args: readonly string[]): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>();
  execFile(process.execPath, [script, ...args], { cwd: root }, (error, out, err) => {
    resolve({ code: error === null ? 0 : error.code, out, err });
  });
  return promise;
}

describe('the arguments of a script', () => {
  for (const [command, script] of Object.entries(SCRIPTS)) {
    it(`of ${script} are told on request, and refused with the same text`, async () => {
      const [help, unknown] = await Promise.all([run(script, '--help'), run(script, '--nope')]);

      assert.deepEqual([help.code, help.err], [0, '']);
      assert.ok(help.out.startsWith(`Usage: ${command} [options]`), help.out);
      assert.deepEqual([unknown.code, unknown.out], [2, '']);
      const [sentence = '', empty, ...usage] = unknown.err.split('\n');
      assert.match(sentence, /^\S+: Unknown option '--nope'/);
      assert.deepEqual([empty, usage.join('\n')], ['', help.out]);
    });
  }

  it('are numbers where numbers are wanted, and operands where there are any', async () => {
    const [rounds, dialect, operand, suite] = await Promise.all([
      run('bench/store-faults.ts', '--rounds', 'many'),
      run('bench/fuzz.ts', '--dialect', 'http3'),
      run('scripts/demo.ts', 'now'),
      run('scripts/test-e2e.ts', 'test/e2e/none.test.ts'),
    ]);

    assert.deepEqual(
      [rounds, dialect, operand, suite].map(({ code }) => code),
      [2, 2, 2, 2],
    );
    assert.match(rounds.err, /^bench\/store-faults\.ts: --rounds many: expected a number\n/);
    assert.match(dialect.err, /^fuzz: --dialect http3: expected one of http1, http2\n/);
    assert.match(operand.err, /^demo: Unexpected argument 'now'/);
    assert.match(suite.err, /^test:e2e: test\/e2e\/none\.test\.ts: there is no such suite\n/);
  });
});
