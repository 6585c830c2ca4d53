// Modules that the bundle loads when something of theirs is used, not when they are named. An import reads every export:
// of `node:http` also its WebSocket client, and with it all of `fetch`, 16 MB of resident memory in a process that asks
// for neither. Libraries name `tls` for connections that most sidecars never open; few policies have an expression.
import type { OnResolveResult, Plugin } from 'esbuild';

const BUILTINS = ['child_process', 'cluster', 'crypto', 'http', 'tls', 'worker_threads'];
const PACKAGES = ['re2js', '@marcbachmann/cel-js'];

export function lateModules(): Plugin {
  const builtins = new RegExp(`^(node:)?(${BUILTINS.join('|')})$`);
  const packages = new RegExp(`^(${PACKAGES.join('|')})$`);
  return {
    name: 'late-modules',
    setup(builder) {
      builder.onResolve({ filter: builtins }, ({ path: name, kind }) =>
        kind === 'dynamic-import' ? undefined : late(name.replace(/^(node:)?/, 'node:')),
      );
      builder.onResolve({ filter: packages }, async ({ path: name, kind, resolveDir }) => {
        if (kind !== 'import-statement') return undefined;
        return late(name, (await builder.resolve(name, { kind: 'require-call', resolveDir })).path);
      });
      builder.onLoad({ filter: /.*/, namespace: 'late' }, async (one) => ({
        contents: await contentsOf(one.path, one.pluginData as string | undefined),
        resolveDir: import.meta.dirname,
      }));
    },
  };
}

/** `file` is where a package's module stands; Node's own have none. */
function late(name: string, file?: string): OnResolveResult {
  return { path: name, namespace: 'late', pluginData: file };
}

/** CommonJS with the exports of the module, each of which asks for it. */
async function contentsOf(name: string, file: string | undefined): Promise<string> {
  const names = Object.keys((await import(name)) as object).filter((one) => one !== 'default');
  const module =
    file === undefined
      ? `process.getBuiltinModule(${JSON.stringify(name)})`
      : `require(${JSON.stringify(file)})`;
  return `for (const name of ${JSON.stringify(names)}) {
  Object.defineProperty(exports, name, { enumerable: true, get: () => ${module}[name] });
}`;
}
