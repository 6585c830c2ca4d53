// A certificate authority of the test's own, a server certificate for 127.0.0.1 and a client certificate, made by
// the openssl on the PATH: Node can read certificates but not make them.
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Certificates extends AsyncDisposable {
  readonly folder: string;
  /** PEM texts. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(path.join(tmpdir(), 'weir-tls-'));
  const file = (name: string): string => path.join(folder, name);
  const subject = [
    '-nodes',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-days',
    '2',
  ];
  openssl([
    'req',
    '-x509',
    ...subject,
    '-subj',
    '/CN=ca',
    '-keyout',
    file('ca.key'),
    '-out',
    file('ca.crt'),
  ]);
  await writeFile(file('server.ext'), 'subjectAltName=IP:127.0.0.1,DNS:redis.test\n');
  await writeFile(file('client.ext'), 'extendedKeyUsage=clientAuth\n');
  for (const name of ['server', 'client']) {
    const request = ['-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
    openssl([
      'req',
      '-new',
      ...request,
      '-subj',
      `/CN=${name}`,
      '-keyout',
      file(`${name}.key`),
      '-out',
      file(`${name}.csr`),
    ]);
    const signer = [
      '-CA',
      file('ca.crt'),
      '-CAkey',
      file('ca.key'),
      '-CAcreateserial',
      '-days',
      '2',
    ];
    openssl([
      'x509',
      '-req',
      '-in',
      file(`${name}.csr`),
      ...signer,
      '-extfile',
      file(`${name}.ext`),
      '-out',
      file(`${name}.crt`),
    ]);
  }
  const [ca, cert, key] = await Promise.all(
    ['ca.crt', 'client.crt', 'client.key'].map((name) => readFile(file(name), 'utf8')),
  );
  return {
    folder,
    ca: ca ?? '',
    cert: cert ?? '',
    key: key ?? '',
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

function openssl(args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('openssl', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl ${args.join(' ')}: ${error?.message ?? stderr}`);
}
