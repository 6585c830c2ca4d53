// A Service, as far as it decides whether requests pass through the sidecar.
import type { KubeObject } from '../kube/object.ts';

export interface ServiceObject extends KubeObject {
  readonly spec?: {
    readonly type?: string;
    readonly clusterIP?: string;
    readonly selector?: Readonly<Record<string, string>>;
    readonly ports?: readonly {
      readonly name?: string;
      readonly port: number;
      readonly targetPort?: number | string;
      readonly protocol?: string;
    }[];
  };
}

export interface ServicePort {
  /** Absent = the only port, unnamed. */
  readonly name?: string;
  readonly port: number;
  /** As written: absent = the number in `port`. */
  readonly targetPort?: number | string;
}

export interface ServiceRecord {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly isHeadless: boolean;
  /** TCP ports only. */
  readonly ports: readonly ServicePort[];
}

/** Undefined for a Service that selects no pods. */
export function readService(object: ServiceObject): ServiceRecord | undefined {
  const { namespace = '', name = '', uid = '' } = object.metadata;
  const { type, clusterIP, selector = {}, ports = [] } = object.spec ?? {};
  if (type === 'ExternalName' || Object.keys(selector).length === 0) return undefined;
  return {
    key: `${namespace}/${name}`,
    namespace,
    name,
    uid,
    selector,
    isHeadless: clusterIP === 'None',
    ports: ports.filter(({ protocol = 'TCP' }) => protocol === 'TCP').map(portOf),
  };
}

function portOf({ name, port, targetPort }: ServicePort): ServicePort {
  return {
    ...(name === undefined || name === '' ? {} : { name }),
    port,
    ...(targetPort === undefined ? {} : { targetPort: numeric(targetPort) }),
  };
}

// `targetPort: "8080"` is a name of digits only, which no container port can have, and the API server refuses it;
// a number that some client wrote as text is one all the same.
function numeric(targetPort: number | string): number | string {
  return typeof targetPort === 'string' && /^[0-9]+$/.test(targetPort)
    ? Number(targetPort)
    : targetPort;
}
