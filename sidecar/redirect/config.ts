// What the tools of the redirect program are given of this process' environment.
import process from 'node:process';

/** Debian's own folders: an image without a shell may set no PATH, and root's one holds iptables. */
const FOLDERS = '/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin';

/** PATH, the lock file if one is named, and a language whose words can be read in a report. */
export function environmentOfTools(): Readonly<Record<string, string>> {
  const { PATH = '', XTABLES_LOCKFILE } = process.env;
  return {
    PATH: PATH === '' ? FOLDERS : `${PATH}:${FOLDERS}`,
    LC_ALL: 'C',
    ...(XTABLES_LOCKFILE === undefined ? {} : { XTABLES_LOCKFILE }),
  };
}
