import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import process from 'node:process';
import { describe, it } from 'node:test';
import type { Command } from 'commander';
import { buildProgram } from './program.ts';

const MAIN = path.join(import.meta.dirname, 'main.ts');

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function weir(...args: readonly string[]): Ran {
  const ran = spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
  return { code: ran.status, out: ran.stdout, err: ran.stderr };
}

function helpAt(width: number, command: Command): readonly string[] {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => width });
  command.outputHelp();
  return text.trimEnd().split('\n');
}

describe('weir help', () => {
  it('says what --help says, of all commands and of one', () => {
    assert.deepEqual(weir('help'), weir('--help'));
    assert.deepEqual(weir('help', 'drain'), weir('drain', '--help'));
    assert.equal(weir('help', 'drain').code, 0);
  });

  it('ends with 2 for a command that is not there', () => {
    const { code, out } = weir('help', 'nope');

    assert.equal(code, 2);
    assert.equal(out, '');
  });
});

describe('the help of a command', () => {
  it('fits into 80 columns, but for a word that is longer', () => {
    for (const command of buildProgram().commands) {
      const lines = helpAt(80, command).filter((line) => line.trim().includes(' '));
      const long = lines.filter((line) => line.length > 80);
      assert.deepEqual(long, [], command.name());
    }
  });

  it('is wrapped to the width of the terminal, but for its examples', () => {
    for (const command of buildProgram().commands) {
      const lines = helpAt(64, command);
      const prose = lines.slice(lines.indexOf('Options:'), lines.indexOf('Examples:'));
      const unindented = prose.filter((line) => /^\S/.test(line));
      assert.ok(
        unindented.every((line) => line.length <= 64),
        unindented.join('\n'),
      );
    }
  });

  it('says which options are required', () => {
    const { out } = weir('inject', '--help');

    assert.equal(out.match(/\(required\)/g)?.length, 5);
  });
});

describe('a command line that is wrong', () => {
  it('is refused by the name of the program, with 2', () => {
    const cases = [['nope'], ['check'], ['run', '--nope'], ['check', 'x', '--output', 'nope']];
    for (const args of cases) {
      const { code, out, err } = weir(...args);
      assert.equal(code, 2);
      assert.equal(out, '');
      assert.match(err, /^weir: /);
    }
  });

  it('is told every required option that is missing', () => {
    const all = weir('inject');
    const some = weir('inject', '-f', 'x', '--image', 'weir:1');

    assert.equal(all.code, 2);
    assert.equal(
      all.err,
      'weir: --filename, --operator, --operator-ca, --image, --server-version: got nothing; expected <FILE|DIR|->, <URL>, <FILE>, <IMAGE>, <1.N> (CONFIG_INVALID)\n',
    );
    assert.match(some.err, /^weir: --operator, --operator-ca, --server-version: got nothing;/);
  });
});
