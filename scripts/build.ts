// Bundles the command line into dist/weir.mjs: Node refuses to strip types under node_modules, so what is
// installed is one JavaScript file per entry. Lazily imported parts become chunks and stay lazy.
import { readFile, rm, writeFile, chmod } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { build, type Plugin } from 'esbuild';
import { lateModules } from './late-modules.ts';

const root = path.join(import.meta.dirname, '..');
// `--node`: where the Node.js stands that is to run it, for a place without /usr/bin/env.
const { values } = parseArgs({ options: { out: { type: 'string' }, node: { type: 'string' } } });
const out = values.out ?? path.join(root, 'dist');

await rm(out, { recursive: true, force: true });
const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
  version: string;
};
const result = await build({
  entryPoints: { main: path.join(root, 'cli', 'main.ts') },
  outdir: out,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node26',
  minifySyntax: true,
  metafile: true,
  // CommonJS packages ask for `require`; an ES module has none of its own.
  banner: {
    js: "import { createRequire as weirCreateRequire } from 'node:module'; const require = weirCreateRequire(import.meta.url);",
  },
  define: { WEIR_VERSION: JSON.stringify(manifest.version) },
  plugins: [inlineLua(), lateModules()],
  logLevel: 'warning',
});
for (const file of Object.keys(result.metafile.outputs)) await withoutWideText(path.resolve(file));
await writeFile(path.join(out, 'weir.mjs'), await launcher());
await chmod(path.join(out, 'weir.mjs'), 0o755);
// Its own first line makes esbuild mark it as a program, which only the launcher is.
await chmod(path.join(out, 'main.mjs'), 0o644);
const bytes = Object.values(result.metafile.outputs).reduce((sum, one) => sum + one.bytes, 0);
await writeFile(path.join(out, 'meta.json'), JSON.stringify(result.metafile));
process.stdout.write(`weir.mjs and its chunks: ${Math.round(bytes / 1024)} KiB\n`);

/**
 * One character beyond Latin-1 makes V8 keep a source in two bytes a character. esbuild escapes those of the program;
 * what is left stands in comments.
 */
async function withoutWideText(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const narrow = text.replaceAll(
    /[\u{80}-\u{10ffff}]/gu,
    (wide) => `\\u{${(wide.codePointAt(0) ?? 0).toString(16)}}`,
  );
  if (narrow !== text) await writeFile(file, narrow);
}

/** Says in words what an older Node would say as a syntax error; starts with the first line of cli/main.ts. */
async function launcher(): Promise<string> {
  const [first = ''] = (await readFile(path.join(root, 'cli', 'main.ts'), 'utf8')).split('\n', 1);
  return `${values.node === undefined ? first : withInterpreter(first, values.node)}
if (Number.parseInt(process.versions.node, 10) < 26) {
  console.error('weir: needs Node.js >= 26, this is ' + process.versions.node + ' (' + process.execPath + ')');
  process.exitCode = 1;
} else {
  await import('./main.mjs');
}
`;
}

/**
 * The kernel hands an interpreter one argument, and more of them in one piece: the first flag. The image's entry point
 * has them all; what is run in a container beside it is over soon.
 */
function withInterpreter(first: string, node: string): string {
  const [, flag] = /^#!\/usr\/bin\/env -S node (--\S+)/.exec(first) ?? [];
  if (flag === undefined) throw new Error(`cli/main.ts begins without a flag: ${first}`);
  return `#!${node} ${flag}`;
}

/** Puts the Lua script's text where sidecar/store/script-source.ts would read the file. */
function inlineLua(): Plugin {
  return {
    name: 'inline-lua',
    setup(builder) {
      builder.onLoad({ filter: /script-source\.ts$/ }, async (args) => {
        const source = await readFile(args.path, 'utf8');
        const lua = await readFile(path.join(path.dirname(args.path), 'script.lua'), 'utf8');
        const contents = source.replace(
          /readFileSync\(new URL\('\.\/script\.lua', import\.meta\.url\), 'utf8'\)/,
          () => JSON.stringify(lua),
        );
        if (contents === source) throw new Error('script-source.ts no longer reads script.lua');
        return { contents, loader: 'ts' };
      });
    },
  };
}
