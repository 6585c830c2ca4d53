// What starting leaves behind: modules are evaluated and the first policies read once, and the garbage of that would stay
// resident for as long as nothing much happens, which is always in most pods.

/**
 * Collects it and gives the memory back: 86 become 75 MB, in 30 to 70 ms during which nothing else runs. Call it before
 * anybody waits. Nothing happens where Node runs without `--expose-gc`.
 */
export function settleHeap(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
