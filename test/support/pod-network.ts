// A network of a test's own: a pod and a client, each in a network namespace, with one cable between them. The
// namespaces live as long as the process that holds each, and that one ends with the test: nothing is left behind,
// and nothing outside is touched. Only root may make them.
import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

/** Of the networks that RFC 2544 and RFC 4193 keep free; the namespaces have no other way out. */
export const addresses = {
  pod4: '198.18.7.1',
  client4: '198.18.7.2',
  pod6: 'fd00:18:7::1',
  client6: 'fd00:18:7::2',
} as const;

/** Undefined when a network can be made here, else why not. */
export function whyNoNetwork(): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are of Linux';
  if (process.getuid?.() !== 0) return 'only root makes network namespaces';
  for (const program of ['ip', 'nsenter', 'setpriv', 'iptables-nft', 'ip6tables-legacy']) {
    const found = spawnSync(program, ['--version'], { stdio: 'ignore' });
    if (found.error !== undefined) return `${program} is missing (Debian: iproute2, iptables)`;
  }
  const made = spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up'], {
    encoding: 'utf8',
  });
  return made.status === 0 ? undefined : `no network namespace can be made: ${made.stderr}`;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** One network namespace. */
export class Namespace implements AsyncDisposable {
  readonly #holder: ChildProcess;
  readonly #children: ChildProcess[] = [];

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async open(): Promise<Namespace> {
    // Ends when its input does, however this process ends.
    const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo made; exec cat'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(createInterface({ input: holder.stdout }), 'line');
    return new Namespace(holder);
  }

  get pid(): number {
    return this.#holder.pid ?? 0;
  }

  /** Runs a program to its end; its exit code is an answer, not a failure. */
  async run(
    command: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Ended> {
    const options = { env: { ...process.env, ...env }, timeout: 20_000 };
    try {
      const { stdout, stderr } = await promisify(execFile)('nsenter', this.#args(command), options);
      return { code: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout = '', stderr = '' } = error as Partial<Ended> & { code?: unknown };
      return { code: typeof code === 'number' ? code : -1, stdout, stderr };
    }
  }

  /** Starts a program that stays, and waits for its first line. */
  async start(command: readonly string[]): Promise<string> {
    const child = spawn('nsenter', this.#args(command), { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#children.push(child);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return line;
  }

  #args(command: readonly string[]): string[] {
    return [`--net=/proc/${this.pid}/ns/net`, ...command];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of [...this.#children, this.#holder]) {
      const exited = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : 0;
      child.kill('SIGKILL');
      await exited;
    }
  }
}

export interface PodNetwork extends AsyncDisposable {
  readonly pod: Namespace;
  readonly client: Namespace;
}

/** `ipv6` false = a node without IPv6. */
export async function openPodNetwork({
  ipv6 = true,
}: { readonly ipv6?: boolean } = {}): Promise<PodNetwork> {
  await using stack = new AsyncDisposableStack();
  const pod = stack.use(await Namespace.open());
  const client = stack.use(await Namespace.open());
  const cable = ['link', 'add', 'eth0', 'netns', `${pod.pid}`, 'type', 'veth'];
  execFileSync('ip', [...cable, 'peer', 'name', 'eth0', 'netns', `${client.pid}`]);
  await connect(pod, { four: addresses.pod4, ...(ipv6 ? { six: addresses.pod6 } : {}) });
  await connect(client, { four: addresses.client4, ...(ipv6 ? { six: addresses.client6 } : {}) });
  const open = stack.move();
  return { pod, client, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

async function connect(
  namespace: Namespace,
  { four, six }: { readonly four: string; readonly six?: string },
): Promise<void> {
  const steps = [
    ...(six === undefined ? [['sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1']] : []),
    ['ip', 'address', 'add', `${four}/24`, 'dev', 'eth0'],
    // Without `nodad` the address could not be used for a second.
    ...(six === undefined ? [] : [['ip', 'address', 'add', `${six}/64`, 'dev', 'eth0', 'nodad']]),
    ['ip', 'link', 'set', 'lo', 'up'],
    ['ip', 'link', 'set', 'eth0', 'up'],
  ];
  for (const step of steps) {
    const { code, stderr } = await namespace.run(step);
    if (code !== 0) throw new Error(`${step.join(' ')}: ${stderr}`);
  }
}
