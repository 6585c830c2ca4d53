// The MutatingWebhookConfiguration as the API server has it: whether it trusts us, and when somebody changed it.
import { planCaBundle, type WebhookList } from '../certificates/ca-bundle.ts';
import { webhookConfigurationResource } from '../webhook/configuration.ts';
import type { ClusterWatch } from './cluster-watch.ts';

export class WebhookWatch {
  readonly #name: string;
  readonly #listeners = new Set<() => void>();
  #configuration: WebhookList | undefined;

  /** Before the watch is started. */
  constructor(watch: Pick<ClusterWatch, 'add'>, name: string) {
    this.#name = name;
    watch.add<WebhookList>({
      options: {
        resource: webhookConfigurationResource,
        fieldSelector: `metadata.name=${name}`,
      },
      onChange: ({ after }) => {
        this.#configuration = after;
        for (const listener of this.#listeners) listener();
      },
    });
  }

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return {
      [Symbol.dispose]: () => {
        this.#listeners.delete(listener);
      },
    };
  }

  /** Why the API server would not believe our certificate; `isOurs`: the CA in it is the very text of `trust`. */
  trustProblem(trust: string, isOurs: boolean): string | undefined {
    const configuration = this.#configuration;
    if (configuration === undefined) {
      return `there is no MutatingWebhookConfiguration ${this.#name}`;
    }
    const { webhooks = [] } = configuration;
    const isTrusted = isOurs
      ? planCaBundle(configuration, trust).length === 0
      : webhooks.every(({ clientConfig }) => (clientConfig.caBundle ?? '') !== '');
    return isTrusted ? undefined : `${this.#name} does not hold our CA yet`;
  }
}
