// What counts as this machine: as an address a connection comes from, and as a name in a Host field.

export function isLoopbackAddress(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

/** Whether a Host field names this machine, with or without a port. Nothing of a page whose name is bound anew does. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host);
}
