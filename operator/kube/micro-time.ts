/** RFC 3339 with six digits, as the API's MicroTime wants it; a Date writes three and is refused. */
export function microTime(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000Z');
}
