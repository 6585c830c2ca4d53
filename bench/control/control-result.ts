// What bench:control found, as it is kept in bench/results.
import type { MachineFacts } from '../machine.ts';

export interface ControlFigure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** At most this; absent = told beside the others, without a goal. */
  readonly goal?: number;
}

export interface ControlResult {
  readonly at: string;
  readonly machine: MachineFacts;
  /** Share of both cores that others used just before, 0..1. */
  readonly busyShare: number;
  /** Whether nobody else was at work just before. */
  readonly isQuiet: boolean;
  readonly sidecars: number;
  readonly policies: number;
  readonly figures: readonly ControlFigure[];
}

/** The figures that stand in the budget of docs/performance.md, by what they are called. */
export const CONTROL_GOALS: readonly RegExp[] = [
  /^an edit is in force on all \d+ sidecars, the last one after$/,
  /^resident memory of the operator at rest, the most$/,
];

export function isMet({ value, goal }: ControlFigure): boolean {
  return goal === undefined || value <= goal;
}

/** How much of its goal a figure uses up, such as `0.23 ×`; '' where that says nothing. */
export function ofGoal({ value, goal }: ControlFigure): string {
  return goal === undefined || goal === 0 ? '' : `${(value / goal).toFixed(2)} ×`;
}

/** The value and its unit, with as many digits as are worth reading. */
export function shown(value: number, unit: string): string {
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : 2;
  return `${value.toFixed(digits)} ${unit}`.trim();
}

/** The smallest value that `share` of them do not exceed; NaN of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}
