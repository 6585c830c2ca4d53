// What an exchange can be waiting for, and how long it may.
import type { ProxyTimeouts } from './proxy-options.ts';

export type Wait = 'client-stall' | 'connect' | 'response' | 'tunnel' | 'upstream-stall';

const timeoutNames = {
  'client-stall': 'clientStallMs',
  connect: 'connectMs',
  response: 'responseMs',
  tunnel: 'tunnelIdleMs',
  'upstream-stall': 'upstreamStallMs',
} as const;

/** In milliseconds. */
export function timeoutOf(timeouts: ProxyTimeouts, wait: Wait): number {
  return timeouts[timeoutNames[wait]];
}
