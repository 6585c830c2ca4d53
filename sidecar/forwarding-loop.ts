// Whether a connection to one host of this machine would arrive at a listener on another.
import { Address, readAddress } from './rules/address.ts';

/** Both as written on the command line, without brackets and port. */
export function reaches(host: string, listening: string): boolean {
  if (nameOf(host) === nameOf(listening)) return true;
  const at = addressesOf(listening);
  return addressesOf(host).some((to) => at.some((one) => arrives(to, one)));
}

function nameOf(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}

/** Of `localhost` both: the other one is tried where the first does not answer. None of another name. */
function addressesOf(host: string): readonly Address[] {
  const texts = nameOf(host) === 'localhost' ? ['127.0.0.1', '::1'] : [host];
  return texts.flatMap((text) => {
    const address = new Address();
    return readAddress(text, address) ? [address] : [];
  });
}

// Who connects to "any address" gets to the loopback of its family; who listens on `::` takes IPv4 as well.
function arrives(to: Address, at: Address): boolean {
  const isHere = isLoopback(to) || isAny(to);
  if (isAny(at)) return isHere && (at.family === 6 || to.family === 4);
  if (to.family !== at.family) return false;
  return isAny(to) ? isLoopback(at) : isSame(to, at);
}

function isAny({ w0, w1, w2, w3 }: Address): boolean {
  return (w0 | w1 | w2 | w3) === 0;
}

function isLoopback({ family, w0, w1, w2, w3 }: Address): boolean {
  return family === 4 ? w3 >>> 24 === 127 : (w0 | w1 | w2) === 0 && w3 === 1;
}

function isSame(one: Address, other: Address): boolean {
  return one.w0 === other.w0 && one.w1 === other.w1 && one.w2 === other.w2 && one.w3 === other.w3;
}
