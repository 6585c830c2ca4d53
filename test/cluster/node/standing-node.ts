// A process that holds a node until it is ended, for node.test.ts, which ends it in the worst way. Its argument is the
// archive of the pause image.
import process from 'node:process';
import { openNode } from './node.ts';

const [, , image = ''] = process.argv;
await using node = await openNode({ images: [image], say: () => undefined });
process.stdout.write(`${node.controlPlane.kubeconfig}\n`);
await new Promise(() => undefined);
