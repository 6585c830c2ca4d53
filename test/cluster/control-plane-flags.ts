// How the programs of a control plane are started. Everything a cluster has by default is on, RBAC and Pod Security
// included; nothing waits for another replica.
import type { Credentials } from './credentials.ts';

/** Where a control plane stands, and what its API server is reached by. */
export interface ControlPlaneSite {
  /** Where the API server listens: loopback, or an address that pods can reach. */
  readonly address: string;
  /** Whether kubelets report: else nobody is to notice that they do not. */
  readonly hasNodes: boolean;
  /** Of Services, comma-separated with two families. */
  readonly serviceRange: string;
}

export const LOOPBACK: ControlPlaneSite = {
  address: '127.0.0.1',
  hasNodes: false,
  serviceRange: '198.18.0.0/16',
};

export interface ControlPlaneLayout {
  readonly site: ControlPlaneSite;
  readonly credentials: Credentials;
  readonly folder: string;
  readonly ports: {
    readonly etcd: number;
    readonly etcdPeer: number;
    readonly api: number;
    readonly controllers: number;
  };
  readonly controllersKubeconfig: string;
  /** Absent: no audit log. */
  readonly auditLog?: string;
  readonly auditPolicy?: string;
}

const ISSUER = 'https://kubernetes.default.svc.cluster.local';

export function etcdFlags({ credentials, folder, ports }: ControlPlaneLayout): string[] {
  const client = `https://127.0.0.1:${ports.etcd}`;
  const peer = `http://127.0.0.1:${ports.etcdPeer}`;
  return [
    ...['--name', 'weir', '--data-dir', `${folder}/etcd`, '--log-level', 'warn'],
    // The folder goes away with the test: nothing is to survive the machine.
    '--unsafe-no-fsync',
    ...['--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ...['--initial-cluster', `weir=${peer}`],
    ...['--cert-file', credentials.file('server.crt')],
    ...['--key-file', credentials.file('server.key')],
    ...['--trusted-ca-file', credentials.file('ca.crt'), '--client-cert-auth'],
  ];
}

export function apiServerFlags(layout: ControlPlaneLayout): string[] {
  const { credentials, ports, site } = layout;
  return [
    ...['--bind-address', site.address, '--advertise-address', site.address],
    ...['--secure-port', String(ports.api), '--cert-dir', layout.folder],
    ...(site.hasNodes ? kubeletAccess(credentials) : WITHOUT_NODES),
    ...['--etcd-servers', `https://127.0.0.1:${ports.etcd}`],
    ...['--etcd-cafile', credentials.file('ca.crt')],
    ...['--etcd-certfile', credentials.file('etcd-client.crt')],
    ...['--etcd-keyfile', credentials.file('etcd-client.key')],
    ...['--tls-cert-file', credentials.file('server.crt')],
    ...['--tls-private-key-file', credentials.file('server.key')],
    ...['--client-ca-file', credentials.file('ca.crt')],
    ...['--service-account-issuer', ISSUER, '--api-audiences', ISSUER],
    ...['--service-account-signing-key-file', credentials.file('service-account.key')],
    ...['--service-account-key-file', credentials.file('service-account.pub')],
    ...['--service-cluster-ip-range', site.serviceRange],
    ...['--authorization-mode', 'Node,RBAC', '--enable-admission-plugins', 'NodeRestriction'],
    ...['--allow-privileged=true', '--profiling=false'],
    ...auditFlags(layout),
  ];
}

/** A loopback address cannot be an endpoint of the Service `kubernetes`. */
const WITHOUT_NODES = ['--endpoint-reconciler-type', 'none'];

/** For logs, exec and port-forward. */
function kubeletAccess(credentials: Credentials): string[] {
  return [
    ...['--kubelet-client-certificate', credentials.file('kubelet-client.crt')],
    ...['--kubelet-client-key', credentials.file('kubelet-client.key')],
    ...['--kubelet-certificate-authority', credentials.file('ca.crt')],
    ...['--kubelet-preferred-address-types', 'InternalIP'],
  ];
}

function auditFlags({ auditLog, auditPolicy }: ControlPlaneLayout): string[] {
  if (auditLog === undefined || auditPolicy === undefined) return [];
  return ['--audit-policy-file', auditPolicy, '--audit-log-path', auditLog];
}

export function controllerFlags(layout: ControlPlaneLayout): string[] {
  const { credentials, folder, ports, controllersKubeconfig, site } = layout;
  return [
    ...['--kubeconfig', controllersKubeconfig],
    ...['--authentication-kubeconfig', controllersKubeconfig],
    ...['--authorization-kubeconfig', controllersKubeconfig],
    ...['--bind-address', '127.0.0.1', '--secure-port', String(ports.controllers)],
    ...['--cert-dir', `${folder}/controllers`],
    ...['--service-account-private-key-file', credentials.file('service-account.key')],
    ...['--root-ca-file', credentials.file('ca.crt'), '--use-service-account-credentials=true'],
    ...['--cluster-signing-cert-file', credentials.file('ca.crt')],
    ...['--cluster-signing-key-file', credentials.file('ca.key')],
    // With the default of 20 a second the first ServiceAccount takes 5 s instead of one.
    ...['--kube-api-qps', '300', '--kube-api-burst', '600'],
    // Else it makes a folder under /usr/libexec.
    ...['--flex-volume-plugin-dir', `${folder}/volume-plugins`],
    // Nodes that never report would be found dead, with their pods.
    ...(site.hasNodes ? [] : ['--controllers', '*,-node-lifecycle-controller']),
    ...['--leader-elect=false', '--profiling=false'],
  ];
}
