import type { HeaderFact } from './field-names.ts';
import type { TokenState, TokenVerifier } from './token-verifier.ts';

/** The bearer token of the request at hand, for the policies that trust one issuer in one way. */
export class TokenFact {
  readonly verifier: TokenVerifier;
  /** The field that carries it. */
  readonly header: HeaderFact;
  /** Undefined when there is none or more than one. */
  token: string | undefined;
  /** Undefined when there is no token or it has to be verified. */
  state: TokenState | undefined;
  /** The request that token and state belong to. */
  epoch = 0;

  constructor(verifier: TokenVerifier, header: HeaderFact) {
    this.verifier = verifier;
    this.header = header;
  }
}
