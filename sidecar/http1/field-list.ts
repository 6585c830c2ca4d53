// Comma-separated lists of tokens (RFC 9110 §5.6.1), as Connection, TE and Upgrade use them.
import { isTokenChar } from './characters.ts';

/**
 * The elements of a comma-separated list, empty ones left out, whitespace around them removed, lower case.
 * Bounded by the length of the head.
 */
export function listElements(value: string): string[] {
  const elements: string[] = [];
  for (const part of value.split(',')) {
    const element = part.trim();
    if (element !== '') elements.push(element.toLowerCase());
  }
  return elements;
}

export function isToken(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) if (!isTokenChar(text.charCodeAt(i))) return false;
  return text.length > 0;
}
