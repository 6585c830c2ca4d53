// Hot path for streamed bodies. Writes the taken part of a body to the other side without copying it.
import type { Socket } from 'node:net';
import type { MessageBody } from '../http1/message-body.ts';

/** Returns false when the other side must drain before more is read. */
export function relayTaken(to: Socket, bytes: Buffer, body: MessageBody): boolean {
  if (body.passesWhole) {
    return to.write(body.end === bytes.length ? bytes : bytes.subarray(0, body.end));
  }
  to.cork();
  let from = 0;
  const dropped = body.dropped;
  for (let i = 0; i + 1 < dropped.length; i += 2) {
    writePart(to, bytes, { from, until: dropped[i] ?? from });
    from = dropped[i + 1] ?? from;
  }
  writePart(to, bytes, { from, until: body.end });
  if (body.trailers !== '') to.write(body.trailers, 'latin1');
  to.uncork();
  return !to.writableNeedDrain;
}

function writePart(to: Socket, bytes: Buffer, part: { from: number; until: number }): void {
  if (part.until > part.from) to.write(bytes.subarray(part.from, part.until));
}
