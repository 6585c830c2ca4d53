// The expressions of a bundle, compiled once each. RE2 and CEL are libraries of some weight: they are loaded only when
// a bundle holds an expression.
import assert from 'node:assert/strict';
import type { CompiledFieldMatch, CompiledMatch, CompiledPolicy } from '../../contract/bundle.ts';
import { WeirError } from '../../contract/errors.ts';
import type * as celEnvironment from '../../crds/cel-environment.ts';
import type { CompiledExpression } from '../../crds/regular-expression.ts';

export type CelProgram = (variables: celEnvironment.CelVariables) => unknown;
type CelResult = 'bool' | 'string';

/** Classes that values of CEL variables are made of. */
export type CelClasses = Pick<typeof celEnvironment, 'CelClient' | 'CelRequest'>;

export class Expressions {
  /** Undefined when the bundle holds no CEL. */
  readonly celClasses: CelClasses | undefined;
  readonly #regular: ReadonlyMap<string, CompiledExpression>;
  readonly #cel: ReadonlyMap<string, CelProgram>;

  constructor(
    regular: ReadonlyMap<string, CompiledExpression>,
    cel: ReadonlyMap<string, CelProgram>,
    celClasses: CelClasses | undefined,
  ) {
    this.#regular = regular;
    this.#cel = cel;
    this.celClasses = celClasses;
  }

  regular(source: string): CompiledExpression {
    const expression = this.#regular.get(source);
    assert(expression, 'every regular expression of a bundle is compiled beforehand');
    return expression;
  }

  cel(expression: string, result: CelResult): CelProgram {
    const program = this.#cel.get(result + expression);
    assert(program, 'every CEL expression of a bundle is compiled beforehand');
    return program;
  }
}

interface Source {
  readonly policy: CompiledPolicy;
  readonly text: string;
}

interface CelSource extends Source {
  readonly result: CelResult;
}

/** Throws POLICY_INVALID when an expression does not compile: the bundle came from a compiler of another version. */
export async function loadExpressions(policies: readonly CompiledPolicy[]): Promise<Expressions> {
  const regular = policies.flatMap(regularSources);
  const cel = policies.flatMap(celSources);
  const classes = cel.length > 0 ? await import('../../crds/cel-environment.ts') : undefined;
  return new Expressions(
    regular.length > 0 ? await compileRegular(regular) : new Map(),
    classes === undefined ? new Map() : compileCel(cel, classes),
    classes,
  );
}

async function compileRegular(
  sources: readonly Source[],
): Promise<ReadonlyMap<string, CompiledExpression>> {
  const { compileExpression } = await import('../../crds/regular-expression.ts');
  const compiled = new Map<string, CompiledExpression>();
  for (const { policy, text } of sources) {
    const outcome = compileExpression(text);
    if (outcome.kind === 'invalid') throw invalid(policy, text, outcome.cause);
    compiled.set(text, outcome.expression);
  }
  return compiled;
}

function compileCel(
  sources: readonly CelSource[],
  { createCelCompiler }: Pick<typeof celEnvironment, 'createCelCompiler'>,
): ReadonlyMap<string, CelProgram> {
  const compiler = createCelCompiler();
  const compiled = new Map<string, CelProgram>();
  for (const { policy, text, result } of sources) {
    const outcome = compiler.compile(text, result);
    if (outcome.kind === 'invalid') throw invalid(policy, text, outcome.message);
    compiled.set(result + text, outcome.evaluate);
  }
  return compiled;
}

function invalid(policy: CompiledPolicy, expression: string, reason: string): WeirError {
  const name = `${policy.namespace}/${policy.name}`;
  return new WeirError('POLICY_INVALID', { policy: name, expression, reason });
}

function regularSources(policy: CompiledPolicy): Source[] {
  return matchesOf(policy).flatMap((match) => {
    const fields: (CompiledFieldMatch | NonNullable<CompiledMatch['path']>)[] = [
      ...(match.path === undefined ? [] : [match.path]),
      ...(match.headers ?? []),
      ...(match.query ?? []),
    ];
    return fields
      .filter(({ type }) => type === 'Regex')
      .map(({ value }) => ({ policy, text: value }));
  });
}

function celSources(policy: CompiledPolicy): CelSource[] {
  const tests = matchesOf(policy).flatMap(({ cel }) =>
    cel === undefined ? [] : [{ policy, text: cel.expression, result: 'bool' as const }],
  );
  const keys = policy.rules.flatMap(({ key }) =>
    key.flatMap((part) =>
      part.kind === 'cel' ? [{ policy, text: part.expression, result: 'string' as const }] : [],
    ),
  );
  return [...tests, ...keys];
}

function matchesOf(policy: CompiledPolicy): CompiledMatch[] {
  const ofRules = policy.rules.flatMap((rule) => [
    ...rule.match,
    ...rule.except,
    ...rule.tiers.flatMap((tier) => tier.match),
  ]);
  return [...policy.except, ...ofRules];
}
