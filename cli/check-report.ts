// How `weir check` says what it found: in words with the line and a caret, or as JSON.
import type { CheckOptions, CheckedPolicy, CheckReport } from './check.ts';
import type { FreshStart } from '../crds/identity.ts';
import { formatPlace } from '../crds/problem.ts';
import type { Problem } from '../crds/problem.ts';

/** One JSON document, with a line end. */
export function renderJson({ policies, problems, conflicts }: CheckReport): string {
  const isValid = problems.length === 0;
  return `${JSON.stringify({ valid: isValid, policies, problems, conflicts }, undefined, 2)}\n`;
}

/** Policies go to `write`, problems to `writeError`. */
export function renderText(report: CheckReport, options: CheckOptions): void {
  const { write, writeError, colour } = options;
  const paint = colour ? painted : plain;
  report.policies.forEach((policy, index) => {
    write(`${index === 0 ? '' : '\n'}${policyText(policy, paint)}`);
  });
  for (const conflict of report.conflicts)
    write(`\n${paint('yellow', 'Note')}: ${conflict.message}.\n`);
  writeError(renderProblems(report.problems, report.sources, colour));
}

/** The problems of files as text, each with its line and a caret. `sources` holds the files' texts by name. */
export function renderProblems(
  problems: readonly Problem[],
  sources: ReadonlyMap<string, string>,
  colour: boolean,
): string {
  const paint = colour ? painted : plain;
  return problems
    .map((problem) => problemText(problem, sources.get(problem.file) ?? '', paint))
    .join('');
}

type Colour = 'red' | 'yellow' | 'bold';
type Paint = (colour: Colour, text: string) => string;

const CODES: Readonly<Record<Colour, number>> = { red: 31, yellow: 33, bold: 1 };

function painted(colour: Colour, text: string): string {
  return `\u001b[${String(CODES[colour])}m${text}\u001b[0m`;
}

function plain(_colour: Colour, text: string): string {
  return text;
}

function policyText(policy: CheckedPolicy, paint: Paint): string {
  const { description, freshStarts, notes } = policy;
  const [title = '', ...lines] = description.split('\n');
  const body = [paint('bold', title), ...lines];
  if (freshStarts !== undefined) body.push('', ...freshStartLines(freshStarts));
  body.push(...notes.map((note) => `  ${paint('yellow', 'Note')}: ${note}.`));
  return `${body.join('\n')}\n`;
}

const CAUSES: Readonly<Record<FreshStart['cause'], string>> = {
  'new-policy': 'the policy is new',
  'new-bucket': 'the bucket is new or has another name',
  scope: 'scope has changed',
  key: 'key has changed',
};

function freshStartLines(starts: readonly FreshStart[]): string[] {
  if (starts.length === 0) return ['  Every client keeps its level.'];
  return [
    '  Every client starts with a full bucket in:',
    ...starts.map(({ bucket, cause }) => `    ${bucket} (${CAUSES[cause]})`),
  ];
}

function problemText(problem: Problem, source: string, paint: Paint): string {
  const { path, message, advice } = problem;
  const heading = [formatPlace(problem), path, paint('red', message)]
    .filter((part) => part !== '')
    .join(': ');
  return [heading, `  ${advice}`, ...excerptLines(problem, source), ''].join('\n');
}

/** A longer line is cut around the column: the caret must stay in sight. */
const EXCERPT_WIDTH = 100;

function excerptLines({ line, column, excerpt }: Problem, source: string): string[] {
  const text = line === 0 ? undefined : source.split('\n', line)[line - 1];
  const shown = text === undefined ? [] : sourceLines(text.replace(/\r$/, ''), line, column);
  return excerpt === undefined
    ? shown
    : [...shown, ...excerpt.split('\n').map((row) => `    ${row}`)];
}

function sourceLines(text: string, line: number, column: number): string[] {
  const start = Math.max(0, column - 1 - EXCERPT_WIDTH / 2);
  // A tab has the width of a tab below as well.
  // A control character could drive the reader's terminal.
  const row = text.slice(start, start + EXCERPT_WIDTH).replace(/(?!\t)\p{Cc}/gu, '\ufffd');
  const before = row.slice(0, column - 1 - start).replace(/[^\t]/g, ' ');
  const label = String(line);
  return [`  ${label} | ${row}`, `  ${' '.repeat(label.length)} | ${before}^`];
}
