// Where the compiler puts its findings while it goes on, so that one pass finds them all.
import type { CelCompiler } from './cel-environment.ts';
import type { FieldPath, Finding } from './problem.ts';

export class Sink {
  readonly findings: Finding[] = [];
  readonly #cel: CelCompiler;

  constructor(cel: CelCompiler) {
    this.#cel = cel;
  }

  add(finding: Finding): void {
    this.findings.push(finding);
  }

  /** Type-checks an expression that stands at `path`. */
  checkCel(expression: string, result: 'bool' | 'string', path: FieldPath): void {
    const outcome = this.#cel.compile(expression, result);
    if (outcome.kind === 'compiled') return;
    this.add({
      segments: path,
      message: outcome.message,
      advice:
        result === 'bool'
          ? 'write an expression that gives true or false'
          : 'write an expression that gives a string',
      reason: 'cel',
      excerpt: outcome.excerpt,
    });
  }
}
