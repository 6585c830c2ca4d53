// The budget of docs/performance.md: every figure that a goal was set for, from the newest result of each command.
import { CONTROL_GOALS } from './control/control-result.ts';
import type { ControlResult } from './control/control-result.ts';
import type { Figure } from './figures.ts';
import { figuresOf } from './figures.ts';
import type { PeersResult } from './peers-result.ts';
import { scaleFiguresOf } from './scale/scale-figures.ts';
import type { ScaleResult } from './scale/scale-result.ts';

/** The newest result of each command; undefined while it was never run. */
export interface Results {
  readonly peers: PeersResult | undefined;
  readonly scale: ScaleResult | undefined;
  readonly control: ControlResult | undefined;
}

export interface BudgetLine {
  readonly figure: Figure;
  /** The command that measured it, without `npm run`. */
  readonly by: string;
}

export function budgetOf({ peers, scale, control }: Results): readonly BudgetLine[] {
  const by = (command: string, figures: readonly Figure[]): BudgetLine[] =>
    figures.map((figure) => ({ figure, by: command }));
  return [
    ...by('bench:peers', peers === undefined ? [] : figuresOf(peers)),
    ...by('bench:scale', scale === undefined ? [] : scaleFiguresOf(scale)),
    ...by('bench:control', control === undefined ? [] : controlFiguresOf(control)),
  ];
}

/** Of the control plane only what the budget names; its own section tells the rest. */
function controlFiguresOf({ figures }: ControlResult): Figure[] {
  return CONTROL_GOALS.map((pattern) => {
    const found = figures.find(({ what }) => pattern.test(what));
    return {
      what: found?.what ?? `control plane: ${pattern.source}`,
      value: found?.value ?? NaN,
      unit: found?.unit === 'MB' ? 'MB' : 'ms',
      goal: found?.goal ?? NaN,
    };
  });
}
