// A policy that limits each X-Api-Key by one bucket which earns next to nothing during a test, and requests for it.
import type { SidecarProcess } from './sidecar.ts';

export function keyedPolicy(name: string, capacity: number): string {
  return `apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: { name: ${name} }
spec:
  selector: {}
  rules:
    - name: per-client
      key: [{ header: { name: X-Api-Key } }]
      buckets: [{ capacity: ${capacity}, refill: { tokens: 1, every: 1h } }]
`;
}

/** How many of `count` requests of that client, one after the other, are admitted. */
export async function admitted(
  sidecar: SidecarProcess,
  key: string,
  count: number,
): Promise<number> {
  let passed = 0;
  for (let i = 0; i < count; i += 1) {
    const response = await fetch(`http://127.0.0.1:${sidecar.port}/`, {
      // A connection of its own: one that a crashed worker held is gone with it.
      headers: { 'x-api-key': key, connection: 'close' },
    });
    await response.arrayBuffer();
    if (response.status === 200) passed += 1;
  }
  return passed;
}
