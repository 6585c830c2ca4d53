// Amounts of CPU and memory as Kubernetes writes them, as far as they are compared here.

const SUFFIX: Readonly<Record<string, number>> = {
  ...{ m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 },
};

/** Undefined when it is no quantity, or one in a form we do not write (exponents, Pi, Ei). */
export function parseQuantity(written: string | number): number | undefined {
  const [, digits, suffix = ''] =
    /^([0-9]{1,15}(?:\.[0-9]{1,9})?)([a-zA-Z]{0,2})$/.exec(String(written)) ?? [];
  const factor = SUFFIX[suffix];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

/** Whether `one` is surely larger; amounts that cannot be read are not. */
export function isLarger(one: string | number, other: string | number): boolean {
  return (parseQuantity(one) ?? 0) > (parseQuantity(other) ?? Infinity);
}
