import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { compilePolicy } from '../../crds/compile.ts';
import { conflictsOf } from '../../crds/conflicts.ts';
import { describePolicy } from '../../crds/describe.ts';
import { parsePolicyFile } from '../../crds/policy-file.ts';

const FOLDER = new URL('../../examples/', import.meta.url);
const files = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'));

describe('the examples', () => {
  it('are the ones that the documentation names', () => {
    for (const file of [
      'cost-by-header.yaml',
      'free-and-premium.yaml',
      'jwt-claims.yaml',
      'login-protection.yaml',
      'per-ip.yaml',
      'shadow-rollout.yaml',
      'shortest.yaml',
    ]) {
      assert(files.includes(file), file);
    }
  });

  for (const file of files) {
    it(`compile, say what they are for and are named as their file: ${file}`, () => {
      const text = readFileSync(new URL(file, FOLDER), 'utf8');
      const parsed = parsePolicyFile(text, file);

      assert(parsed.kind === 'policies', JSON.stringify(parsed));
      assert(text.startsWith('# '));
      for (const { policy } of parsed.documents) {
        const compiled = compilePolicy(policy, { uid: file, generation: 1, replicas: 1 });

        assert.equal(`${policy.metadata.name}.yaml`, file);
        assert(compiled.kind === 'compiled', JSON.stringify(compiled));
        assert.deepEqual(conflictsOf([compiled.policy]), []);
        assert(describePolicy(policy).length > 100);
      }
    });
  }

  it('give premium clients ten times the hour of free ones, and free ones a burst of ten', () => {
    const file = 'free-and-premium.yaml';
    const parsed = parsePolicyFile(readFileSync(new URL(file, FOLDER), 'utf8'), file);

    assert(parsed.kind === 'policies');
    const tiers = parsed.documents[0]?.policy.spec.rules[0]?.tiers ?? [];
    const capacities = tiers.map(({ name, buckets }) => [
      name,
      ...buckets.map(({ capacity }) => capacity),
    ]);
    assert.deepEqual(capacities, [
      ['premium', 1000],
      ['free', 100, 10],
    ]);
  });
});
