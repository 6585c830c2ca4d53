// Hot path for streamed bodies. Writes the taken part of a body to the other side in one write.
import type { Socket } from 'node:net';
import type { MessageBody } from '../http1/message-body.ts';

/** Returns false when the other side must drain before more is read. */
export function relayTaken(to: Socket, bytes: Buffer, body: MessageBody): boolean {
  if (body.passesWhole) {
    return to.write(body.end === bytes.length ? bytes : bytes.subarray(0, body.end));
  }
  const kept = keptBytes(bytes, body);
  return kept.length === 0 ? !to.writableNeedDrain : to.write(kept);
}

// Copied into one piece: a read full of one-byte chunks with extensions would otherwise be thousands of writes.
function keptBytes(bytes: Buffer, body: MessageBody): Buffer {
  const kept = Buffer.allocUnsafe(body.end + body.trailers.length);
  let length = 0;
  let from = 0;
  for (const [index, at] of body.dropped.entries()) {
    if (index % 2 === 0) length += bytes.copy(kept, length, from, at);
    else from = at;
  }
  length += bytes.copy(kept, length, from, body.end);
  length += kept.write(body.trailers, length, 'latin1');
  return kept.subarray(0, length);
}
