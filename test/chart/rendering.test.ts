// What every rendering has in common, whatever the values: what is installed can be told beforehand, starts with no
// privilege, and leaves nothing behind that blocks pods.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { annotations, inPod } from '../../contract/names.ts';
import {
  CHART,
  find,
  operatorEnvironment,
  podTemplates,
  render,
  runHelm,
  template,
  type Container,
  type Manifest,
  type PodTemplate,
} from './helm.ts';

const API_VERSIONS: readonly string[] = [
  ...['--api-versions', 'cert-manager.io/v1', '--api-versions', 'monitoring.coreos.com/v1'],
];
const MONITORED: readonly string[] = [
  ...['serviceMonitor', 'podMonitor', 'prometheusRule', 'dashboard'].flatMap((kind) => [
    ...['--set', `monitoring.${kind}.enabled=true`],
  ]),
];
const HA: readonly string[] = ['--values', path.join(CHART, 'values-ha.yaml')];

const sets: Readonly<Record<string, readonly string[]>> = {
  'no values': [],
  'values-ha.yaml': HA,
  'everything there is': [
    ...API_VERSIONS,
    ...MONITORED,
    ...['--set', 'certificates.mode=cert-manager', '--set', 'networkPolicy.enabled=true'],
    ...['--set', 'watchNamespaces={shop}', '--set', 'operator.hostNetwork=true'],
    ...['--set-json', 'networkPolicy.metricsFrom=[{"podSelector":{}}]'],
    ...['--set', 'commonLabels.team=edge', '--set', 'operator.nodeOptions=--max-semi-space-size=8'],
    ...['--set', 'operator.podLabels.tier=control', '--set', 'imagePullSecrets[0].name=pull'],
  ],
};
const RELEASE_WIDE: ReadonlySet<string> = new Set([
  ...['ClusterRole', 'ClusterRoleBinding', 'CustomResourceDefinition'],
  'MutatingWebhookConfiguration',
]);

/** `lint` is told of no capabilities, so that what needs one is refused. */
function forLint(flags: readonly string[]): readonly string[] {
  return flags.filter((_, at) => {
    const pair = flags.slice(at - (at % 2), at - (at % 2) + 2);
    return pair[0] !== '--api-versions' && pair[1] !== 'certificates.mode=cert-manager';
  });
}

function hookOf({ metadata }: Manifest): string | undefined {
  return metadata.annotations?.['helm.sh/hook'];
}

