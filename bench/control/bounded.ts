/** Does the task for each item, `most` at a time, and resolves with the results in the items' order. */
export async function forEachBounded<Item, Result>(
  items: readonly Item[],
  most: number,
  task: (item: Item, index: number) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const queue = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of queue) results[index] = await task(item, index);
  };
  await Promise.all(Array.from({ length: most }, work));
  return results;
}
