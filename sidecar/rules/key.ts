// Hot path.
// The key of a rule, compiled to one function from the facts of a request to the key text.
import type { CompiledKeyPart, CompiledRule } from '../../contract/bundle.ts';
import { bytesOf } from './byte-string.ts';
import { claimKey } from './claim.ts';
import { RULE_KEY_TEXT, layoutOf, sized } from './key-text.ts';
import type { RequestFacts } from './request-facts.ts';
import { segmentAt } from './request-target.ts';
import type { RuleTerms } from './rule-terms.ts';

/** A part of a key; undefined or empty counts as missing. */
type ReadPart = (facts: RequestFacts) => string | undefined;

export interface RuleKey {
  /** The key text; undefined when a part is missing. */
  readonly read: (facts: RequestFacts) => string | undefined;
  /** The text of requests without key under `onMissingKey: ClientIP`. */
  readonly ofClient: (facts: RequestFacts) => string;
  /** The text of requests without key under `onMissingKey: Shared`. */
  readonly shared: string;
  /** Whether `read` looks at the client's address. */
  readonly hasAddress: boolean;
}

export function compileKey(rule: CompiledRule, terms: RuleTerms): RuleKey {
  const layout = layoutOf(rule.key);
  const readers = rule.key.map((part) => readerOf(part, terms));
  return {
    read: joined(readers, layout.partPrefixes),
    ofClient: (facts) => layout.missingPrefix + sized(facts.client(terms.client).name),
    shared: layout.sharedText,
    hasAddress: rule.key.some((part) => part.kind === 'clientIP'),
  };
}

function joined(readers: readonly ReadPart[], prefixes: readonly string[]): RuleKey['read'] {
  const [first, ...others] = readers.map((read, i) => partText(read, prefixes[i]));
  if (first === undefined) return () => RULE_KEY_TEXT;
  if (others.length === 0) return first;
  return (facts) => {
    let text = first(facts);
    for (const read of others) {
      if (text === undefined) return undefined;
      const part = read(facts);
      text = part === undefined ? undefined : text + part;
    }
    return text;
  };
}

function partText(read: ReadPart, prefix: string | undefined): ReadPart {
  const before = String(prefix);
  return (facts) => {
    const value = read(facts);
    return value === undefined || value === '' ? undefined : before + sized(value);
  };
}

function readerOf(part: CompiledKeyPart, terms: RuleTerms): ReadPart {
  if ('name' in part) return fieldReader(part, terms);
  switch (part.kind) {
    case 'clientIP':
      return (facts) => facts.client(terms.client).name;
    case 'claim':
      return claimReader(part.path, terms);
    case 'pathSegment':
      return (facts) => segmentAt(facts.path, part.index);
    case 'constant': {
      const value = bytesOf(part.value);
      return () => value;
    }
    case 'cel':
      return terms.celKey(part.expression);
    case 'path':
    case 'method':
    case 'host':
      return WHOLE[part.kind];
  }
}

const WHOLE: Readonly<Record<'path' | 'method' | 'host', ReadPart>> = {
  path: (facts) => facts.path,
  method: (facts) => facts.view.method,
  host: (facts) => facts.host,
};

function claimReader(path: readonly string[], { tokens }: RuleTerms): ReadPart {
  if (tokens === undefined) return () => undefined;
  return (facts) => claimKey(facts.claims(tokens), path);
}

type FieldPart = Extract<CompiledKeyPart, { readonly kind: 'header' | 'cookie' | 'query' }>;

function fieldReader(part: FieldPart, terms: RuleTerms): ReadPart {
  switch (part.kind) {
    case 'header': {
      const fact = terms.names.header(part.name);
      // Sent twice, it is the sender's choice which one the application believes: no key at all.
      return (facts) => facts.soleHeader(fact);
    }
    case 'cookie': {
      const fact = terms.names.cookie(bytesOf(part.name));
      return (facts) => facts.cookie(fact);
    }
    case 'query': {
      const fact = terms.names.query(bytesOf(part.name));
      return (facts) => facts.query(fact);
    }
  }
}
