// Writes what is made from the code: the custom resource definition and the reference pages. With --check it only says
// which of them are stale, and exits 1.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { format } from 'prettier';
import { readArguments } from './arguments.ts';
import { CRD_NAME, renderCrd } from '../crds/crd.ts';
import { writeCrdTemplate } from './chart/crd-template.ts';
import { writeDashboard } from './chart/dashboard.ts';
import { writeValues, writeValuesSchema } from './chart/values-file.ts';
import { writeChartPage } from './reference/chart.ts';
import { writeCommandLine } from './reference/command-line.ts';
import { writeAccess } from './reference/access.ts';
import { writeConfiguration, writeOperatorConfiguration } from './reference/configuration.ts';
import { writeMetrics } from './reference/metrics.ts';
import { writeOperatorMetrics } from './reference/operator-metrics.ts';
import { writePolicyReference } from './reference/policy.ts';

const root = path.join(import.meta.dirname, '..');

const generated: Readonly<Record<string, () => string | Promise<string>>> = {
  [`crds/generated/${CRD_NAME}.yaml`]: renderCrd,
  'docs/policy.md': () => page(writePolicyReference()),
  'docs/configuration.md': () => page(writeConfiguration()),
  'docs/command-line.md': () => page(writeCommandLine()),
  'docs/metrics.md': () => page(writeMetrics()),
  'docs/operator-configuration.md': () => page(writeOperatorConfiguration()),
  'docs/operator-metrics.md': async () => page(await writeOperatorMetrics()),
  'docs/rbac.md': () => page(writeAccess()),
  'charts/weir/templates/crds.yaml': writeCrdTemplate,
  'charts/weir/values.yaml': writeValues,
  'charts/weir/values.schema.json': writeValuesSchema,
  'charts/weir/files/dashboard.json': writeDashboard,
  'charts/weir/README.md': () => page(writeChartPage()),
};

const { values } = readArguments({
  command: 'npm run generate',
  about:
    'Writes what is made from the code: the CRD, the reference pages, the values of the chart.',
  lines: ['--check   only say what is stale; exit code 1 when anything is'],
  config: { options: { check: { type: 'boolean', default: false } } },
});
for (const [name, render] of Object.entries(generated)) {
  const file = path.join(root, name);
  const text = await render();
  if (!values.check) {
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  } else if ((await readFile(file, 'utf8').catch(() => '')) !== text) {
    process.stderr.write(`${name} is stale: run \`npm run generate\`\n`);
    process.exitCode = 1;
  }
}

/** As `npm run format` would leave it. */
function page(text: string): Promise<string> {
  return format(text, { parser: 'markdown', printWidth: 100, singleQuote: true });
}
