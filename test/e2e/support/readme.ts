// The commands of a page, as a user would type them.
import { readFile } from 'node:fs/promises';
import path from 'node:path';

export const ROOT: string = path.join(import.meta.dirname, '..', '..', '..');

/** The `sh` blocks of a section, or of the whole page, in order. */
export async function commandsOf(page: string, section?: string): Promise<readonly string[]> {
  const text = await readFile(path.join(ROOT, page), 'utf8');
  const start = section === undefined ? 0 : text.indexOf(`\n## ${section}\n`);
  if (start < 0) throw new Error(`${page} has no section "${section ?? ''}"`);
  const next = text.indexOf('\n## ', start + 1);
  const part = text.slice(start, section === undefined || next < 0 ? undefined : next);
  return [...part.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
}