for (const [title, flags] of Object.entries(sets)) {
  describe(`the chart with ${title}`, () => {
    it('passes lint --strict', async () => {
      const { code, stdout } = await runHelm(['lint', '--strict', CHART, ...forLint(flags)]);

      assert.equal(code, 0, stdout);
    });

    it('renders to the same bytes twice', async () => {
      assert.equal(await template(flags), await template(flags));
    });

    it('writes no caBundle, and has no hook but the tests’', async () => {
      const manifests = await render(flags);

      assert.doesNotMatch(JSON.stringify(manifests), /caBundle/);
      for (const one of manifests) assert(['test', undefined].includes(hookOf(one)), one.kind);
      assert.deepEqual(
        manifests.filter(({ kind }) => kind === 'Job'),
        [],
      );
    });

    it('labels every object, and puts each where it belongs', async () => {
      for (const one of await render(flags)) {
        const { labels = {}, namespace, name } = one.metadata;
        assert.equal(labels['helm.sh/chart'], 'weir-0.1.0', name);
        assert.equal(labels['app.kubernetes.io/part-of'], 'weir', name);
        assert.equal(labels['app.kubernetes.io/instance'], 'weir', name);
        assert.equal(labels['app.kubernetes.io/managed-by'], 'Helm', name);
        assert.equal(namespace === undefined, RELEASE_WIDE.has(one.kind), `${one.kind} ${name}`);
      }
    });

    it('selects by what never changes', async () => {
      for (const { kind, metadata, ...rest } of await render(flags)) {
        if (kind !== 'Deployment') continue;
        const { selector } = rest['spec'] as { selector: { matchLabels: object } };
        assert.deepEqual(
          Object.keys(selector.matchLabels).toSorted(),
          ['component', 'instance', 'name'].map((label) => `app.kubernetes.io/${label}`),
          metadata.name,
        );
      }
    });

    it('starts pods that pass Pod Security restricted, and that the webhook leaves alone', async () => {
      const pods = podTemplates(await render(flags));
      assert(pods.size >= 2);
      for (const [name, pod] of pods) {
        assertRestricted(name, pod);
        assert.equal(pod.metadata.labels?.['app.kubernetes.io/part-of'], 'weir', name);
        assert.equal(pod.metadata.annotations?.[annotations.inject], 'disabled', name);
        assert.equal(pod.spec.enableServiceLinks, false, name);
        for (const { resources } of pod.spec.containers) {
          assert(
            resources?.['requests']?.['cpu'] !== undefined &&
              'memory' in (resources['limits'] ?? {}),
          );
        }
      }
    });

    it('names ports that are there', async () => {
      const manifests = await render(flags);
      const names = [...podTemplates(manifests).values()].flatMap((pod) => namesOf(pod));
      const wanted = manifests
        .filter(({ kind }) => kind === 'Service')
        .flatMap(({ spec }) => (spec as { ports: readonly { targetPort: string }[] }).ports)
        .map(({ targetPort }) => targetPort);

      assert.deepEqual(
        wanted.filter((name) => !names.includes(name)),
        [],
      );
    });
  });
}

function namesOf({ spec }: PodTemplate): readonly string[] {
  return spec.containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name));
}

