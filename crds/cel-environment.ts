// The CEL environment that policies are written against. The compiler type-checks with it and the sidecar evaluates
// with it: one declaration, so that what was accepted is what runs. The CEL library is loaded with this file only;
// import it lazily where a process may have no expression to evaluate.
//
// The library's own `matches` hands the pattern to JavaScript's RegExp, which backtracks; the macro below takes its
// place. Its pattern must be a literal, so that it is compiled once, here, and never from what a client sent.
import { Environment } from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import { celFault, excerptOf } from './cel-fault.ts';
import { loopDepth, usesOf } from './cel-tree.ts';
import { compileExpression } from './regular-expression.ts';
import type { CompiledExpression } from './regular-expression.ts';

/**
 * Nested loops (`all`, `exists`, `map`, `filter`) cost the product of their lengths, and a client chooses the lengths
 * by what it sends: two loops over 12 KB of it held a sidecar for 9 s. One is paid by the client byte by byte.
 */
export const CEL_LOOP_DEPTH_MAX = 1;
const NESTED_LOOPS =
  'has a loop within a loop (all, exists, exists_one, map, filter; or split() or matches() of what is the same each ' +
  'time): its cost would be the product of their lengths, which a client chooses; use one loop, or several rules';
/** An expression has at most 1024 characters; more nodes than this come only from nesting that nobody can read. */
export const CEL_NODES_MAX = 512;
/** Deeper nesting than this would be recursion that the request path pays for. */
export const CEL_DEPTH_MAX = 32;

/** What `request` answers. Values are asked for at most once per evaluation each; a getter may compute them then. */
export interface CelRequestSource {
  readonly method: string;
  /** Normalised. */
  readonly path: string;
  readonly rawPath: string;
  /** Lower case, without port. */
  readonly host: string;
  readonly query: ReadonlyMap<string, string>;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly cookies: ReadonlyMap<string, string>;
}

/** The CEL value `request`: a view over a source, so that a map nobody asks for is never built. */
export class CelRequest implements CelRequestSource {
  readonly #source: CelRequestSource;

  constructor(source: CelRequestSource) {
    this.#source = source;
  }

  get method(): string {
    return this.#source.method;
  }

  get path(): string {
    return this.#source.path;
  }

  get rawPath(): string {
    return this.#source.rawPath;
  }

  get host(): string {
    return this.#source.host;
  }

  get query(): ReadonlyMap<string, string> {
    return this.#source.query;
  }

  get headers(): ReadonlyMap<string, string> {
    return this.#source.headers;
  }

  get cookies(): ReadonlyMap<string, string> {
    return this.#source.cookies;
  }
}

/** The CEL value `client`. */
export class CelClient {
  /** Textual address, an IPv4-mapped one as IPv4. */
  readonly ip: string;

  constructor(ip: string) {
    this.ip = ip;
  }
}

export interface CelVariables {
  readonly request: CelRequest;
  readonly client: CelClient;
  /** Of a verified token; empty without one. */
  readonly claims: Readonly<Record<string, unknown>>;
}

export type CelOutcome =
  | {
      readonly kind: 'compiled';
      readonly evaluate: (variables: CelVariables) => unknown;
      /** Offset of the first use of `claims`; undefined when the expression needs no token. */
      readonly claimsAt: number | undefined;
    }
  | {
      readonly kind: 'invalid';
      readonly message: string;
      /** The expression's line and a line with a caret under the fault. */
      readonly excerpt: string;
    };

export interface CelCompiler {
  /**
   * Compiles an expression of a match (`bool`) or a key (`string`). `evaluate` throws on a run-time error
   * and answers another type where the expression is dynamic (`claims.plan`): the caller checks.
   */
  compile(expression: string, result: 'bool' | 'string'): CelOutcome;
}

