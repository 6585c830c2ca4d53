// The fields that the rules of one bundle ask for. Each is read at most once per request, however many rules ask, into
// an object that all of them hold; names that no rule asks for cost nothing.

/** A request header: its lines joined by `, `. `name` is lower-case. */
export class HeaderFact {
  readonly name: string;
  value: string | undefined;
  /** The request that `value` belongs to. */
  epoch = 0;

  constructor(name: string) {
    this.name = name;
  }
}

/** The first query pair or cookie of a name. */
export class PairFact {
  value: string | undefined;
}

/** Names are byte strings. */
export class FieldNames {
  readonly queries: Map<string, PairFact> = new Map<string, PairFact>();
  readonly cookies: Map<string, PairFact> = new Map<string, PairFact>();
  readonly #headers = new Map<string, HeaderFact>();

  header(name: string): HeaderFact {
    const known = this.#headers.get(name);
    if (known !== undefined) return known;
    const fact = new HeaderFact(name);
    this.#headers.set(name, fact);
    return fact;
  }

  query(name: string): PairFact {
    return pairNamed(this.queries, name);
  }

  cookie(name: string): PairFact {
    return pairNamed(this.cookies, name);
  }
}

function pairNamed(pairs: Map<string, PairFact>, name: string): PairFact {
  const known = pairs.get(name);
  if (known !== undefined) return known;
  const fact = new PairFact();
  pairs.set(name, fact);
  return fact;
}
