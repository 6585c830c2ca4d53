// Runs last: what the operator was allowed to do, against what it did in all the suites before. Its rights are those of
// the installed roles, its calls those of the API server's audit log.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { listAt, textAt, valueAt } from '../cluster/json-value.ts';
import { E2e, SYSTEM } from './support/e2e.ts';

const ACCOUNT = 'weir-operator';
const USER = `system:serviceaccount:${SYSTEM}:${ACCOUNT}`;

interface Call {
  readonly verb: string;
  readonly group: string;
  /** With its subresource: `pods/eviction`. */
  readonly resource: string;
  readonly name: string;
  readonly code: number;
  /** By RBAC; a namespace that ends forbids new objects as well. */
  readonly isForbidden: boolean;
}

interface Right {
  readonly role: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Undefined: any. */
  readonly name: string | undefined;
}

describe('the rights of the operator', () => {
  let e2e: E2e;
  before(async () => {
    e2e = await E2e.open();
    await e2e.installed();
  });
  after(async () => {
    await e2e[Symbol.asyncDispose]();
  });

  it('are what it used, no less and no more', async (t) => {
    const { auditLog } = e2e.config;
    if (auditLog === undefined) {
      t.skip('the audit log of this cluster is not ours to read');
      return;
    }
    const calls = await callsOf(auditLog);
    const rights = await rightsOf(e2e);
    assert(calls.length > 100, `${calls.length} calls were seen`);
    assert(rights.length > 20, `${rights.length} rights were found`);

    const unused = rights.filter((right) => !calls.some((call) => covers(right, call)));
    // While the release is uninstalled the roles go before the last replica does.
    const refused = calls.filter(
      (call) => call.isForbidden && !rights.some((right) => covers(right, call)),
    );

    assert.deepEqual(unused.map(worded), [], 'rights that nothing needed');
    assert.deepEqual(refused, [], 'calls that were not allowed');
  });
});

async function callsOf(auditLog: string): Promise<readonly Call[]> {
  const lines = (await readFile(auditLog, 'utf8')).split('\n');
  return lines
    .filter((line) => line.includes(USER))
    .map((line): unknown => JSON.parse(line))
    .filter((event) => textAt(event, 'user', 'username') === USER)
    .map((event) => {
      const sub = textAt(event, 'objectRef', 'subresource');
      return {
        verb: textAt(event, 'verb'),
        group: textAt(event, 'objectRef', 'apiGroup'),
        resource: textAt(event, 'objectRef', 'resource') + (sub === '' ? '' : `/${sub}`),
        name: textAt(event, 'objectRef', 'name'),
        code: Number(valueAt(event, 'responseStatus', 'code')),
        isForbidden: textAt(event, 'annotations', 'authorization.k8s.io/decision') === 'forbid',
      };
    });
}

/** One a verb, resource and name, of every role that is bound to the account. */
async function rightsOf(e2e: E2e): Promise<readonly Right[]> {
  const bindings = [
    ...(await e2e.list(SYSTEM, 'rolebindings')),
    ...(await e2e.list(SYSTEM, 'clusterrolebindings')),
  ].filter((binding) =>
    listAt(binding, 'subjects').some(
      (one) => textAt(one, 'name') === ACCOUNT && textAt(one, 'namespace') === SYSTEM,
    ),
  );
  const rights: Right[] = [];
  for (const binding of bindings) {
    const role = `${textAt(binding, 'roleRef', 'kind')}/${textAt(binding, 'roleRef', 'name')}`;
    const found = await e2e.get(SYSTEM, role.toLowerCase());
    for (const rule of listAt(found, 'rules')) rights.push(...rightsIn(rule, role));
  }
  return rights;
}

function rightsIn(rule: unknown, role: string): readonly Right[] {
  const all = (field: string): readonly string[] => listAt(rule, field).map(String);
  const names = all('resourceNames');
  return all('apiGroups').flatMap((group) =>
    all('resources').flatMap((resource) =>
      all('verbs').flatMap((verb) =>
        (names.length === 0 ? [undefined] : names).map((name) => ({
          ...{ role, verb, group, resource, name },
        })),
      ),
    ),
  );
}

/**
 * A list or watch of one object names it in its selector, which the audit log shows as the object's name. A patch that
 * makes its object needs the right to create as well, and is logged as a patch.
 */
function covers(right: Right, call: Call): boolean {
  const isCreation = call.verb === 'patch' && call.code === 201;
  return (
    (right.verb === call.verb || (right.verb === 'create' && isCreation)) &&
    right.group === call.group &&
    right.resource === call.resource &&
    (right.name === undefined || right.name === call.name)
  );
}

function worded({ role, verb, group, resource, name }: Right): string {
  return `${role}: ${verb} ${resource}${group === '' ? '' : `.${group}`}${name === undefined ? '' : ` ${name}`}`;
}
