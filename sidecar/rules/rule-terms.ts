// What the matches and keys of one policy are compiled with: the facts it shares with the rest of the bundle, who its
// clients are, and the languages its expressions are written in.
import assert from 'node:assert/strict';
import type { CompiledExpression } from '../../crds/regular-expression.ts';
import { bytesOf } from './byte-string.ts';
import { CelScope } from './cel-scope.ts';
import type { ClientFact } from './client-address.ts';
import type { Expressions } from './expressions.ts';
import type { FieldNames } from './field-names.ts';
import type { RequestFacts } from './request-facts.ts';
import type { TokenFact } from './token-fact.ts';
import type { RuleCounters } from './rule-counters.ts';

export interface RuleTermsOptions {
  readonly names: FieldNames;
  readonly facts: RequestFacts;
  readonly client: ClientFact;
  /** Present exactly when the policy says who issues tokens. */
  readonly tokens: TokenFact | undefined;
  readonly expressions: Expressions;
  readonly counters: RuleCounters;
}

export class RuleTerms {
  readonly names: FieldNames;
  readonly client: ClientFact;
  readonly tokens: TokenFact | undefined;
  readonly #expressions: Expressions;
  readonly #scope: CelScope | undefined;

  constructor(options: RuleTermsOptions) {
    this.names = options.names;
    this.client = options.client;
    this.tokens = options.tokens;
    this.#expressions = options.expressions;
    const classes = options.expressions.celClasses;
    this.#scope = classes === undefined ? undefined : new CelScope({ ...options, classes });
  }

  expression(source: string): CompiledExpression {
    return this.#expressions.regular(source);
  }

  /** An expression that fails is no match. */
  celTest(expression: string): () => boolean {
    const program = this.#expressions.cel(expression, 'bool');
    const [scope, mentionsClaims] = [this.#celScope(), mentions(expression)];
    return () => scope.evaluate(program, mentionsClaims, isBoolean) ?? false;
  }

  /** An expression that fails is a missing key. */
  celKey(expression: string): () => string | undefined {
    const program = this.#expressions.cel(expression, 'string');
    const [scope, mentionsClaims] = [this.#celScope(), mentions(expression)];
    return () => {
      const text = scope.evaluate(program, mentionsClaims, isText);
      return text === undefined ? undefined : bytesOf(text);
    };
  }

  #celScope(): CelScope {
    assert(this.#scope, 'a bundle with CEL has its classes loaded');
    return this.#scope;
  }
}

/** Verifying a token for an expression that does not look at claims would be work for nothing. */
function mentions(expression: string): boolean {
  return /\bclaims\b/.test(expression);
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed();
}
