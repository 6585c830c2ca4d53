// The Connection field (RFC 9110 §7.6.1): what the sender wants of this connection, and which other fields end here.
import { CONNECTION } from './field-kind.ts';
import { isToken, listElements } from './field-list.ts';
import type { FieldSection } from './field-section.ts';
import { maxConnectionOptions } from './limits.ts';

/**
 * The options of all Connection lines, lower case, each once. Undefined when one is no token, names a field that frames
 * or routes (dropping it would change what the message means to the next hop), or there are too many.
 */
export function connectionOptions(head: FieldSection): ReadonlySet<string> | undefined {
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

function isFramingName(name: string): boolean {
  return name === 'content-length' || name === 'transfer-encoding' || name === 'host';
}
