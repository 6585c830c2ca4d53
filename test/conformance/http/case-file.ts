// The format of the corpus: recorded exchanges as text in which every byte can be seen.
//
//   === an answer without a body          the name of a case; lines that begin with `;` are remarks
//   > GET /x HTTP/1.1                     what the client sends; a line ends with CR LF,
//   > Host: a                             unless a backslash is its last character
//   >
//   < HTTP/1.1 204 No Content             what the application answers
//   <
//   --                                    between two answers: the second waits for the next request
//   ! close                               the application closes the connection
//   ! refused 400                         Weir answers itself, on purpose; the application is not asked, or not answered for
//
// Escapes: \r \n \t \0 \\ \xHH, and \{text*COUNT} for text again and again. All other bytes are printable ASCII.

export type Step =
  { readonly kind: 'client' | 'application'; readonly bytes: string } | { readonly kind: 'close' };

export interface CorpusCase {
  readonly name: string;
  readonly steps: readonly Step[];
  /** Weir's own status, where it refuses what an application may take. */
  readonly refusedWith: number | undefined;
}

/** All cases of a file. Throws with the number of the line that it cannot read. */
export function parseCases(text: string): CorpusCase[] {
  const cases: CaseReader[] = [];
  for (const [at, line] of text.split('\n').entries()) {
    if (line === '' || line.startsWith(';')) continue;
    if (line.startsWith('=== ')) {
      cases.push(new CaseReader(line.slice(4)));
      continue;
    }
    const current = cases.at(-1);
    if (current?.read(line) !== true) throw new Error(`line ${String(at + 1)}: ${line}`);
  }
  return cases.map((one) => one.finished());
}

class CaseReader {
  readonly #name: string;
  readonly #steps: Step[] = [];
  #refusedWith: number | undefined = undefined;
  /** The block under way. */
  #kind: 'client' | 'application' | undefined = undefined;
  #bytes = '';

  constructor(name: string) {
    this.#name = name;
  }

  /** False when it is no line of a case. */
  read(line: string): boolean {
    if (line.startsWith('>')) this.#add('client', line);
    else if (line.startsWith('<')) this.#add('application', line);
    else if (line === '--') this.#endBlock();
    else return this.#direct(line);
    return true;
  }

  finished(): CorpusCase {
    this.#endBlock();
    return { name: this.#name, steps: this.#steps, refusedWith: this.#refusedWith };
  }

  #add(kind: 'client' | 'application', line: string): void {
    if (this.#kind !== kind) this.#endBlock();
    this.#kind = kind;
    const text = line.slice(2);
    const isOpen = text.endsWith('\\') && !text.endsWith('\\\\');
    this.#bytes += unescaped(isOpen ? text.slice(0, -1) : text) + (isOpen ? '' : '\r\n');
  }

  #direct(line: string): boolean {
    this.#endBlock();
    const refused = /^! refused (\d{3})$/.exec(line)?.[1];
    if (refused !== undefined) this.#refusedWith = Number(refused);
    else if (line === '! close') this.#steps.push({ kind: 'close' });
    else return false;
    return true;
  }

  #endBlock(): void {
    if (this.#kind !== undefined) this.#steps.push({ kind: this.#kind, bytes: this.#bytes });
    this.#kind = undefined;
    this.#bytes = '';
  }
}

const escapes: Readonly<Record<string, string>> = {
  '\\r': '\r',
  '\\n': '\n',
  '\\t': '\t',
  '\\0': '\0',
  '\\\\': '\\',
};

function unescaped(text: string): string {
  return text.replace(/\\(?:x([0-9a-f]{2})|\{(.*?)\*(\d+)\}|.)/g, (...found: string[]) => {
    const [all = '', hex, again, count] = found;
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    if (again !== undefined) return unescaped(again).repeat(Number(count));
    const known = escapes[all];
    if (known === undefined) throw new Error(`unknown escape ${all} in ${text}`);
    return known;
  });
}

/** Lines of a block, as the format writes them: the inverse of reading, without repetitions. */
export function escapedBlock(mark: '>' | '<', bytes: string): string[] {
  const lines = bytes.split('\r\n');
  const last = lines.pop() ?? '';
  const written = lines.map((line) => (line === '' ? mark : `${mark} ${escaped(line)}`));
  // A backslash of its own at the end would hide the one behind it.
  if (last !== '') written.push(`${mark} ${escaped(last).replace(/\\\\$/, '\\x5c')}\\`);
  return written;
}

function escaped(text: string): string {
  return text.replace(/[^ -[\]-~]/g, (char) => {
    const name = Object.keys(escapes).find((key) => escapes[key] === char);
    return name ?? `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}
