// The accept/reject table of policy documents: what a file check, the API server and the operator say of each.
// `-` stands where nobody gets that far. The API server's column was seen on kube-apiserver 1.36.3
// (`kubectl create --dry-run=server --validate=warn`).
import { readFileSync } from 'node:fs';

export const DOCUMENTS: URL = new URL('./documents/', import.meta.url);

export interface Verdict {
  readonly file: string;
  readonly zod: string;
  readonly server: string;
  readonly operator: string;
  /** Path of a problem that must be among those found. */
  readonly path: string;
  /** A part of that problem's advice. */
  readonly advice: string;
}

export function readVerdicts(): Verdict[] {
  const [, ...lines] = readDocument('VERDICTS.tsv').trimEnd().split('\n');
  return lines.map((line) => {
    const [file = '', zod = '', server = '', operator = '', path = '', advice = ''] =
      line.split('\t');
    return { file, zod, server, operator, path, advice };
  });
}

export function readDocument(file: string): string {
  return readFileSync(new URL(file, DOCUMENTS), 'utf8');
}