function assertRestricted(name: string, { spec }: PodTemplate): void {
  const { runAsNonRoot, seccompProfile } = spec.securityContext ?? {};
  assert.deepEqual([runAsNonRoot, seccompProfile], [true, { type: 'RuntimeDefault' }], name);
  for (const { securityContext } of spec.containers) {
    assert.deepEqual(
      securityContext,
      {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      name,
    );
  }
}

function kinds(manifests: readonly Manifest[]): readonly string[] {
  return manifests.filter((one) => hookOf(one) === undefined).map(({ kind }) => kind);
}

function operatorOf(manifests: readonly Manifest[]): {
  readonly pod: PodTemplate;
  readonly container: Container;
} {
  const pod = podTemplates(manifests).get('weir-operator');
  const container = pod?.spec.containers[0];
  assert(pod !== undefined && container !== undefined);
  return { pod, container };
}

describe('the operator’s Deployment', () => {
  it('never has fewer replicas than asked for while it is rolled', async () => {
    const { spec } = find(await render(), 'Deployment', 'weir-operator') as Manifest & {
      spec: { replicas: number; strategy: unknown };
    };

    assert.equal(spec.replicas, 2);
    const rollingUpdate = { maxUnavailable: 0, maxSurge: 1 };
    assert.deepEqual(spec.strategy, { type: 'RollingUpdate', rollingUpdate });
  });

  it('is given the time that the operator takes to end, and more', async () => {
    const grace = async (flags: readonly string[]): Promise<unknown> =>
      operatorOf(await render(flags)).pod.spec.terminationGracePeriodSeconds;

    assert.equal(await grace([]), 45);
    assert.equal(await grace(['--set', 'operator.grace=90s']), 105);
    assert.equal(await grace(['--set', 'operator.terminationGracePeriodSeconds=300']), 300);
  });

  it('has the memory that a thousand sidecars were measured to take', async () => {
    const { resources } = operatorOf(await render()).container;

    assert.deepEqual(resources, {
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { memory: '512Mi' },
    });
  });

  it('begins with the word that every image of ours begins with', async () => {
    const { args, command } = operatorOf(await render()).container;

    assert.deepEqual([command, args], [undefined, ['operator']]);
  });

  it('gets its ports, and the listeners the same', async () => {
    const { container } = operatorOf(await render(['--set', 'operator.ports.webhook=10250']));

    assert.deepEqual(container.ports?.[0], {
      ...{ name: 'webhook', containerPort: 10_250, protocol: 'TCP' },
    });
    const env = container.env?.find(({ name }) => name === 'WEIR_WEBHOOK');
    assert.equal(env?.value, '[::]:10250');
  });

  it('has a budget for disruptions only where it has more than one replica', async () => {
    assert(kinds(await render()).includes('PodDisruptionBudget'));
    const one = await render(['--set', 'operator.replicas=1']);
    assert(!kinds(one).includes('PodDisruptionBudget'));
  });

  it('spreads over nodes: as a wish by itself, as a demand in values-ha.yaml', async () => {
    const spread = async (flags: readonly string[]): Promise<readonly unknown[]> => {
      const constraints = operatorOf(await render(flags)).pod.spec['topologySpreadConstraints'];
      return (constraints as readonly { whenUnsatisfiable: string; labelSelector: unknown }[]).map(
        ({ whenUnsatisfiable, labelSelector }) => [whenUnsatisfiable, labelSelector !== undefined],
      );
    };

    assert.deepEqual(await spread([]), [['ScheduleAnyway', true]]);
    assert.deepEqual(await spread(HA), [
      ['DoNotSchedule', true],
      ['ScheduleAnyway', true],
    ]);
  });
});

describe('an image of the chart', () => {
  const images = async (flags: readonly string[]): Promise<readonly string[]> => {
    const manifests = await render(flags);
    const { env = [] } = operatorOf(manifests).container;
    const injected = env.filter(({ name }) => /^WEIR_(REDIRECT_)?IMAGE$/.test(name));
    return [
      ...[...podTemplates(manifests).values()].flatMap(
        ({ spec }) => spec.containers[0]?.image ?? [],
      ),
      ...injected.map(({ value = '' }) => value),
    ].toSorted();
  };

  it('has the version of the app by itself', async () => {
    assert.deepEqual(await images([]), [
      'docker.io/library/redis:7.2',
      'weir.dev/operator:0.1.0',
      'weir.dev/operator:0.1.0',
      'weir.dev/redirect-init:0.1.0',
      'weir.dev/sidecar:0.1.0',
    ]);
  });

  it('comes from the one registry that is named for all, the injected ones too', async () => {
    const found = await images(['--set', 'global.imageRegistry=registry.example:5000/mirror']);

    assert.equal(found.length, 5);
    for (const image of found) assert.match(image, /^registry\.example:5000\/mirror\//);
  });

  it('is pinned by a digest where one is given', async () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    const found = await images(['--set', `sidecar.image.digest=${digest},sidecar.image.tag=v9`]);

    assert(found.includes(`weir.dev/sidecar@${digest}`), found.join(' '));
  });
});

describe('the store', () => {
  const urlOf = (manifests: readonly Manifest[]): string => {
    const { data } = find(manifests, 'Secret', 'weir-store-made-by-chart') as Manifest & {
      data: { url: string };
    };
    return Buffer.from(data.url, 'base64').toString();
  };

  it('is a small Redis of the release when nothing else is named, and it never evicts a bucket', async () => {
    const manifests = await render();

    assert.equal(urlOf(manifests), 'redis://weir-redis.weir-system.svc:6379');
    const { data } = find(manifests, 'ConfigMap', 'weir-redis') as Manifest & {
      data: { 'redis.conf': string };
    };
    assert.match(data['redis.conf'], /^maxmemory 128mb$/m);
    assert.match(data['redis.conf'], /^maxmemory-policy noeviction$/m);
    assert.match(data['redis.conf'], /^save ""$/m);
  });

  it('restarts when its configuration changes', async () => {
    const sum = async (flags: readonly string[]): Promise<string | undefined> =>
      podTemplates(await render(flags)).get('weir-redis')?.metadata.annotations?.[
        'checksum/config'
      ];

    assert.notEqual(await sum([]), await sum(['--set', 'redis.embedded.maxMemory=64mb']));
  });

  it('is another one by url or by Secret, and then there is no Redis in the release', async () => {
    const away = ['--set', 'redis.embedded.enabled=false', '--set'];
    const byUrl = await render([...away, 'redis.url=rediss://store.example:6380']);
    const bySecret = await render([...away, 'redis.existingSecret=mine']);

    assert.equal(urlOf(byUrl), 'rediss://store.example:6380');
    assert(!kinds(bySecret).includes('Secret'));
    for (const one of [byUrl, bySecret]) assert(!podTemplates(one).has('weir-redis'));
  });
});

describe('what other software is needed for', () => {
  const wanted = ['--set', 'certificates.mode=cert-manager'];

  it('is left out where that is missing, and there where it is', async () => {
    const without = kinds(await render(MONITORED));
    const having = kinds(await render([...MONITORED, ...API_VERSIONS]));
    const unasked = kinds(await render(API_VERSIONS));

    const monitors = ['PodMonitor', 'PrometheusRule', 'ServiceMonitor'];
    assert.deepEqual(
      having.filter((kind) => monitors.includes(kind)),
      monitors,
    );
    assert.deepEqual(
      [...without, ...unasked].filter((kind) => monitors.includes(kind)),
      [],
    );
  });

  it('is asked for by kinds of cert-manager only in its mode', async () => {
    const issued = await render([...wanted, ...API_VERSIONS]);
    const own = await render([
      ...[...wanted, ...API_VERSIONS],
      ...['--set', 'certificates.certManager.issuerRef.name=corp'],
    ]);

    const kindsOf = (all: readonly Manifest[]): readonly string[] =>
      kinds(all).filter((kind) => ['Certificate', 'Issuer'].includes(kind));
    assert.deepEqual(kindsOf(issued).toSorted(), [
      'Certificate',
      'Certificate',
      'Issuer',
      'Issuer',
    ]);
    assert.deepEqual(kindsOf(own), ['Certificate']);
    assert.equal(
      find(issued, 'MutatingWebhookConfiguration').metadata.annotations?.[
        'cert-manager.io/inject-ca-from'
      ],
      'weir-system/weir-tls',
    );
  });

  it('scrapes the sidecar’s port by the name that injection gives it', async () => {
    const { spec } = find(
      await render([...MONITORED, ...API_VERSIONS]),
      'PodMonitor',
    ) as Manifest & {
      spec: { podMetricsEndpoints: readonly { port: string }[] };
    };

    assert.equal(spec.podMetricsEndpoints[0]?.port, inPod.metricsPort);
  });
});

describe('a template', () => {
  it('looks nothing up in the cluster and makes nothing up', async () => {
    const folder = path.join(CHART, 'templates');
    const names = await readdir(folder, { recursive: true });
    for (const name of names.filter((one) => /\.(yaml|tpl|txt)$/.test(one))) {
      const text = await readFile(path.join(folder, name), 'utf8');
      assert.doesNotMatch(text, /\b(lookup|genCA|genSignedCert|rand[A-Z]\w+|now|uuidv4)\b\s/, name);
    }
  });
});

describe('the notes of a release', () => {
  const notes = async (flags: readonly string[]): Promise<string> => {
    const args = ['install', 'weir', CHART, '--dry-run=client', ...flags];
    const { code, stdout, stderr } = await runHelm(args);
    assert.equal(code, 0, stderr);
    return stdout.slice(stdout.indexOf('NOTES:'));
  };
  const HERE = ['--namespace', 'weir-system'];

  it('warn that the embedded Redis is for trying out', async () => {
    assert.match(await notes(HERE), /WARNING: the store is the small Redis of this release/);
  });

  it('warn when there is no store, one replica, or the namespace is default', async () => {
    const text = await notes(['--set', 'redis.embedded.enabled=false,operator.replicas=1']);

    assert.match(text, /WARNING: there is no store/);
    assert.match(text, /WARNING: one replica/);
    assert.match(text, /WARNING: this is the namespace `default`/);
  });

  it('hold no secret', async () => {
    const password = 'hunter2';
    const url = `redis.embedded.enabled=false,redis.url=redis://:${password}@store`;

    assert.doesNotMatch(await notes([...HERE, '--set', url]), new RegExp(password));
  });
});

describe('a value that could be read as something else', () => {
  it('is written as it was meant: numbers of a values file, and names that look like numbers', async () => {
    const manifests = await render([
      ...['--set-json', 'sidecar.resources.limits.memory=268435456'],
      ...['--set-string', 'watchNamespaces={789},nameOverride=1e5,fullnameOverride=weir'],
      ...['--set-string', 'webhookConfiguration.name=null,serviceAccount.name=no'],
    ]);
    const environment = operatorEnvironment(manifests);
    const names = manifests.map(({ metadata }) => metadata);

    assert.equal(environment['WEIR_SIDECAR_MEMORY_LIMIT'], '268435456');
    assert(names.some(({ namespace }) => namespace === '789'));
    find(manifests, 'MutatingWebhookConfiguration', 'null');
    find(manifests, 'ServiceAccount', 'no');
    for (const { labels } of names) {
      assert.notEqual(typeof labels?.['app.kubernetes.io/name'], 'number');
    }
  });

  it('cannot end the line it stands in', async () => {
    const registry = 'global.imageRegistry="evil/x:1\\n          stdin: true # "';

    await assert.rejects(render(['--set-json', registry]), /imageRegistry/);
  });
});

describe('certificates by cert-manager', () => {
  const asked = ['--api-versions', 'cert-manager.io/v1', '--set', 'certificates.mode=cert-manager'];

  it('hold every name that sidecars ask by, and addresses apart', async () => {
    const manifests = await render([
      ...asked,
      ...[
        '--set',
        'operator.streamUrl=https://weir.example:8443,certificates.names={10.0.0.1,b.example}',
      ],
    ]);

    const { spec } = find(manifests, 'Certificate', 'weir-tls') as Manifest & {
      spec: { dnsNames: readonly string[]; ipAddresses: readonly string[] };
    };
    assert.deepEqual(spec.dnsNames.slice(3), ['b.example', 'weir.example']);
    assert.deepEqual(spec.ipAddresses, ['10.0.0.1']);
  });
});

describe('helm test', () => {
  it('asks in a namespace that is served, in the way that is answered', async () => {
    const variables = async (set: string): Promise<Readonly<Record<string, string>>> => {
      const pod = find(await render(['--set', set]), 'Pod', 'weir-test') as Manifest & {
        spec: { containers: [{ env: readonly { name: string; value: string }[] }] };
      };
      return Object.fromEntries(pod.spec.containers[0].env.map(({ name, value }) => [name, value]));
    };

    const watched = await variables('watchNamespaces={shop,other}');
    const onlyRequired = await variables('webhookConfiguration.entries.enabled=false');

    assert.deepEqual([watched['TEST_NAMESPACE'], watched['INJECT']], ['shop', 'enabled']);
    assert.deepEqual(
      [onlyRequired['TEST_NAMESPACE'], onlyRequired['INJECT']],
      ['default', 'required'],
    );
  });
});

describe('a replica on the network of its node', () => {
  it('goes before another comes, which has no port there', async () => {
    const [own, pods] = await Promise.all(
      [['--set', 'operator.hostNetwork=true'], []].map(async (flags) => {
        const { spec } = find(await render(flags), 'Deployment', 'weir-operator') as Manifest & {
          spec: { strategy: { rollingUpdate: object } };
        };
        return spec.strategy.rollingUpdate;
      }),
    );

    assert.deepEqual(own, { maxUnavailable: 1, maxSurge: 0 });
    assert.deepEqual(pods, { maxUnavailable: 0, maxSurge: 1 });
  });
});
