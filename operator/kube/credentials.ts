// Who we are to the API server. In a pod: the mounted account, read here, because client-node costs more than a second
// of start and 58 MB of memory. Everywhere else: a kubeconfig, read by client-node, whose exec plugins, client
// certificates and token files are used as they are. Files are read again, so that a rotated token or CA is taken.
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { WeirError } from '../../contract/errors.ts';
import type { Clock } from '../clock.ts';
import { readClusterEnvironment } from './config.ts';

/** The kubelet refreshes a token at 80 % of its life of at least 10 minutes: a minute is early enough. */
const READ_AGAIN_AFTER_MS = 60_000;

const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsIdentity;
}

/** PEM texts; what is absent takes the platform's default. */
export interface TlsIdentity {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface ClusterAccess {
  readonly server: URL;
  readonly proxy?: string;
  /** The namespace that the account or the context is in. */
  readonly namespace: string;
  credentials(): Promise<Credentials>;
  /** The server did not accept them: read them anew next time. */
  forget(): void;
}

export interface AccessOptions {
  /** A kubeconfig; absent: `KUBECONFIG`, then the pod's account, then `~/.kube/config`. */
  readonly kubeConfig?: string;
  readonly clock: Clock;
}

/** Throws WeirError KUBE_CONFIG_INVALID. */
export async function openClusterAccess({
  kubeConfig,
  clock,
}: AccessOptions): Promise<ClusterAccess> {
  const { server, hasKubeConfig } = readClusterEnvironment();
  if (kubeConfig === undefined && !hasKubeConfig && server !== undefined) {
    return openAccount({ server, folder: ACCOUNT_FOLDER, clock });
  }
  return openKubeConfig(kubeConfig);
}

export interface AccountOptions {
  readonly server: URL;
  /** Holds `token`, `ca.crt` and `namespace`. */
  readonly folder: string;
  readonly clock: Clock;
}

/** The account of the pod that we run in. */
export async function openAccount(options: AccountOptions): Promise<ClusterAccess> {
  const { server, folder, clock } = options;
  const read = (file: string): Promise<string> => readFile(path.join(folder, file), 'utf8');
  const namespace = await read('namespace').catch((cause: unknown) => {
    throw new WeirError('KUBE_CONFIG_INVALID', { file: path.join(folder, 'namespace') }, { cause });
  });
  let known: { readonly credentials: Credentials; readonly readAtMs: number } | undefined;
  return {
    server,
    namespace: namespace.trim(),
    async credentials() {
      if (known !== undefined && clock.nowMs() - known.readAtMs < READ_AGAIN_AFTER_MS) {
        return known.credentials;
      }
      const [token, ca] = await Promise.all([read('token'), read('ca.crt')]);
      const credentials = { headers: { authorization: `Bearer ${token.trim()}` }, tls: { ca } };
      known = { credentials, readAtMs: clock.nowMs() };
      return credentials;
    },
    forget() {
      known = undefined;
    },
  };
}

/** The context that client-node makes up, and its server. */
const MADE_UP = 'loaded-context';
const NOWHERE = 'http://localhost:8080';

/** `file` absent: what client-node finds by default. */
async function openKubeConfig(file: string | undefined): Promise<ClusterAccess> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const load = (): void => {
    if (file === undefined) config.loadFromDefault();
    else config.loadFromFile(file);
  };
  const cluster = ((): ReturnType<typeof config.getCurrentCluster> => {
    try {
      load();
    } catch (cause) {
      throw new WeirError('KUBE_CONFIG_INVALID', { file }, { cause });
    }
    return config.getCurrentCluster();
  })();
  // What client-node takes where it finds nothing at all: a server that nobody named.
  if (file === undefined && config.currentContext === MADE_UP && cluster?.server === NOWHERE) {
    throw new WeirError('KUBE_CONFIG_INVALID', {
      problem: 'this is no pod, and there is neither KUBECONFIG nor ~/.kube/config',
      right: 'run it in a pod, or name a kubeconfig by KUBECONFIG',
    });
  }
  if (cluster === null) {
    throw new WeirError('KUBE_CONFIG_INVALID', {
      file,
      problem: `the current context ${JSON.stringify(config.currentContext)} names no cluster`,
    });
  }
  // client-node refuses plain http unless verification is off, which means nothing there.
  if (cluster.server.startsWith('http:')) {
    const plain = { ...cluster, skipTLSVerify: true };
    config.clusters = config.clusters.map((other) => (other === cluster ? plain : other));
  }
  return {
    server: serverOf(cluster.server, file),
    ...(cluster.proxyUrl !== undefined && { proxy: cluster.proxyUrl }),
    namespace: config.getContextObject(config.currentContext)?.namespace ?? 'default',
    credentials: () => readKubeConfig(config),
    forget: () => undefined,
  };
}

function serverOf(text: string, file: string | undefined): URL {
  const server = URL.parse(text);
  if (server === null || !/^https?:$/.test(server.protocol)) {
    throw new WeirError('KUBE_CONFIG_INVALID', {
      file,
      problem: `server ${text} is no http(s) URL`,
    });
  }
  return server;
}

/** What client-node fills in; its agent is left alone: it would outlive a rotated CA. */
interface FilledOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly ca?: Buffer;
  readonly cert?: Buffer | string;
  readonly key?: Buffer | string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
  readonly auth?: string;
}

async function readKubeConfig(config: {
  applyToHTTPSOptions(options: object): Promise<void>;
}): Promise<Credentials> {
  const filled: FilledOptions = { headers: {} };
  await config.applyToHTTPSOptions(filled);
  const { headers = {}, ca, cert, key, servername, rejectUnauthorized, auth } = filled;
  const basic = auth === undefined ? {} : { authorization: `Basic ${btoa(auth)}` };
  return {
    headers: { ...headers, ...basic },
    tls: {
      ...(ca !== undefined && { ca: String(ca) }),
      ...(cert !== undefined && { cert: String(cert) }),
      ...(key !== undefined && { key: String(key) }),
      ...(servername !== undefined && { servername }),
      ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    },
  };
}
