// The problems of policy files with the lines they are about.
import { readFile } from 'node:fs/promises';
import type { Problem } from '../crds/problem.ts';
import { renderProblems } from './check-report.ts';

export async function describeProblems(
  problems: readonly Problem[],
  colour: boolean,
): Promise<string> {
  const sources = new Map<string, string>();
  for (const { file } of problems) {
    if (sources.has(file)) continue;
    // A file that cannot be read has no line to show.
    sources.set(file, await readFile(file, 'utf8').catch(() => ''));
  }
  return renderProblems(problems, sources, colour);
}
