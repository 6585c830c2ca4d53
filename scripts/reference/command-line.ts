import type { Command } from 'commander';
import { buildProgram } from '../../cli/program.ts';
import { GENERATED_NOTE } from './table.ts';

export function writeCommandLine(): string {
  const program = buildProgram();
  const pages = program.commands.map(
    (command) => `## \`weir ${command.name()}\`\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`,
  );
  return `${GENERATED_NOTE}

# The command line

Exit codes: 0 done, 1 the thing checked is not in order, 2 the command line or the environment is wrong. Colour only on a
terminal; \`NO_COLOR\` is respected.

${pages.join('\n')}`;
}

/** As wide as the page, whatever terminal this runs in; what is printed after the options belongs to it. */
function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({ writeOut: (part) => (text += part), getOutHelpWidth: () => 100 });
  command.outputHelp();
  return text.trim();
}
