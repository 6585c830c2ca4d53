// What the operator pushed last, kept over a restart of the container: one file with a checksum, written beside its
// place and renamed. It holds the store's credentials, for a restart without the operator has to reach the store; the
// folder is memory that only this container mounts, and the file is for its owner only (see docs/adr).
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import * as z from 'zod/mini';
import { settingsSchema } from '../../contract/frame-codec.ts';
import {
  PUSH_BYTES_MAX,
  PUSHED_POLICIES_MAX,
  type SidecarSettings,
} from '../../contract/stream.ts';
import { BUNDLE_FORMAT } from '../../contract/bundle.ts';

const FILE = 'config.json';
/** A push of the largest size, and what stands around it. */
const BYTES_MAX = PUSH_BYTES_MAX + 1_048_576;
const OWNER_ONLY = 0o600;

export interface CachedConfig {
  readonly version: string;
  /** Not checked one by one. */
  readonly policies: readonly unknown[];
  readonly settings: SidecarSettings;
  readonly ca?: string | undefined;
}

export type CacheContent =
  | { readonly kind: 'config'; readonly config: CachedConfig }
  | { readonly kind: 'none' }
  | { readonly kind: 'unusable'; readonly reason: string };

export class ConfigCache {
  readonly #folder: string;
  readonly #podUid: string;

  constructor(folder: string, podUid: string) {
    this.#folder = folder;
    this.#podUid = podUid;
  }

  /** Never rejects: a file that cannot be used is no configuration. */
  async read(): Promise<CacheContent> {
    const file = path.join(this.#folder, FILE);
    try {
      const { size } = await stat(file);
      if (size > BYTES_MAX) return unusable(`more than ${BYTES_MAX} bytes`);
      return this.#parse(await readFile(file, 'utf8'));
    } catch (error) {
      return isMissing(error) ? { kind: 'none' } : unusable('it cannot be read');
    }
  }

  /** Rejects when the file cannot be written; the one before stays then. */
  async write({ version, policies, settings, ca }: CachedConfig): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    const content = {
      format: BUNDLE_FORMAT,
      podUid: this.#podUid,
      version,
      settings,
      ca,
      policies,
    };
    const text = JSON.stringify(content);
    const draft = path.join(this.#folder, `${FILE}.${randomUUID()}`);
    try {
      await writeFile(draft, `${checksum(text)}\n${text}`, { mode: OWNER_ONLY, flag: 'wx' });
      await rename(draft, path.join(this.#folder, FILE));
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  #parse(whole: string): CacheContent {
    const end = whole.indexOf('\n');
    const text = whole.slice(end + 1);
    if (end < 0 || whole.slice(0, end) !== checksum(text)) {
      return unusable('its checksum does not fit');
    }
    const parsed = schema.safeParse(JSON.parse(text));
    if (!parsed.success) return unusable('it is of another version of this program');
    const { podUid, version, policies, ca } = parsed.data;
    if (podUid !== this.#podUid) return unusable('it is of another pod');
    // The schema has just said so.
    const settings = parsed.data.settings as SidecarSettings;
    return { kind: 'config', config: { version, policies, settings, ca } };
  }
}

const schema = z.object({
  format: z.literal(BUNDLE_FORMAT),
  podUid: z.string(),
  version: z.string(),
  settings: settingsSchema,
  ca: z.optional(z.string()),
  policies: z.array(z.unknown()).check(z.maxLength(PUSHED_POLICIES_MAX)),
});

function checksum(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function unusable(reason: string): CacheContent {
  return { kind: 'unusable', reason };
}
