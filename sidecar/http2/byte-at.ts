// Hot path. Whoever reads has looked at the length before; that the compiler cannot know.

/** One byte; 0 past the end. (`readUInt8` looks at its arguments first, which takes longer than the reading.) */
export function byteAt(from: Buffer, at: number): number {
  return from[at] ?? 0;
}
