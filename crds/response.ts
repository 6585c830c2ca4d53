// What a refused request gets.
import * as z from 'zod';
import { tokenField } from './match.ts';
import { choice, list, ruled, text } from './field.ts';

const RESPONSE_HEADERS_MAX = 16;
/** Bytes of UTF-8: a body goes out with every refusal, and travels in every bundle. */
const BODY_MAX = 4096;
export const DEFAULT_STATUS = 429;
export const DEFAULT_QUOTA_HEADERS = 'RateLimit';

export interface RefusalResponse {
  status: number;
  quotaHeaders: 'RateLimit' | 'XRateLimit' | 'None';
  headers?: ResponseHeader[];
  body?: { contentType: string; content: string };
}

interface ResponseHeader {
  name: string;
  value: string;
}

/** Fields the proxy writes itself (RFC 9110 §7.6.1, §8.6, §10.2.3): a second one would change the framing or lie. */
const OWN_FIELDS = [
  'connection',
  'date',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'retry-after',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

const headerSchema: z.ZodType<ResponseHeader> = ruled(
  z
    .object({
      name: tokenField('Name of the header.', 'X-Reason'),
      value: text('Value of the header.', {
        max: 1024,
        pattern: /^[\x20-\x7e\t]*$/,
        advice: 'printable ASCII without line ends',
      }),
    })
    .meta({ description: 'A header of the refusal.' }),
  [
    {
      rule: `!(self.name.lowerAscii() in [${OWN_FIELDS.map((name) => `'${name}'`).join(', ')}]) && !self.name.lowerAscii().startsWith('content-')`,
      message: 'is written by the proxy itself',
      advice: 'remove Retry-After, Date, Content-* and hop-by-hop headers',
      field: 'name',
      holds: ({ name }) => !isOwnField(name.toLowerCase()),
    },
  ],
);

function isOwnField(name: string): boolean {
  return OWN_FIELDS.includes(name) || name.startsWith('content-');
}

const contentSchema: z.ZodType<string> = ruled(
  text('The text of the body.', { max: BODY_MAX, advice: 'at most 4096 bytes' }),
  [
    {
      // maxLength counts code points.
      rule: `size(bytes(self)) <= ${String(BODY_MAX)}`,
      message: `must be at most ${String(BODY_MAX)} bytes of UTF-8`,
      advice: 'shorten it',
      holds: (value) => Buffer.byteLength(value) <= BODY_MAX,
    },
  ],
);

export const responseSchema: z.ZodType<RefusalResponse> = z
  .object({
    status: z
      .int()
      .min(400)
      .max(599)
      .default(DEFAULT_STATUS)
      .meta({ description: 'Status of a refusal.', format: 'int32' }),
    quotaHeaders: choice(
      'Quota fields: RateLimit and RateLimit-Policy, the X-RateLimit-* trio, or none.',
      ['RateLimit', 'XRateLimit', 'None'],
    ).default(DEFAULT_QUOTA_HEADERS),
    headers: list('Further headers of a refusal.', headerSchema, {
      min: 0,
      max: RESPONSE_HEADERS_MAX,
      kind: 'map',
    }).exactOptional(),
    body: z
      .object({
        contentType: text('Media type of the body.', {
          max: 128,
          pattern:
            /^[A-Za-z0-9!#$&^_.+-]+\/[A-Za-z0-9!#$&^_.+-]+(; ?[A-Za-z0-9_-]+=[A-Za-z0-9_.-]+)*$/,
          advice: 'a media type such as application/json',
        }),
        content: contentSchema,
      })
      .meta({ description: 'Body of a refusal; absent means application/problem+json.' })
      .exactOptional(),
  })
  .meta({ description: 'What a refused request gets.' });
