// The chart and the operator's code say the same: settings, rights, webhook, custom resource.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { environmentName } from '../../contract/setting.ts';
import {
  clusterRules,
  ownRules,
  watchedRules,
  withoutReason,
  type AccessRule,
} from '../../operator/access-rules.ts';
import { parseOperatorConfig } from '../../operator/config.ts';
import { operatorSettings, type OperatorConfig } from '../../operator/operator-settings.ts';
import { webhookConfiguration } from '../../operator/webhook/configuration.ts';
import {
  find,
  operatorEnvironment,
  podTemplates,
  render,
  RELEASE_NAMESPACE,
  type Manifest,
} from './helm.ts';

/** Every value that is left out while it is empty. */
const EVERYTHING: readonly string[] = [
  ...['--set', 'watchNamespaces={shop,pay}', '--set', 'operator.streamUrl=https://weir.example'],
  ...['--set', 'sidecar.storeDeadline=50ms', '--set', 'sidecar.imagePullSecrets={one,two}'],
  ...['--set', 'sidecar.image.pullPolicy=Never', '--set', 'operator.jwksHosts={idp.example.com}'],
  ...['--set', 'certificates.names={weir.example}'],
];
const FILES: readonly string[] = [
  ...['--set', 'certificates.mode=files', '--set', 'certificates.files.secretName=own-tls'],
];
/** In a pod it is the account's own files, and nothing else can be right. */
const THE_PODS_OWN: ReadonlySet<string> = new Set(['WEIR_KUBECONFIG']);
const NO_STORE: readonly string[] = ['--set', 'redis.embedded.enabled=false'];

async function configOf(flags: readonly string[]): Promise<OperatorConfig> {
  return parseOperatorConfig({}, operatorEnvironment(await render(flags)));
}

describe('the settings of the operator', () => {
  it('are all reachable by values: a new setting without one fails here', async () => {
    const names = new Set<string>();
    for (const flags of [EVERYTHING, FILES]) {
      const pod = podTemplates(await render(flags)).get('weir-operator');
      for (const { name } of pod?.spec.containers[0]?.env ?? []) names.add(name);
    }
    const wanted = operatorSettings.map(({ name }) => environmentName(name));

    assert.deepEqual(
      [...names].toSorted(),
      wanted.filter((name) => !THE_PODS_OWN.has(name)).toSorted(),
    );
  });

  it('are those of the operator itself when no value is given, but for images and the store', async () => {
    const config = await configOf([]);
    const { image, redirectImage, storeSecret, ...rest } = parseOperatorConfig({}, {});

    assert.deepEqual(config, {
      ...rest,
      image: 'weir.dev/sidecar:0.1.0',
      redirectImage: 'weir.dev/redirect-init:0.1.0',
      storeSecret: 'weir-store-made-by-chart',
    });
    assert.deepEqual(
      [image, redirectImage, storeSecret],
      ['weir.dev/sidecar:0.1.0', 'weir.dev/redirect-init:0.1.0', undefined],
    );
  });

  it('are what the values say, read by the operator’s own parser', async () => {
    const config = await configOf([...EVERYTHING, '--set', 'sidecar.resources.limits.cpu=2']);

    assert.deepEqual(config.watchNamespaces, ['shop', 'pay']);
    assert.equal(config.streamUrl, 'https://weir.example');
    assert.equal(config.deadline, 50);
    assert.deepEqual(config.imagePullSecrets, ['one', 'two']);
    assert.equal(config.imagePullPolicy, 'Never');
    assert.deepEqual(config.jwksHosts, ['idp.example.com']);
    assert.deepEqual(config.certificateNames, ['weir.example']);
    assert.equal(config.sidecarCpuLimit, '2');
  });

  it('leave the caBundle to cert-manager, and certificates to files, where values say so', async () => {
    const issued = [
      ...['--set', 'certificates.mode=cert-manager'],
      ...['--api-versions', 'cert-manager.io/v1'],
    ];
    const kept = ['--set', 'certificates.files.manageCaBundle=false'];

    const found = await Promise.all([[], issued, FILES, [...FILES, ...kept]].map(configOf));

    assert.deepEqual(
      found.map(({ certificates, certificateDir, manageCaBundle }) => [
        certificates,
        certificateDir,
        manageCaBundle,
      ]),
      [
        ['own', undefined, true],
        ['files', '/etc/weir/tls', false],
        ['files', '/etc/weir/tls', true],
        ['files', '/etc/weir/tls', false],
      ],
    );
  });
});

type Rule = ReturnType<typeof withoutReason>;

function rulesOf(manifest: Manifest): readonly Rule[] {
  return manifest['rules'] as readonly Rule[];
}

function plain(...rules: readonly (readonly AccessRule[])[]): readonly Rule[] {
  return rules.flat().map(withoutReason);
}

