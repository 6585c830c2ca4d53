import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planCalls, planChecks, planRemoval, readNatTable, whyNotInForce } from './nat-table.ts';

const PAIRS = [
  { from: 8080, to: 15_100 },
  { from: 15_300, to: 8080 },
];
const DEFAULTS = '-P PREROUTING ACCEPT\n-P OUTPUT ACCEPT\n';
const JUMP = '-A PREROUTING -p tcp -j WEIR_REDIRECT\n';
const RULES =
  '-A WEIR_REDIRECT -p tcp -m tcp --dport 8080 -j REDIRECT --to-ports 15100\n' +
  '-A WEIR_REDIRECT -p tcp -m tcp --dport 15300 -j REDIRECT --to-ports 8080\n';
const IN_ORDER = `${DEFAULTS}-N WEIR_REDIRECT\n${JUMP}${RULES}`;
const OTHERS = '-A PREROUTING -j THEIRS\n';

function plan(listing: string): readonly string[] {
  return planCalls(PAIRS, readNatTable(listing)).map((call) => call.join(' '));
}

const FILL = [
  '-A WEIR_REDIRECT -p tcp --dport 8080 -j REDIRECT --to-ports 15100',
  '-A WEIR_REDIRECT -p tcp --dport 15300 -j REDIRECT --to-ports 8080',
];
const ENTER = '-I PREROUTING 1 -p tcp -j WEIR_REDIRECT';
const LEAVE = '-D PREROUTING -p tcp -j WEIR_REDIRECT';

describe('the calls that write redirect rules', () => {
  it('make the chain, fill it, and enter it last', () => {
    assert.deepEqual(plan(DEFAULTS), ['-N WEIR_REDIRECT', ...FILL, ENTER]);
  });

  it('are none when everything is in order, whatever others wrote behind', () => {
    assert.deepEqual(plan(IN_ORDER), []);
    assert.deepEqual(plan(`${IN_ORDER}${OTHERS}`), []);
    assert.deepEqual(plan(IN_ORDER.replaceAll(' -m tcp', '')), []);
  });

  it('fill the chain anew when its rules differ in number, order or port', () => {
    const lines = RULES.trim().split('\n');
    for (const rules of [
      lines.slice(1),
      lines.toReversed(),
      [...lines, ...lines.slice(0, 1)],
      [],
    ]) {
      const listing = `${DEFAULTS}-N WEIR_REDIRECT\n${JUMP}${rules.join('\n')}\n`;
      assert.deepEqual(plan(listing), ['-F WEIR_REDIRECT', ...FILL], listing);
    }
    assert.deepEqual(plan(IN_ORDER.replace('15100', '15101')), ['-F WEIR_REDIRECT', ...FILL]);
  });

  it('enter the chain first and once', () => {
    const behind = `${DEFAULTS}-N WEIR_REDIRECT\n${OTHERS}${JUMP}${RULES}`;
    const twice = `${DEFAULTS}-N WEIR_REDIRECT\n${JUMP}${JUMP}${RULES}`;

    assert.deepEqual(plan(behind), ['-F WEIR_REDIRECT', ...FILL, LEAVE, ENTER]);
    assert.deepEqual(plan(twice), ['-F WEIR_REDIRECT', ...FILL, LEAVE, LEAVE, ENTER]);
  });

  it('never touch another chain than PREROUTING and their own', () => {
    const chains = [...plan(DEFAULTS), ...plan(`${IN_ORDER}${JUMP}`)].map(
      (call) => call.split(' ')[1],
    );

    assert.deepEqual([...new Set(chains)].toSorted(), ['PREROUTING', 'WEIR_REDIRECT']);
  });
});

describe('the proof of redirect rules', () => {
  it('asks for the way into the chain and for each rule', () => {
    assert.deepEqual(
      planChecks(PAIRS).map((call) => call.join(' ')),
      ['-C PREROUTING -p tcp -j WEIR_REDIRECT', ...FILL.map((rule) => rule.replace('-A', '-C'))],
    );
  });

  it('reads the whole table, and says what is wrong with it', () => {
    const why = (listing: string): string | undefined =>
      whyNotInForce(PAIRS, readNatTable(listing));

    assert.equal(why(IN_ORDER), undefined);
    assert.match(why(DEFAULTS) ?? '', /first rule of PREROUTING is not/);
    assert.match(why(`${DEFAULTS}-N WEIR_REDIRECT\n${JUMP}`) ?? '', /holds nothing/);
    assert.match(why(IN_ORDER.replace('--dport 8080', '--dport 8081')) ?? '', /--dport 8081/);
  });
});

describe('the calls that take redirect rules away', () => {
  it('are none where there is no chain of ours', () => {
    assert.deepEqual(planRemoval(readNatTable(`${DEFAULTS}${OTHERS}`)), []);
  });

  it('leave the chain before they delete it', () => {
    assert.deepEqual(
      planRemoval(readNatTable(IN_ORDER)).map((call) => call.join(' ')),
      [LEAVE, '-F WEIR_REDIRECT', '-X WEIR_REDIRECT'],
    );
  });
});
