// What the help of a command says after its options.
import type { Command } from 'commander';

interface Epilogue {
  /** Paragraphs; wrapped to the width that commander wraps options to. */
  readonly prose?: readonly string[];
  /** As they are typed, line by line: a wrapped command would be another one. */
  readonly examples: readonly string[];
}

/** Where commander finds no terminal. */
const DEFAULT_WIDTH = 80;

export function addEpilogue(command: Command, { prose = [], examples }: Epilogue): Command {
  return command.addHelpText('after', ({ error }) => {
    const output = command.configureOutput();
    const width = error ? output.getErrHelpWidth?.() : output.getOutHelpWidth?.();
    const helper = command.createHelp();
    const wrapped = prose.map((text) => helper.boxWrap(text, width ?? DEFAULT_WIDTH));
    const list = ['Examples:', ...examples.map((line) => `  ${line}`)];
    return ['', ...wrapped, ...(prose.length === 0 ? [] : ['']), ...list].join('\n');
  });
}