describe('the rights of the operator', () => {
  const cases: readonly (readonly [title: string, flags: readonly string[]])[] = [
    ['as they come', []],
    ['with eviction', ['--set', 'operator.evictUninjected=true']],
    ['without a store', NO_STORE],
    ['with a Secret of the user’s', [...NO_STORE, '--set', 'redis.existingSecret=my-store']],
    ['with certificates that somebody else makes', FILES],
    [
      'with certificates and a caBundle that somebody else makes',
      [...FILES, '--set', 'certificates.files.manageCaBundle=false'],
    ],
    ['with another webhook configuration', ['--set', 'webhookConfiguration.name=weir-two']],
  ];
  for (const [title, flags] of cases) {
    it(`are those of access-rules.ts and no others: ${title}`, async () => {
      const manifests = await render(flags);
      const config = await configOf(flags);

      assert.deepEqual(
        rulesOf(find(manifests, 'ClusterRole', 'weir-operator')),
        plain(watchedRules(config), clusterRules(config)),
      );
      assert.deepEqual(rulesOf(find(manifests, 'Role', 'weir-operator')), plain(ownRules(config)));
    });
  }

  it('are in a Role of each watched namespace, and the cluster’s are what has no namespace', async () => {
    const manifests = await render(EVERYTHING);
    const config = await configOf(EVERYTHING);

    assert.deepEqual(
      rulesOf(find(manifests, 'ClusterRole', 'weir-operator')),
      plain(clusterRules(config)),
    );
    const roles = manifests.filter(({ metadata }) => metadata.name === 'weir-operator-watched');
    assert.deepEqual(
      roles.map(({ kind, metadata }) => [kind, metadata.namespace]),
      [
        ['Role', 'shop'],
        ['Role', 'pay'],
        ['RoleBinding', 'shop'],
        ['RoleBinding', 'pay'],
      ],
    );
    for (const role of roles.filter(({ kind }) => kind === 'Role')) {
      assert.deepEqual(rulesOf(role), plain(watchedRules(config)));
    }
  });

  it('go to the account that its pods run as', async () => {
    for (const flags of [[], ['--set', 'serviceAccount.create=false,serviceAccount.name=mine']]) {
      const manifests = await render([...flags, ...EVERYTHING]);
      const account = podTemplates(manifests).get('weir-operator')?.spec['serviceAccountName'];
      const bindings = manifests.filter(
        ({ kind, metadata }) => kind.endsWith('Binding') && !metadata.name.endsWith('-test'),
      );

      assert.equal(bindings.length, 4);
      for (const { subjects } of bindings as unknown as readonly { subjects: unknown }[]) {
        const namespace = RELEASE_NAMESPACE;
        assert.deepEqual(subjects, [{ kind: 'ServiceAccount', name: account, namespace }]);
      }
    }
  });
});

interface Entry {
  readonly name: string;
  readonly failurePolicy: string;
  readonly timeoutSeconds: number;
  readonly matchConditions: readonly { readonly name: string }[];
  readonly namespaceSelector: { readonly matchExpressions: readonly unknown[] };
}

async function entriesOf(flags: readonly string[]): Promise<readonly Entry[]> {
  return find(await render(flags), 'MutatingWebhookConfiguration')['webhooks'] as readonly Entry[];
}

describe('the webhook configuration', () => {
  it('is the one of the operator’s code', async () => {
    const service = { namespace: RELEASE_NAMESPACE, name: 'weir-operator', port: 443 };
    const made = webhookConfiguration({
      operatorNamespace: RELEASE_NAMESPACE,
      target: { service },
    });
    const { metadata } = find(await render(), 'MutatingWebhookConfiguration');

    assert.deepEqual(await entriesOf([]), made.webhooks);
    assert.equal(metadata.name, made.metadata.name);
  });

  it('drops entries by value; the one that requires a sidecar is never anything but Fail', async () => {
    const only = await entriesOf(['--set', 'webhookConfiguration.entries.enabled=false']);

    assert.deepEqual(
      only.map(({ name, failurePolicy }) => [name.split('.').slice(1).join('.'), failurePolicy]),
      [
        ['required.inject.weir.dev', 'Fail'],
        ['inject.weir.dev', 'Ignore'],
      ],
    );
  });

  it('takes a timeout, further selectors and conditions, for all entries', async () => {
    const more = { key: 'team', operator: 'Exists' };
    const condition = { name: 'mine', expression: 'true' };
    const entries = await entriesOf([
      ...['--set', 'webhookConfiguration.timeoutSeconds=7'],
      ...['--set-json', `webhookConfiguration.namespaceSelector=[${JSON.stringify(more)}]`],
      ...['--set-json', `webhookConfiguration.matchConditions=[${JSON.stringify(condition)}]`],
    ]);

    assert.equal(entries.length, 3);
    for (const { timeoutSeconds, matchConditions, namespaceSelector } of entries) {
      assert.equal(timeoutSeconds, 7);
      assert.deepEqual(matchConditions.at(-1), condition);
      assert.deepEqual(namespaceSelector.matchExpressions[2], more);
    }
  });

  it('asks about pods of watched namespaces only, where there are such', async () => {
    const entries = await entriesOf(EVERYTHING);

    for (const { namespaceSelector } of entries) {
      assert.deepEqual(namespaceSelector.matchExpressions[2], {
        key: 'kubernetes.io/metadata.name',
        operator: 'In',
        values: ['shop', 'pay'],
      });
    }
  });
});

describe('the custom resource definition', () => {
  it('is the generated one, with labels and, unless told otherwise, kept when the release goes', async () => {
    const file = path.join('crds', 'generated', 'ratelimitpolicies.weir.dev.yaml');
    const root = path.join(import.meta.dirname, '..', '..');
    const generated = parse(await readFile(path.join(root, file), 'utf8')) as Manifest;
    const { metadata, ...rest } = find(await render(), 'CustomResourceDefinition');
    const { metadata: name, ...expected } = generated;

    assert.deepEqual(rest, expected);
    assert.equal(metadata.name, name.name);
    assert.deepEqual(metadata.annotations, { 'helm.sh/resource-policy': 'keep' });
    const loose = find(await render(['--set', 'crds.keep=false']), 'CustomResourceDefinition');
    assert.equal(loose.metadata.annotations, undefined);
  });

  it('is left out when somebody else installs it', async () => {
    const manifests = await render(['--set', 'crds.enabled=false']);

    assert.deepEqual(
      manifests.filter(({ kind }) => kind === 'CustomResourceDefinition'),
      [],
    );
  });
});
