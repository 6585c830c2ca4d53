import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writeBillOfMaterials } from './bill-of-materials.ts';
import type { Component } from './component.ts';

function component(name: string, licence: string): Component {
  const licenceFile = `/usr/share/doc/${name}/copyright`;
  return { kind: 'library', name, version: '1', purl: `pkg:npm/${name}@1`, licence, licenceFile };
}

const WEIR = component('weir', 'Apache-2.0');

interface Written {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly components: readonly { readonly name: string; readonly licenses: readonly unknown[] }[];
}

function write(components: readonly Component[]): Written {
  return JSON.parse(writeBillOfMaterials(WEIR, components)) as Written;
}

describe('the list of contents', () => {
  it('is CycloneDX and names every component', () => {
    const { bomFormat, specVersion, components } = write([
      component('a', 'MIT'),
      component('b', 'MIT'),
    ]);

    assert.equal(`${bomFormat} ${specVersion}`, 'CycloneDX 1.6');
    assert.deepEqual(
      components.map(({ name }) => name),
      ['a', 'b'],
    );
  });

  it('gives licences as identifiers, as expressions, or in the words of the package', () => {
    const { components } = write([
      component('a', 'MIT'),
      component('b', '(MIT OR Apache-2.0)'),
      component('c', 'GPL-2+, as it says'),
    ]);

    assert.deepEqual(
      components.map(({ licenses }) => licenses),
      [
        [{ license: { id: 'MIT' } }],
        [{ expression: '(MIT OR Apache-2.0)' }],
        [{ license: { name: 'GPL-2+, as it says' } }],
      ],
    );
  });

  it('is the same text for the same contents, and another for others', () => {
    const once = writeBillOfMaterials(WEIR, [component('a', 'MIT')]);

    assert.equal(writeBillOfMaterials(WEIR, [component('a', 'MIT')]), once);
    assert.notEqual(writeBillOfMaterials(WEIR, [component('b', 'MIT')]), once);
  });
});
