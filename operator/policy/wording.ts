// Words that several messages are made of. A message names a few of a kind and counts the others: somebody reads it
// in a terminal, and the API server bounds it.

/** Things of one kind that a message names. */
const NAMED_MAX = 3;
/** Characters of a condition's message: the API server takes 32 768, a reader far fewer. */
export const MESSAGE_MAX = 1_024;

/** `a, b, c and 12 more`. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMED_MAX).join(', ');
  const rest = names.length - NAMED_MAX;
  return rest > 0 ? `${shown} and ${String(rest)} more` : shown;
}

/** `1 pod`, `2 pods`. */
export function counted(count: number, noun: string): string {
  return `${String(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Cuts a message that is longer than `max` at a character, and shows that it did. */
export function bounded(message: string, max: number = MESSAGE_MAX): string {
  if (message.length <= max) return message;
  const cut = message.slice(0, max - 1);
  // Half of a surrogate pair is no text.
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}
