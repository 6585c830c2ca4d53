// What is sent to many sidecars is written once: the text and the digest of each compiled policy, for as long as the
// compiler holds it.
import { createHash } from 'node:crypto';
import type { CompiledPolicy } from '../../contract/bundle.ts';
import { featuresOf } from '../../contract/features.ts';

interface Written {
  readonly text: string;
  readonly digest: string;
  readonly features: ReadonlySet<string>;
}

export class PolicyTexts {
  readonly #policies = new WeakMap<CompiledPolicy, Written>();
  readonly #digests = new WeakMap<object, string>();

  /** The policy as JSON. */
  textOf(policy: CompiledPolicy): string {
    return this.#written(policy).text;
  }

  digestOf(policy: CompiledPolicy): string {
    return this.#written(policy).digest;
  }

  featuresOf(policy: CompiledPolicy): ReadonlySet<string> {
    return this.#written(policy).features;
  }

  /** Of anything that is JSON. */
  digestOfValue(value: object): string {
    const known = this.#digests.get(value);
    if (known !== undefined) return known;
    const digest = hash(JSON.stringify(value));
    this.#digests.set(value, digest);
    return digest;
  }

  #written(policy: CompiledPolicy): Written {
    const known = this.#policies.get(policy);
    if (known !== undefined) return known;
    const text = JSON.stringify(policy);
    const written = { text, digest: hash(text), features: featuresOf(policy) };
    this.#policies.set(policy, written);
    return written;
  }
}

/** 96 bits: compared within one process, never shown. */
function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64').slice(0, 16);
}
