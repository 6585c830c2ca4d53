// The helm commands of the pages on installing, rendered: a value that is misspelt there, or was renamed, fails here.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { runHelm } from './helm.ts';

const root = path.join(import.meta.dirname, '..', '..');
const PAGES: readonly string[] = [
  ...['install', 'upgrade', 'private-registries', 'openshift'].map((page) => `docs/${page}.md`),
  'charts/weir/README.md',
];
/** Flags of the client's only: `template` has no release to look at. */
const OF_A_RELEASE: ReadonlySet<string> = new Set(['--reset-then-reuse-values']);

/** Each `helm install` and `helm upgrade` of a page, in words as a shell would split them. */
async function commandsOf(page: string): Promise<readonly (readonly string[])[]> {
  const text = await readFile(path.join(root, page), 'utf8');
  const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, block = '']) => block);
  return blocks
    .flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
    .map((line) => line.trim().split(/\s+/))
    .filter(([program, verb = '']) => program === 'helm' && ['install', 'upgrade'].includes(verb))
    .map((words) => words.slice(2).map((word) => word.replaceAll("'", '')));
}

describe('a helm command of the docs', () => {
  for (const page of PAGES) {
    it(`of ${page} is one that the chart takes`, async () => {
      const commands = await commandsOf(page);

      assert(commands.length > 0);
      for (const words of commands) {
        const args = words
          .filter((word) => !OF_A_RELEASE.has(word))
          .map((word) => (word.startsWith('charts/') ? path.join(root, word) : word));
        const { code, stderr } = await runHelm(['template', ...args]);
        assert.equal(code, 0, `${words.join(' ')}: ${stderr}`);
      }
    });
  }

  it('takes a null for what OpenShift decides itself', async () => {
    const [words = []] = await commandsOf('docs/openshift.md');
    const args = words.map((word) => (word === 'charts/weir' ? path.join(root, word) : word));
    const { stdout } = await runHelm(['template', ...args, '--show-only', 'templates/redis.yaml']);

    assert.doesNotMatch(stdout, /runAs(User|Group)/);
  });
});
