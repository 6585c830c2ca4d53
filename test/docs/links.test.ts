import assert from 'node:assert/strict';
import { access, readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';

const root = path.join(import.meta.dirname, '..', '..');

async function pages(): Promise<string[]> {
  const docs = await readdir(path.join(root, 'docs'), { recursive: true });
  const top = await readdir(root);
  return [...top, ...docs.map((name) => path.join('docs', name))].filter((name) =>
    name.endsWith('.md'),
  );
}

describe('a link in README and docs', () => {
  it('leads to a file that is there', async () => {
    const broken: string[] = [];
    for (const page of await pages()) {
      const text = await readFile(path.join(root, page), 'utf8');
      for (const [, target = ''] of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
        if (/^[a-z]+:/.test(target)) continue;
        const file = path.join(root, path.dirname(page), target);
        await access(file).catch(() => broken.push(`${page}: ${target}`));
      }
    }

    assert.deepEqual(broken, []);
  });

  it('names scripts of package.json where it names an npm command', async () => {
    const manifest = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const unknown: string[] = [];
    for (const page of await pages()) {
      const text = await readFile(path.join(root, page), 'utf8');
      for (const [, script = ''] of text.matchAll(/npm run ([a-z0-9:]+)/g)) {
        if (!(script in manifest.scripts)) unknown.push(`${page}: ${script}`);
      }
    }

    assert.deepEqual(unknown, []);
  });
});
