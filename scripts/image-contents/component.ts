// What an image holds, as its list of contents names it.
import { createHash } from 'node:crypto';

/** One thing somebody made, with the terms it comes under. */
export interface Component {
  readonly kind: 'application' | 'library' | 'platform';
  readonly name: string;
  readonly version: string;
  /** A package URL: how scanners of vulnerabilities know it. */
  readonly purl: string;
  /** Name of the product in the list of known vulnerabilities, where package URLs are not enough. */
  readonly cpe?: string;
  /** An SPDX identifier or expression, or the words that the package itself uses. */
  readonly licence: string;
  /** The file in the image that holds the licence's text. */
  readonly licenceFile: string;
}

/** The same contents give the same number. */
export function serialNumberOf(components: readonly Component[]): string {
  const hash = createHash('sha256').update(JSON.stringify(components)).digest('hex');
  const groups = [
    ...[hash.slice(0, 8), hash.slice(8, 12), `4${hash.slice(13, 16)}`],
    ...[`8${hash.slice(17, 20)}`, hash.slice(20, 32)],
  ];
  return `urn:uuid:${groups.join('-')}`;
}
