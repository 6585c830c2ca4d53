// Rules from the operator. The first ones come from whoever is first to have any, in this order: the stream, the cache
// of an earlier start in this pod, the seed that the pod was created with; without any `--on-no-config` decides. From
// then on the stream is kept, what it brings is cached, and what is in force stays so for as long as the operator is away.
import { readFile, stat } from 'node:fs/promises';
import { SEED_LENGTH_MAX, decodeSeed } from '../../contract/seed.ts';
import type { Log } from '../log.ts';
import type { RunConfig } from '../run-config.ts';
import { ConfigCache } from './config-cache.ts';
import { ConfigKeeper } from './config-keeper.ts';
import type { ConfigTarget } from './pushed-config.ts';
import { StreamSource } from './stream-source.ts';

/** How long the stream may take to bring the first rules before others are used. */
const FIRST_PUSH_WITHIN_MS = 3_000;

export interface OperatorSourceOptions {
  readonly config: RunConfig;
  readonly target: ConfigTarget;
  /** Of this program. */
  readonly version: string;
  readonly log: Log;
}

/** Resolves once it is decided what requests meet: rules, or the lack of them. Never rejects. */
export async function openOperatorSource(options: OperatorSourceOptions): Promise<AsyncDisposable> {
  const source = new OperatorSource(options);
  await source.start();
  return source;
}

class OperatorSource implements AsyncDisposable {
  readonly #options: OperatorSourceOptions;
  readonly #keeper: ConfigKeeper;
  readonly #cache: ConfigCache | undefined;
  readonly #decided = Promise.withResolvers<undefined>();
  #stream: StreamSource | undefined = undefined;
  #writing: Promise<void> = Promise.resolve();
  #isWriteQueued = false;

  constructor(options: OperatorSourceOptions) {
    const { config, target, log } = options;
    this.#options = options;
    this.#keeper = new ConfigKeeper(target, log);
    this.#cache =
      config.configCache === undefined
        ? undefined
        : new ConfigCache(config.configCache, config.podUid ?? '');
  }

  async start(): Promise<void> {
    const { config, target, version, log } = this.#options;
    const { operator = '', operatorCa, operatorToken } = config;
    const { podNamespace = '', podName = '', podUid = '' } = config;
    this.#stream = new StreamSource({
      ...{ url: operator, ca: operatorCa, tokenFile: operatorToken, version, log },
      pod: { namespace: podNamespace, name: podName, uid: podUid },
      keeper: this.#keeper,
      report: () => target.report(),
      onInForce: () => {
        this.#decided.resolve(undefined);
        this.#save();
      },
      // A failure that is known need not be waited for.
      onFailure: () => {
        this.#decided.resolve(undefined);
      },
      random: Math.random,
    });
    const patience = setTimeout(() => {
      this.#decided.resolve(undefined);
    }, FIRST_PUSH_WITHIN_MS);
    await this.#decided.promise;
    clearTimeout(patience);
    if (this.#keeper.inForce === undefined) await this.#fallBack();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stream?.[Symbol.dispose]();
    await this.#writing;
  }

  async #fallBack(): Promise<void> {
    if (await this.#useCache()) return;
    if (await this.#useSeed()) return;
    const { config, log } = this.#options;
    if (config.onNoConfig === 'allow') {
      log.warn(
        { event: 'no-config', onNoConfig: 'allow' },
        'there are no rules yet: every request is forwarded (--on-no-config allow)',
      );
      await this.#keeper.allowAll();
      return;
    }
    log.error(
      { event: 'no-config', onNoConfig: 'deny' },
      'there are no rules yet: every request is answered 503 (--on-no-config deny)',
    );
  }

  async #useCache(): Promise<boolean> {
    if (this.#cache === undefined) return false;
    const content = await this.#cache.read();
    if (content.kind === 'config') return this.#keeper.restore(content.config, 'cache');
    if (content.kind === 'unusable') {
      const fields = { event: 'cache-unusable', reason: content.reason };
      this.#options.log.warn(fields, 'the cached configuration is not used');
    }
    return false;
  }

  async #useSeed(): Promise<boolean> {
    const { seed: file } = this.#options.config;
    if (file === undefined) return false;
    const seed = decodeSeed(await readBounded(file));
    if (seed.kind === 'seed') {
      const { version, policies } = seed.bundle;
      return this.#keeper.restore({ version, policies, settings: {} }, 'seed');
    }
    if (seed.kind === 'unreadable') {
      this.#options.log.warn(
        { event: 'seed-unusable', reason: seed.reason },
        'the seed is not used',
      );
    }
    return false;
  }

  /** The last of several that come while one is written. */
  #save(): void {
    if (this.#isWriteQueued || this.#cache === undefined) return;
    this.#isWriteQueued = true;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    this.#isWriteQueued = false;
    const { inForce } = this.#keeper;
    if (inForce === undefined) return;
    const { bundle, settings, ca } = inForce;
    try {
      await this.#cache?.write({
        version: bundle.version,
        policies: bundle.policies,
        settings,
        ca,
      });
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      this.#options.log.warn(
        { event: 'cache-unwritable', cause },
        'the configuration was not cached',
      );
    }
  }
}

/** Empty when there is none. An annotation that is longer than a seed is none. */
async function readBounded(file: string): Promise<string> {
  try {
    // One more is enough to be refused; white space around it is the volume's.
    const { size } = await stat(file);
    return size > 2 * SEED_LENGTH_MAX
      ? 'x'.repeat(SEED_LENGTH_MAX + 1)
      : await readFile(file, 'utf8');
  } catch {
    return '';
  }
}
