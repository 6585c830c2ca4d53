// Hot path. What the fields of a response, an interim response or trailers may be (RFC 9113 §8.1, §8.3.2).
import { CONTENT_LENGTH, HOST } from '../http1/field-kind.ts';
import { parseContentLength } from '../http1/framing.ts';
import type { Field } from './field.ts';
import type { FieldBlock } from './hpack-decoder.ts';

export interface ResponseFacts {
  readonly status: number;
  /** −1 when it does not say. */
  readonly contentLength: number;
}

/** Undefined when it is no response: malformed, too large, or with a status that is none. */
export function readResponse({ fields, isTooLarge }: FieldBlock): ResponseFacts | undefined {
  const status = statusOf(fields[0]);
  if (isTooLarge || status === 0) return undefined;
  const contentLength = lengthOf(fields);
  return contentLength === undefined ? undefined : { status, contentLength };
}

/** −1 when it does not say; undefined when a line may not stand there. */
function lengthOf(fields: readonly Field[]): number | undefined {
  let contentLength = -1;
  for (const field of fields) {
    if (field.isMalformed || (field.isPseudo && field !== fields[0])) return undefined;
    if (field.kind !== CONTENT_LENGTH) continue;
    const length = parseContentLength(field.value);
    if (length < 0 || (contentLength >= 0 && contentLength !== length)) return undefined;
    contentLength = length;
  }
  return contentLength;
}

/** Bytes of body to come; −1 when it does not say. HEAD speaks of the body that GET would have, 304 of the cached one. */
export function bodyDue({ status, contentLength }: ResponseFacts, isHead: boolean): number {
  return isHead || status === 304 || status === 204 ? 0 : contentLength;
}

function statusOf(first: Field | undefined): number {
  return first?.name === ':status' && /^[1-9]\d\d$/.test(first.value) ? Number(first.value) : 0;
}

/** Whether fields may stand behind a body: nothing there may speak of the message before it (RFC 9110 §6.5.1). */
export function areTrailers({ fields, isTooLarge }: FieldBlock): boolean {
  if (isTooLarge) return false;
  return fields.every(
    ({ isMalformed, isPseudo, kind }) =>
      !isMalformed && !isPseudo && kind !== CONTENT_LENGTH && kind !== HOST,
  );
}