/** Builds the environment, ~1 ms; one per process is enough. */
export function createCelCompiler(): CelCompiler {
  const environment = createEnvironment();
  return {
    compile(expression, result) {
      try {
        return compileWith(environment, expression, result);
      } catch (error) {
        return { kind: 'invalid', ...celFault(expression, error) };
      }
    },
  };
}

function compileWith(
  environment: Environment,
  expression: string,
  result: 'bool' | 'string',
): CelOutcome {
  const program = environment.parse(expression);
  const loops = loopDepth(program.ast);
  if (loops > CEL_LOOP_DEPTH_MAX) {
    return { kind: 'invalid', message: NESTED_LOOPS, excerpt: excerptOf(expression, 0) };
  }
  const checked = program.check();
  if (!checked.valid) return { kind: 'invalid', ...celFault(expression, checked.error) };
  if (checked.type !== result && checked.type !== 'dyn') {
    const message = `gives ${String(checked.type)}, not ${result}`;
    return { kind: 'invalid', message, excerpt: excerptOf(expression, 0) };
  }
  return {
    kind: 'compiled',
    evaluate: (variables) => program({ ...variables }) as unknown,
    claimsAt: usesOf('claims', program.ast)[0],
  };
}

function createEnvironment(): Environment {
  const limits = { maxAstNodes: CEL_NODES_MAX, maxDepth: CEL_DEPTH_MAX };
  return new Environment({ unlistedVariablesAreDyn: false, limits })
    .registerType('weir.Request', {
      ctor: CelRequest,
      fields: {
        method: 'string',
        path: 'string',
        rawPath: 'string',
        host: 'string',
        query: 'map<string, string>',
        headers: 'map<string, string>',
        cookies: 'map<string, string>',
      },
    })
    .registerType('weir.Client', { ctor: CelClient, fields: { ip: 'string' } })
    .registerVariable('request', 'weir.Request')
    .registerVariable('client', 'weir.Client')
    .registerVariable('claims', 'map<string, dyn>')
    .registerFunction('bool.matches(ast): bool', expandMatches);
}

// What the library hands to a macro, as far as we use it.
interface MacroCall {
  readonly args: readonly [ASTNode];
  readonly receiver: ASTNode;
}

interface Checker {
  check(node: ASTNode, context: unknown): { readonly name: string };
  getType(name: string): { readonly name: string };
  createError(code: string, message: string, node: ASTNode): Error;
}

interface Evaluator {
  run(node: ASTNode, context: unknown): unknown;
}

// The receiver type of a macro's signature is not looked at when calls are expanded; `bool` keeps it apart from the
// library's own `string.matches`, which could not be registered twice.
function expandMatches({ args, receiver }: MacroCall): object {
  const pattern = args[0];
  let expression: CompiledExpression | undefined;
  return {
    async: false,
    typeCheck(checker: Checker, _macro: unknown, context: unknown) {
      const type = checker.check(receiver, context);
      if (type.name !== 'string' && type.name !== 'dyn') {
        const message = `matches() wants a string, not ${type.name}`;
        throw checker.createError('no_matching_overload', message, receiver);
      }
      expression = literalExpression(pattern, checker);
      return checker.getType('bool');
    },
    evaluate(evaluator: Evaluator, _macro: unknown, context: unknown) {
      const text = evaluator.run(receiver, context);
      if (typeof text !== 'string') throw new TypeError('matches() wants a string');
      return expression?.test(text);
    },
  };
}

function literalExpression(pattern: ASTNode, checker: Checker): CompiledExpression {
  if (pattern.op !== 'value' || typeof pattern.args !== 'string') {
    const message = 'the pattern of matches() must be a literal string';
    throw checker.createError('invalid_pattern', message, pattern);
  }
  const outcome = compileExpression(pattern.args);
  if (outcome.kind === 'compiled') return outcome.expression;
  const message = `not a valid RE2 expression: ${outcome.cause}`;
  throw checker.createError('invalid_pattern', message, pattern);
}
