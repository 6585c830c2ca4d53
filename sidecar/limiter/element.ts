// Hot path: small enough to be inlined everywhere.

/** `items[i]`, which has to exist: a hole is a bug of ours and ends the request with a RangeError. */
export function elementAt<Item>(items: readonly Item[], i: number): Item {
  const item = items[i];
  if (item === undefined) throw new RangeError(`no element ${i} of ${items.length}`);
  return item;
}
