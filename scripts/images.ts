// `npm run images`: builds the three images and says how large they are. See docs/images.md.
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { buildImages, targets, type BuiltImages } from './images/build-images.ts';
import { engineChoices, type EngineChoice } from './images/docker.ts';

/** What a node may pull for a sidecar: all layers, compressed, base included. */
const SIDECAR_BUDGET_BYTES = 80_000_000;
const USAGE_ERROR = 2;

const HELP = `Usage: npm run images -- [options]

Builds the images sidecar, operator and redirect-init and writes each as an archive that docker load reads.

  --out DIR        where to write the archives (default images-out)
  --local-base     make both bases on this machine from Debian packages instead of pulling them
  --engine ENGINE  auto, docker (the one that answers) or own (a private one, as root; default auto)
  --output FORM    text or json (default text)
  --help           this

Ends with 1 when an image cannot be built or the sidecar's is larger than ${megabytes(SIDECAR_BUDGET_BYTES)}.
`;

interface Options {
  readonly out: string;
  readonly isLocalBase: boolean;
  readonly engine: EngineChoice;
  readonly output: 'text' | 'json';
}

const options = readOptions(process.argv.slice(2));
if (options === 'help') process.stdout.write(HELP);
else if (typeof options === 'string') {
  process.stderr.write(`images: ${options}\n\n${HELP}`);
  process.exitCode = USAGE_ERROR;
} else process.exitCode = await build(options);

async function build({ output, ...options }: Options): Promise<number> {
  try {
    const built = await buildImages({ ...options, say });
    process.stdout.write(
      output === 'json' ? `${JSON.stringify(built, undefined, 2)}\n` : table(built),
    );
    const { compressedBytes } = built.images.sidecar;
    if (compressedBytes <= SIDECAR_BUDGET_BYTES) return 0;
    say(
      `the sidecar's image has ${megabytes(compressedBytes)}, more than ${megabytes(SIDECAR_BUDGET_BYTES)}`,
    );
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
  }
  return 1;
}

function readOptions(args: readonly string[]): Options | string {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        out: { type: 'string', default: 'images-out' },
        'local-base': { type: 'boolean', default: false },
        engine: { type: 'string', default: 'auto' },
        output: { type: 'string', default: 'text' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) return 'help';
    const engine = engineChoices.find((one) => one === values.engine);
    if (engine === undefined) return `--engine is one of ${engineChoices.join(', ')}`;
    const { output } = values;
    if (output !== 'text' && output !== 'json') return '--output is text or json';
    return { out: path.resolve(values.out), isLocalBase: values['local-base'], engine, output };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function table({ images }: BuiltImages): string {
  const rows = targets.map((target) => {
    const { tag, compressedBytes, extraCompressedBytes, archive } = images[target];
    const extra = target === 'sidecar' ? '' : megabytes(extraCompressedBytes);
    return [tag, megabytes(compressedBytes), extra, archive];
  });
  const all = [['image', 'compressed', 'beyond the sidecar', 'archive'], ...rows];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...all.map((row) => (row[column] ?? '').length)),
  );
  const lines = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\nThe sidecar's budget is ${megabytes(SIDECAR_BUDGET_BYTES)}.\n`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function say(sentence: string): void {
  process.stderr.write(`images: ${sentence}\n`);
}
