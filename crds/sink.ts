// Where the compiler puts its findings while it goes on, so that one pass finds them all.
import { excerptOf } from './cel-fault.ts';
import type { CelCompiler } from './cel-environment.ts';
import type { FieldPath, Finding } from './problem.ts';

export interface SinkOptions {
  readonly cel: () => CelCompiler;
  /** Whether the policy verifies tokens; without, nothing in it may use claims. */
  readonly hasToken: boolean;
}

export class Sink {
  readonly findings: Finding[] = [];
  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;
  }

  add(finding: Finding): void {
    this.findings.push(finding);
  }

  /** Type-checks an expression that stands at `path`. */
  checkCel(expression: string, result: 'bool' | 'string', path: FieldPath): void {
    const outcome = this.#options.cel().compile(expression, result);
    if (outcome.kind === 'invalid') {
      const { message, excerpt } = outcome;
      this.add({ segments: path, message, advice: ADVICE[result], reason: 'cel', excerpt });
    } else if (outcome.claimsAt !== undefined && !this.#options.hasToken) {
      const excerpt = excerptOf(expression, outcome.claimsAt);
      this.add({ segments: path, ...CLAIMS_WITHOUT_TOKEN, reason: 'cel', excerpt });
    }
  }
}

const ADVICE = {
  bool: 'write an expression that gives true or false',
  string: 'write an expression that gives a string',
} as const;

const CLAIMS_WITHOUT_TOKEN = {
  message: 'claims need spec.jwt',
  advice: 'write spec.jwt with issuer and jwks: an unverified token has no claims',
} as const;
