// The version of this program: put in by the build, read from package.json in a checkout.
import { readFileSync } from 'node:fs';

declare const WEIR_VERSION: string | undefined;

export function readVersion(): string {
  if (typeof WEIR_VERSION === 'string') return WEIR_VERSION;
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
  );
  return (manifest as { version: string }).version;
}
