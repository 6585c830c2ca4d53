// The RateLimitPolicy resource: the single source from which files are validated and the custom resource definition
// is made. Defaults are in the schema only for scalar fields outside of lists: a default inside a list item makes an
// unchanged `kubectl apply` say "configured".
import * as z from 'zod';
import { clientAddressSchema } from './client-address.ts';
import type { ClientAddress } from './client-address.ts';
import { labelSelectorSchema } from './label-selector.ts';
import type { LabelSelector } from './label-selector.ts';
import { MATCHES_MAX, matchesField } from './match.ts';
import type { Match } from './match.ts';
import { responseSchema } from './response.ts';
import type { RefusalResponse } from './response.ts';
import { rulesSchema } from './rule.ts';
import type { Rule } from './rule.ts';
import { tokenSchema } from './token.ts';
import type { TokenVerification } from './token.ts';
import { choice, integer, list, ruled, text } from './field.ts';
import type { Rule as Relation } from './field.ts';

export const API_GROUP = 'weir.dev';
export const API_VERSION = 'v1alpha1';
export const KIND = 'RateLimitPolicy';
const PORTS_MAX = 16;

export interface RateLimitPolicy {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  spec: PolicySpec;
}

interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

export interface PolicySpec {
  selector: LabelSelector;
  ports?: (string | number)[];
  except?: Match[];
  rules: Rule[];
  mode: 'Enforce' | 'Shadow' | 'Disabled';
  enforcePercent?: number;
  failureMode: 'Open' | 'Closed' | 'Local';
  scope: 'Policy' | 'Workload' | 'Pod';
  clientIP?: ClientAddress;
  jwt?: TokenVerification;
  response?: RefusalResponse;
}

const PORT_NAME = /^[a-z0-9]([a-z0-9]*(-[a-z0-9]+)*)$/;

const PORT_MESSAGE = 'must be 1..65535 or a container port name';

const portSchema: z.ZodType<string | number> = z
  .custom<string | number>(isPort, {
    error: PORT_MESSAGE,
    params: { advice: 'use a number such as 8080 or a name such as http' },
  })
  .meta({
    description: 'A container port: its number, or its name in the pod template.',
    'x-kubernetes-int-or-string': true,
    maxLength: 15,
    'x-kubernetes-validations': [
      {
        rule: `type(self) == int ? self >= 1 && self <= 65535 : string(self).matches('${PORT_NAME.source}') && string(self).matches('[a-z]')`,
        message: PORT_MESSAGE,
      },
    ],
  });

function isPort(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && value >= 1 && value <= 65_535;
  if (typeof value !== 'string') return false;
  return value.length <= 15 && PORT_NAME.test(value) && /[a-z]/.test(value);
}

const RELATIONS: readonly Relation<PolicySpec>[] = [
  {
    rule: 'has(self.jwt) || ((!has(self.except) || self.except.all(m, !has(m.claims))) && self.rules.all(r, (!has(r.key) || r.key.all(k, !has(k.claim))) && (!has(r.match) || r.match.all(m, !has(m.claims))) && (!has(r.except) || r.except.all(m, !has(m.claims))) && (!has(r.tiers) || r.tiers.all(t, (!has(t.match) || t.match.all(m, !has(m.claims)))))))',
    message: 'claims need spec.jwt',
    advice: 'write spec.jwt with issuer and jwks: an unverified token has no claims',
    holds: (spec) => spec.jwt !== undefined || !usesClaims(spec),
  },
  {
    rule: `!has(self.enforcePercent) || self.mode == 'Enforce'`,
    message: 'only with mode: Enforce',
    advice: 'remove enforcePercent, or write mode: Enforce',
    field: 'enforcePercent',
    holds: ({ enforcePercent, mode }) => enforcePercent === undefined || mode === 'Enforce',
  },
];

function usesClaims({ except = [], rules }: PolicySpec): boolean {
  const matches = rules.flatMap((rule) => [
    ...(rule.match ?? []),
    ...(rule.except ?? []),
    ...(rule.tiers ?? []).flatMap((tier) => tier.match ?? []),
  ]);
  const parts = rules.flatMap((rule) => rule.key ?? []);
  return (
    [...except, ...matches].some(({ claims }) => claims !== undefined) ||
    parts.some(({ claim }) => claim !== undefined)
  );
}

/** `spec` of the resource. */
export const policySpecSchema: z.ZodType<PolicySpec> = ruled(
  z
    .object({
      selector: labelSelectorSchema,
      ports: list('Restricts the policy to these container ports.', portSchema, {
        max: PORTS_MAX,
        kind: 'set',
      }).exactOptional(),
      except: matchesField(
        'Requests no rule of this policy looks at; entries are ORed.',
        MATCHES_MAX,
      ).exactOptional(),
      rules: rulesSchema,
      mode: choice('Enforce refuses, Shadow only counts, Disabled does nothing.', [
        'Enforce',
        'Shadow',
        'Disabled',
      ]).default('Enforce'),
      enforcePercent: integer(
        'Share of clients that are really refused, stable per key; 100 if absent.',
        0,
        100,
      ).exactOptional(),
      failureMode: choice(
        'What happens while the store is away: admit, refuse with 503, or limit by a local share.',
        ['Open', 'Closed', 'Local'],
      ).default('Local'),
      scope: choice(
        'Which pods share a bucket: all that are selected, those of one workload, or each pod alone.',
        ['Policy', 'Workload', 'Pod'],
      ).default('Policy'),
      clientIP: clientAddressSchema.exactOptional(),
      jwt: tokenSchema.exactOptional(),
      response: responseSchema.exactOptional(),
    })
    .meta({ description: 'What is limited, and how.' }),
  RELATIONS,
);

const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

const metadataSchema: z.ZodType<Metadata> = z
  .object({
    name: text('Name of the policy.', {
      min: 1,
      max: 253,
      pattern: DNS_SUBDOMAIN,
      advice: 'lower-case letters, digits, dashes and dots, such as public-api',
    }),
    namespace: text('Namespace of the policy.', {
      min: 1,
      max: 63,
      pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
      advice: 'the name of a namespace, such as shop',
    }).exactOptional(),
    uid: z.string().exactOptional(),
    generation: z.number().exactOptional(),
    labels: z.record(z.string(), z.string()).exactOptional(),
    annotations: z.record(z.string(), z.string()).exactOptional(),
  })
  .meta({ description: 'at least a name, {name: public-api}' });

/** The whole document as a person writes it; `status` and what the API server adds to `metadata` are not looked at. */
export const policySchema: z.ZodType<RateLimitPolicy> = z.object({
  apiVersion: z
    .literal(`${API_GROUP}/${API_VERSION}`)
    .meta({ description: `${API_GROUP}/${API_VERSION}` }),
  kind: z.literal(KIND).meta({ description: KIND }),
  metadata: metadataSchema,
  spec: policySpecSchema,
});
