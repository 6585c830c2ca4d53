// Redis Cluster's key slots: CRC16 (XMODEM) of what stands between the first braces, modulo 16 384.

const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;

/** The slot of a hash tag (bucket-key.ts). Tags are ASCII: names Kubernetes accepts. */
export function slotOf(tag: string): number {
  let crc = 0;
  for (let i = 0; i < tag.length; i += 1) {
    crc ^= tag.charCodeAt(i) << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
    }
    crc &= 0xffff;
  }
  return crc % SLOTS;
}
