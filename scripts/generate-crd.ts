// Writes the custom resource definition from the schema; with --check it only says whether the file is up to date.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { CRD_NAME, renderCrd } from '../crds/crd.ts';

const FOLDER = new URL('../crds/generated/', import.meta.url);
const FILE = new URL(`${CRD_NAME}.yaml`, FOLDER);

const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const text = renderCrd();

if (values.check) {
  const current = await readFile(FILE, 'utf8').catch(() => '');
  if (current !== text) {
    process.stderr.write('The definition is stale: run `node scripts/generate-crd.ts`.\n');
    process.exitCode = 1;
  }
} else {
  await mkdir(FOLDER, { recursive: true });
  await writeFile(FILE, text);
}
