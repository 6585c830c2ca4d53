// Rounds kept as text, in the format of the corpus: each client block is a connection (a line of `--` begins the next),
// each application block an answer, `! close` what the application does after it. `@mark@` stands for the mark.
import { escapedBlock, parseCases } from '../conformance/http/case-file.ts';
import type { Answer, Round } from './dialect.ts';

export interface Seed {
  readonly name: string;
  readonly round: Round;
}

export function parseSeeds(text: string): Seed[] {
  return parseCases(text).map(({ name, steps }) => {
    const connections: string[][] = [];
    const answers: Answer[] = [];
    for (const step of steps) {
      if (step.kind === 'client') connections.push([step.bytes]);
      else if (step.kind === 'application') {
        answers.push({ bytes: step.bytes, then: 'keep', isSound: false });
      } else {
        const last = answers.pop();
        if (last !== undefined) answers.push({ ...last, then: 'close' });
      }
    }
    return { name, round: { connections, answers } };
  });
}

/** Pieces are joined: what depends on them is found again by the number of the round. */
export function writtenSeed(name: string, { connections, answers }: Round): string {
  const lines = [`=== ${name}`];
  for (const pieces of connections) lines.push(...escapedBlock('>', pieces.join('')), '--');
  for (const { bytes, then } of answers) {
    lines.push(...escapedBlock('<', bytes), then === 'keep' ? '--' : '! close');
  }
  return `${lines.join('\n')}\n`;
}
