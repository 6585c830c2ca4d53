// Starts the operator as it starts in a pod: with its account where the kubelet mounts it, in a mount namespace of its
// own, rather than with a kubeconfig, whose library no operator in a pod loads. Becomes the operator: same process id.
//   node bench/control-pod.ts <account folder> <API server's host> <port> <node's arguments...> operator <flags...>
import process from 'node:process';

/** Everything under /run is hidden from the operator; nothing is written for anybody else. */
const SCRIPT = `
mount -t tmpfs weir /run
target=/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$target"
cp "$1"/* "$target"
shift
exec "$@"
`;

const [folder = '', host = '', port = '', ...rest] = process.argv.slice(2);
const at = rest.indexOf('--kubeconfig');
const command = [process.execPath, ...(at < 0 ? rest : rest.toSpliced(at, 2))];
const execve = process.execve?.bind(process);
if (execve === undefined) throw new Error('this system cannot replace a process by another one');
execve('/usr/bin/unshare', ['unshare', '-m', 'sh', '-ec', SCRIPT, 'pod', folder, ...command], {
  PATH: process.env['PATH'] ?? '',
  KUBERNETES_SERVICE_HOST: host,
  KUBERNETES_SERVICE_PORT: port,
});
