import type { Setting } from '../../contract/setting.ts';
import { operatorSettings } from '../../operator/operator-settings.ts';
import { settings } from '../../sidecar/run-settings.ts';
import { environmentName } from '../../contract/setting.ts';
import { GENERATED_NOTE, markdownTable } from './table.ts';

export function writeConfiguration(): string {
  return `${GENERATED_NOTE}

# Configuration of \`weir run\`

A flag beats the environment, the environment beats the default. Lists are given by repeating a flag or separated by
commas. A \`WEIR_*\` variable that is not in this table ends the start with exit code 2, because a misspelt one would
otherwise be a default in silence. \`weir run --print-config\` prints what is in effect and starts nothing.

${tableOf(settings)}

Durations are a whole number and \`ms\`, \`s\`, \`m\` or \`h\`.

## Policy files

A folder gives its \`*.yaml\`, \`*.yml\` and \`*.json\`, those of folders below too; names that begin with a dot are left out.
Each real folder is visited once, at most 16 deep; at most 1000 files are read. Files are read again when they change: at
once in the folders that are named and those of named files, within two seconds elsewhere.

A mistake lifts no limit. A file that is not in order, or is named and gone, keeps its last good version. While a folder
is gone, cannot be read or holds no policy file, or a file that never was in order is there, policies that are in no file
any more stay in force too; each case is one \`policy-invalid\` in the log. Removing one of several files lifts its
policies. To lift every limit, write \`mode: Disabled\`.

## Standard output, standard error, exit codes

When the sidecar serves it prints one line on standard output,
\`{"event":"ready","listen":"127.0.0.1:8080","admin":"127.0.0.1:15090"}\`, with port 0 resolved. Its log is JSON on
standard error. It exits 0 after SIGTERM or SIGINT, 1 when it cannot start, 2 when flags or variables are wrong. A second
signal ends it at once.

## Processes

\`--workers N\` runs N processes behind one listener; \`--supervise true\` does so for one. The parent accepts connections
and hands them over, so a crash of a worker refuses none: new ones wait until the next worker is up. Limits stay exact:
the embedded store and the levels of \`scope: Pod\` live in the parent. A policy's reload, its metrics and its drain reach
every worker. A worker that restarts while a policy file is not in order takes over what was in force. A connection waits
for a worker no longer than \`--header-timeout\`.
`;
}

/** The same for the operator. */
export function writeOperatorConfiguration(): string {
  return `${GENERATED_NOTE}

# Configuration of \`weir operator\`

A flag beats the environment, the environment beats the default; a \`WEIR_*\` variable that is not in this table ends the
start with exit code 2. \`weir operator --print-config\` prints what is in effect and starts nothing. The chart's values
become these variables.

${tableOf(operatorSettings)}

When it serves it prints one line on standard output, \`{"event":"ready","webhook":…,"stream":…,"admin":…}\`; its log is
JSON on standard error. It exits 0 after SIGTERM or SIGINT: not ready at once, sidecars sent to another replica one after
the other, then the Lease is given away. It exits 1 when it lost the Lease (the kubelet starts it anew), 2 when flags or
variables are wrong.

## The Secret of the store

\`--store-secret\` names a Secret in the operator's namespace. Keys: \`url\` (\`redis://\`, \`rediss://\`,
\`redis+sentinel://\`, \`redis+cluster://\`), or \`host\` with \`port\`, \`username\`, \`password\` and \`tls\`; and
\`ca.crt\`, \`tls.crt\`, \`tls.key\`, \`partitions\`. A change reaches every sidecar without a restart; a Secret that is not
in order is told in the status of policies, and the last good settings stay. What it holds travels to sidecars over their
streams and is in no log, Event or status. Without a store the failure modes decide, and every policy says so.
`;
}

function tableOf(all: readonly Setting<unknown>[]): string {
  const rows = all.map(({ name, placeholder, isList, written, summary, isSecret }) => [
    `\`--${name} ${placeholder}${isList ? '…' : ''}\``,
    `\`${environmentName(name)}\``,
    written === undefined ? '' : `\`${written}\``,
    `${summary}${isSecret ? ' (shown redacted)' : ''}`,
  ]);
  return markdownTable(['flag', 'variable', 'default', 'meaning'], rows);
}
