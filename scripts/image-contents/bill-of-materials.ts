// The list of what is in an image, in CycloneDX's JSON. Same contents, same bytes: no clock, no random number.
import * as Enums from '@cyclonedx/cyclonedx-library/Enums';
import * as Models from '@cyclonedx/cyclonedx-library/Models';
import * as Serialize from '@cyclonedx/cyclonedx-library/Serialize';
import * as Spec from '@cyclonedx/cyclonedx-library/Spec';
import { isSupportedSpdxId } from '@cyclonedx/cyclonedx-library/SPDX';
import { serialNumberOf, type Component } from './component.ts';

const KINDS = {
  application: Enums.ComponentType.Application,
  library: Enums.ComponentType.Library,
  platform: Enums.ComponentType.Platform,
} as const;

/** The property that says where the text of a component's licence stands. */
const LICENCE_FILE = 'weir:licence-file';

export function writeBillOfMaterials(subject: Component, components: readonly Component[]): string {
  const bom = new Models.Bom({ serialNumber: serialNumberOf([subject, ...components]) });
  bom.metadata.component = modelOf(subject);
  for (const component of components) {
    const model = modelOf(component);
    bom.components.add(model);
    bom.metadata.component.dependencies.add(model.bomRef);
  }
  const normalizers = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  return `${new Serialize.JsonSerializer(normalizers).serialize(bom, { sortLists: true, space: 1 })}\n`;
}

function modelOf(component: Component): Models.Component {
  const { kind, name, version, purl, cpe, licence, licenceFile } = component;
  return new Models.Component(KINDS[kind], name, {
    ...{ version, purl, bomRef: purl },
    ...(cpe === undefined ? {} : { cpe }),
    licenses: new Models.LicenseRepository([licenceOf(licence)]),
    properties: new Models.PropertyRepository([new Models.Property(LICENCE_FILE, licenceFile)]),
  });
}

function licenceOf(licence: string): Models.License {
  if (isSupportedSpdxId(licence)) return new Models.SpdxLicense(licence);
  if (/^\(?[\w.+-]+( (OR|AND|WITH) [\w.+-]+)+\)?$/.test(licence)) {
    return new Models.LicenseExpression(licence);
  }
  return new Models.NamedLicense(licence);
}
