import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WeirError } from './errors.ts';
import { parseText, type Setting } from './setting.ts';
import { readSettings, refuseUnknownVariables, settingsOf } from './settings-reading.ts';

const anything = parseText(/^/, 'anything');
const base = { placeholder: 'X', summary: 's', written: undefined, parse: anything } as const;

function settings(): readonly Setting<unknown>[] {
  return settingsOf({
    shortName: { ...base, isList: false, isSecret: false },
    deadline: { ...base, written: '50ms', isList: false, isSecret: false },
    peers: { ...base, isList: true, isSecret: false },
  });
}

function adviceFor(name: string): string | undefined {
  try {
    const others = new Set(['WEIR_STATE_FILE']);
    refuseUnknownVariables(settings(), { [name]: 'x' }, { command: 'weir run', others });
    return undefined;
  } catch (error) {
    assert(error instanceof WeirError);
    return String(error.details['right']);
  }
}

describe('settings', () => {
  it('come from the flag, else the variable, else the default, lists cut at commas', () => {
    const flags = { 'short-name': 'flag', peers: ['a,b', ' c'] };
    const environment = { WEIR_SHORT_NAME: 'variable', WEIR_PEERS: 'x,y' };

    assert.deepEqual(readSettings(settings(), flags, environment), {
      ...{ shortName: 'flag', deadline: '50ms', peers: ['a', 'b', 'c'] },
    });
    assert.deepEqual(readSettings(settings(), {}, environment), {
      ...{ shortName: 'variable', deadline: '50ms', peers: ['x', 'y'] },
    });
    assert.deepEqual(readSettings(settings(), {}, {}), {
      ...{ shortName: undefined, deadline: '50ms', peers: [] },
    });
  });

  it('that cannot be read say where they came from, and do not show a secret', () => {
    const parse = parseText(/^[0-9]+$/, 'a number');
    const table = (isSecret: boolean): readonly Setting<unknown>[] =>
      settingsOf({ token: { ...base, parse, isList: false, isSecret } });
    const refused = (where: string, given: string): object => ({
      code: 'CONFIG_INVALID',
      details: { where, given, right: 'a number' },
    });

    assert.throws(
      () => readSettings(table(false), { token: 'abc' }, {}),
      refused('--token', 'abc'),
    );
    assert.throws(
      () => readSettings(table(true), {}, { WEIR_TOKEN: 'abc' }),
      refused('WEIR_TOKEN', '(not shown)'),
    );
  });

  it('do not pass a bug of a parser off as a fault of what was given', () => {
    const parse = (): never => {
      throw new TypeError('a bug');
    };
    const table = settingsOf({ token: { ...base, parse, isList: false, isSecret: false } });

    assert.throws(() => readSettings(table, { token: 'abc' }, {}), TypeError);
  });
});

describe('a variable that looks like ours', () => {
  it('is let be where it is a setting, or belongs to somebody else', () => {
    const names = [
      ...['WEIR_DEADLINE', 'WEIR_STATE_FILE', 'WEIR_TEST_LOG', 'WEIR_BENCH_RUNS', 'PATH'],
      ...['WEIR_REDIS_SERVICE_HOST', 'WEIR_REDIS_PORT_6379_TCP_ADDR', 'WEIR_PORT'],
    ];

    assert.deepEqual(
      names.map(adviceFor),
      names.map(() => undefined),
    );
  });

  it('is refused with the name that was meant, up to two letters away', () => {
    const meant = (name: string): string | undefined =>
      /did you mean (\w+)\?/.exec(adviceFor(name) ?? assert.fail(name))?.[1];

    assert.deepEqual(['WEIR_DEADLIEN', 'WEIR_DADLNE', 'WEIR_DEADLINES', 'WEIR_DEAD'].map(meant), [
      'WEIR_DEADLINE',
      'WEIR_DEADLINE',
      'WEIR_DEADLINE',
      'WEIR_DEADLINE',
    ]);
    assert.deepEqual(['WEIR_DADLN', 'WEIR_XXADLXNE'].map(meant), [undefined, undefined]);
  });
});
