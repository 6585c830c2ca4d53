// Holds what came through the sidecar against what direct access gave.
import assert from 'node:assert/strict';
import { expectedRequest, expectedResponse } from './differences.ts';
import type { Addition, DifferenceName, Expected } from './differences.ts';
import type { Message } from './message.ts';
import { isFinal } from './replay.ts';
import type { Played } from './replay.ts';

/** Throws when anything differs that is not listed. Returns the differences there were. */
export function compare(direct: Played, through: Played): ReadonlySet<DifferenceName> {
  const used = new Set<DifferenceName>();
  assert(
    direct.responses.every((one) => one.isComplete || isTunnel(one)),
    'a record is not whole',
  );
  const old = direct.requests[0]?.startLine.endsWith('HTTP/1.0') === true;
  const responses = old ? direct.responses.filter(isFinal) : direct.responses;
  if (responses.length < direct.responses.length) used.add('interim-to-old-client');
  assert.equal(through.requests.length, direct.requests.length, 'requests the application saw');
  assert.equal(through.responses.length, responses.length, 'responses the client saw');
  for (const [i, request] of direct.requests.entries()) {
    compareOne(expectedRequest(request), through.requests[i], used);
  }
  for (const [i, response] of responses.entries()) {
    compareOne(expectedResponse(response), through.responses[i], used);
  }
  return used;
}

function compareOne(
  expected: Expected,
  seen: Message | undefined,
  used: Set<DifferenceName>,
): void {
  const { startLine, lines, additions, body } = expected;
  assert(seen !== undefined);
  assert.equal(seen.prefix, '');
  assert.equal(seen.startLine, startLine);
  assert.deepEqual(seen.lines.slice(0, lines.length), lines);
  assertAdded(seen.lines.slice(lines.length), additions, used);
  assert.equal(seen.body, body);
  for (const name of expected.used) used.add(name);
}

function assertAdded(
  added: readonly string[],
  additions: readonly Addition[],
  used: Set<DifferenceName>,
): void {
  const left = [...added];
  for (const { name, line, optional } of additions) {
    const next = left[0];
    if (next !== undefined && line.test(next)) {
      left.shift();
      used.add(name);
    } else {
      assert(optional, `no ${String(line)} in ${added.join(' | ')}`);
    }
  }
  assert.deepEqual(left, [], 'fields that nobody expects');
}

function isTunnel({ startLine }: Message): boolean {
  return startLine.startsWith('HTTP/1.1 101 ');
}
