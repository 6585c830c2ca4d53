// Debian's packages by what dpkg keeps about them (deb-control(5), the copyright format 1.0).

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Names that its dependencies give; of alternatives the first. */
  readonly needs: readonly string[];
  /** The paragraph, as scanners read it. */
  readonly paragraph: string;
}

/** Reads paragraphs of a dpkg status file or of distroless' `status.d`; those not installed are left out. */
export function parsePackages(status: string): readonly DebianPackage[] {
  return status
    .split(/\n\s*\n/)
    .filter((paragraph) => paragraph.trim() !== '')
    .flatMap((paragraph) => {
      const fields = fieldsOf(paragraph);
      const name = fields.get('package');
      const isThere = (fields.get('status') ?? 'install ok installed').endsWith(' installed');
      if (name === undefined || !isThere) return [];
      const needs = `${fields.get('pre-depends') ?? ''},${fields.get('depends') ?? ''}`;
      return [
        {
          name,
          version: fields.get('version') ?? '',
          architecture: fields.get('architecture') ?? 'all',
          needs: needs.split(',').flatMap((one) => /[a-z0-9][a-z0-9+.-]+/.exec(one)?.[0] ?? []),
          paragraph: withoutStatus(paragraph),
        },
      ];
    });
}

function fieldsOf(paragraph: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of paragraph.split('\n')) {
    const [, name, value] = /^([A-Za-z][\w-]*):\s*(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) fields.set(name.toLowerCase(), value.trim());
  }
  return fields;
}

function withoutStatus(paragraph: string): string {
  const lines = paragraph.trim().split('\n');
  const kept = lines.filter(
    (line) => !/^(Status|Conffiles):/.test(line) && !/^ \/\S+ [0-9a-f]{32}/.test(line),
  );
  return `${kept.join('\n')}\n`;
}

/** `name` and what it needs, without what `present` has, in the order in which they are found. */
export function closureOf(
  name: string,
  installed: ReadonlyMap<string, DebianPackage>,
  present: ReadonlySet<string>,
): readonly DebianPackage[] {
  const found = new Map<string, DebianPackage>();
  const open = [name];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    if (present.has(next) || found.has(next)) continue;
    const one = installed.get(next);
    if (one === undefined) {
      if (next === name) throw new Error(`the build base has no package ${name}`);
      // Virtual, or an alternative that something else satisfies.
      continue;
    }
    found.set(next, one);
    open.push(...one.needs);
  }
  return [...found.values()];
}

/** The licences that a copyright file names, shortly; undefined where it is prose only. */
export function licencesOf(copyright: string): string | undefined {
  if (!/^Format(-Specification)?:/im.test(copyright)) return undefined;
  const names = [...copyright.matchAll(/^License:[ \t]*(\S.*)$/gim)].map(([, name = '']) =>
    name.trim(),
  );
  return names.length === 0 ? undefined : [...new Set(names)].sort().join(', ');
}
