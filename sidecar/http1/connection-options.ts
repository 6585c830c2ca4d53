// The Connection field (RFC 9110 §7.6.1): what the sender wants of this connection, and which other fields end here.
import { CONNECTION } from './field-kind.ts';
import { isToken, listElements } from './field-list.ts';
import type { FieldSection } from './field-section.ts';
import { maxConnectionOptions } from './limits.ts';

const noOptions: ReadonlySet<string> = new Set();

/**
 * The options of all Connection lines, lower case, each once. Undefined when one is no token, names a field that frames
 * or routes (dropping it would change what the message means to the next hop), or there are too many.
 */
export function connectionOptions(head: FieldSection): ReadonlySet<string> | undefined {
  if (saysKeepAliveOnly(head)) return noOptions;
  const options = new Set<string>();
  let line = head.lineOf(CONNECTION, 0);
  while (line < head.count) {
    for (const option of listElements(head.value(line))) {
      if (!isToken(option) || isFramingName(option)) return undefined;
      options.add(option);
      if (options.size > maxConnectionOptions) return undefined;
    }
    line = head.lineOf(CONNECTION, line + 1);
  }
  return options;
}

/** What most messages with a Connection field say, and what HTTP/1.1 means without it. */
function saysKeepAliveOnly(head: FieldSection): boolean {
  const line = head.lineOf(CONNECTION, 0);
  const value = head.value(line);
  const plain = value === 'keep-alive' || value === 'Keep-Alive';
  return plain && head.lineOf(CONNECTION, line + 1) === head.count;
}

function isFramingName(name: string): boolean {
  return name === 'content-length' || name === 'transfer-encoding' || name === 'host';
}
