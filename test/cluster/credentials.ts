// Who is who in a control plane of our own: one authority signs the servers and everybody who may ask them.
// x509 wants a Reflect with metadata before it is loaded.
import 'reflect-metadata';
import { ExtendedKeyUsage, ExtendedKeyUsageExtension, PemConverter } from '@peculiar/x509';
import { SubjectAlternativeNameExtension } from '@peculiar/x509';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { stringify } from 'yaml';
import { makeAuthority, pem, sign, type Authority } from '../support/certificates.ts';

/** A user as RBAC sees one. */
export interface User {
  readonly name: string;
  readonly groups?: readonly string[];
}

type OwnUser = 'admin' | 'controller-manager';

/** The user to whom everything is allowed, and the one program that is there always. */
const USERS: Readonly<Record<OwnUser, User>> = {
  admin: { name: 'admin', groups: ['system:masters'] },
  'controller-manager': { name: 'system:kube-controller-manager' },
};

export class Credentials {
  readonly folder: string;
  readonly caPem: string;
  readonly #authority: Authority;

  private constructor(folder: string, authority: Authority) {
    this.folder = folder;
    this.caPem = pem(authority.certificate);
    this.#authority = authority;
  }

  /**
   * Writes what the programs read: `ca.*`, `server.*`, `etcd-client.*`, `kubelet-client.*`, `service-account.*`, in
   * PEM. `addresses`: where the API server is reached, beside loopback.
   */
  static async write(folder: string, addresses: readonly string[] = []): Promise<Credentials> {
    const authority = await makeAuthority();
    const credentials = new Credentials(folder, authority);
    const caKey = await crypto.subtle.exportKey('pkcs8', authority.keys.privateKey);
    await credentials.#write('ca.crt', credentials.caPem);
    await credentials.#write('ca.key', PemConverter.encode(caKey, 'PRIVATE KEY'));
    await credentials.writeServer('server', [...new Set(['127.0.0.1', ...addresses])]);
    await credentials.#writeClient('etcd-client', { name: 'kube-apiserver' });
    await credentials.#writeClient('kubelet-client', {
      name: 'kube-apiserver-kubelet-client',
      groups: ['system:masters'],
    });
    await credentials.#writeServiceAccountKeys();
    return credentials;
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  /** Writes a kubeconfig of the user, who proves itself by a certificate. Returns its path. */
  async writeUserConfig(server: string, user: User | OwnUser): Promise<string> {
    const who = typeof user === 'string' ? USERS[user] : user;
    const name = encodeURIComponent(who.name);
    await this.#writeClient(name, who);
    return this.#writeConfig(name, server, {
      'client-certificate': this.file(`${name}.crt`),
      'client-key': this.file(`${name}.key`),
    });
  }

  async writeTokenConfig(name: string, server: string, token: string): Promise<string> {
    return this.#writeConfig(name, server, { token });
  }

  /** Writes `file`.crt and `file`.key of a server at those addresses. */
  async writeServer(file: string, addresses: readonly string[]): Promise<void> {
    const names = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
    const { cert, key } = await sign(this.#authority, 'CN=server', [
      new SubjectAlternativeNameExtension([
        ...addresses.map((value) => ({ type: 'ip' as const, value })),
        ...names.map((value) => ({ type: 'dns' as const, value })),
      ]),
      // etcd is its own client for a moment, when it starts its gateway.
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
    ]);
    await this.#write(`${file}.crt`, cert);
    await this.#write(`${file}.key`, key);
  }

  async #writeClient(file: string, { name, groups = [] }: User): Promise<void> {
    const subject = [...groups.map((group) => `O=${group}`), `CN=${name}`].join(', ');
    const { cert, key } = await sign(this.#authority, subject, [
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth]),
    ]);
    await this.#write(`${file}.crt`, cert);
    await this.#write(`${file}.key`, key);
  }

  async #writeServiceAccountKeys(): Promise<void> {
    const { privateKey, publicKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    await this.#write('service-account.key', privateKey);
    await this.#write('service-account.pub', publicKey);
  }

  async #writeConfig(
    name: string,
    server: string,
    user: Readonly<Record<string, string>>,
  ): Promise<string> {
    const file = `${name}.kubeconfig`;
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [
        { name: 'weir', cluster: { server, 'certificate-authority': this.file('ca.crt') } },
      ],
      users: [{ name, user }],
      contexts: [{ name: 'weir', context: { cluster: 'weir', user: name } }],
      'current-context': 'weir',
    };
    await this.#write(file, stringify(config));
    return this.file(file);
  }

  async #write(file: string, text: string): Promise<void> {
    await writeFile(this.file(file), text, { mode: 0o600 });
  }
}
