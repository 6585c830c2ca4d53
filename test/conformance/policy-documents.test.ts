import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { createCelCompiler } from '../../crds/cel-environment.ts';
import { compilePolicy } from '../../crds/compile.ts';
import { describePolicy } from '../../crds/describe.ts';
import { parsePolicyFile } from '../../crds/policy-file.ts';
import type { Problem } from '../../crds/problem.ts';
import { DOCUMENTS, readDocument, readVerdicts } from './verdicts.ts';
import type { Verdict } from './verdicts.ts';

const verdicts = readVerdicts();
const cel = createCelCompiler();

function problemsOf({ file }: Verdict): readonly Problem[] {
  const parsed = parsePolicyFile(readDocument(file), file);
  if (parsed.kind === 'problems') return parsed.problems;
  const context = { cel, uid: `file/${file}`, generation: 1, replicas: 1 };
  return parsed.documents.flatMap(({ policy }) => {
    describePolicy(policy);
    const compiled = compilePolicy(policy, { ...context, workload: 'deployment.api', keys: [] });
    return compiled.kind === 'problems' ? compiled.problems : [];
  });
}

function assertExpected({ path, advice }: Verdict, problems: readonly Problem[]): void {
  const found = problems.map((problem) => `${problem.path}: ${problem.message}: ${problem.advice}`);
  const isFound = problems.some(
    (problem) => problem.path === path && problem.advice.includes(advice),
  );
  assert(isFound, `wanted "${advice}" at ${path}, found:\n${found.join('\n')}`);
}

describe('policy documents', () => {
  it('have one verdict each, and every verdict has its document', () => {
    const files = readdirSync(DOCUMENTS).filter((file) => file !== 'VERDICTS.tsv');

    assert.deepEqual(verdicts.map(({ file }) => file).toSorted(), files.toSorted());
    assert(verdicts.length >= 120);
  });

  it('are judged by a file check as by the API server, but for keys and fields kubectl loses', () => {
    const differing = verdicts.filter(({ zod, server }) => zod !== server);

    assert.deepEqual(
      differing.map(({ file }) => file),
      ['whole-unknown-field.yaml', 'whole-duplicate-yaml-key.yaml'],
    );
    assert(differing.every(({ zod }) => zod === 'refuse'));
  });

  for (const verdict of verdicts) {
    it(`${verdict.file}: ${verdict.zod} in a file, ${verdict.operator} by the operator`, () => {
      const parsed = parsePolicyFile(readDocument(verdict.file), verdict.file);
      assert.equal(parsed.kind === 'policies' ? 'accept' : 'refuse', verdict.zod);

      const problems = problemsOf(verdict);
      const isAccepted = verdict.zod === 'accept' && verdict.operator === 'accept';

      if (isAccepted) assert.deepEqual(problems, []);
      else assertExpected(verdict, problems);
    });
  }
});
