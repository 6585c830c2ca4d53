import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/**
 * The text of script.lua. The one place that reads it: the bundler replaces this file by one that returns
 * the text, because a bundle has no files beside it.
 */
export function readScript(): string {
  return readFileSync(new URL('./script.lua', import.meta.url), 'utf8');
}

/** The name under which a server knows `script`. */
export function scriptDigest(script: string): string {
  return createHash('sha1').update(script).digest('hex');
}
