// Hot path. Reads field blocks (RFC 7541). Lines that a table holds come back as the same objects each time.
import { byteAt } from './byte-at.ts';
import { DEFAULT_TABLE_BYTES, DynamicTable } from './dynamic-table.ts';
import { COMPRESSION_ERROR, ConnectionError } from './error-code.ts';
import { Field, type Indexing } from './field.ts';
import { decodeHuffman } from './huffman.ts';
import { STATIC_TABLE } from './static-table.ts';

export interface FieldLimits {
  /** Names, values and 32 bytes a line, as SETTINGS_MAX_HEADER_LIST_SIZE counts. */
  readonly maxBytes: number;
  readonly maxLines: number;
}

export interface FieldBlock {
  readonly fields: Field[];
  /** The block was read to its end, as the table needs, but what is past a limit was not kept. */
  readonly isTooLarge: boolean;
}

/** Bits that an integer may have after its prefix: 28, far beyond any size that is taken. */
const MAX_SHIFT = 21;

export class HpackDecoder {
  readonly #table = new DynamicTable();
  readonly #limits: FieldLimits;
  #block: Buffer = Buffer.alloc(0);
  #at = 0;

  constructor(limits: FieldLimits) {
    this.#limits = limits;
  }

  /** A whole block. Throws ConnectionError COMPRESSION_ERROR: from then on nobody knows what the table holds. */
  decode(block: Buffer): FieldBlock {
    this.#block = block;
    this.#at = 0;
    const fields: Field[] = [];
    let [bytes, isTooLarge] = [0, false];
    this.#readResizes();
    while (this.#at < block.length) {
      const field = this.#readField();
      bytes += field.size;
      isTooLarge ||= bytes > this.#limits.maxBytes || fields.length >= this.#limits.maxLines;
      if (!isTooLarge) fields.push(field);
    }
    return { fields, isTooLarge };
  }

  // Only at the beginning of a block (RFC 7541 §4.2).
  #readResizes(): void {
    while (this.#at < this.#block.length && (this.#first & 0xe0) === 0x20) {
      const bytes = this.#readInteger(0x1f);
      if (bytes > DEFAULT_TABLE_BYTES) throw fault(`a table of ${bytes} bytes`);
      this.#table.resize(bytes);
    }
  }

  get #first(): number {
    return byteAt(this.#block, this.#at);
  }

  #readField(): Field {
    const first = this.#first;
    if (first >= 0x80) return this.#known(this.#readInteger(0x7f));
    if (first >= 0x40) {
      const field = this.#readLiteral(0x3f, 'indexed');
      this.#table.add(field);
      return field;
    }
    if (first >= 0x20) throw fault('a table size within a block');
    return this.#readLiteral(0x0f, first >= 0x10 ? 'never' : 'plain');
  }

  #readLiteral(prefix: number, indexing: Indexing): Field {
    const index = this.#readInteger(prefix);
    const name = index === 0 ? this.#readString() : this.#known(index).name;
    return new Field(name, this.#readString(), indexing);
  }

  #known(index: number): Field {
    const field =
      index <= STATIC_TABLE.length
        ? STATIC_TABLE[index - 1]
        : this.#table.at(index - STATIC_TABLE.length - 1);
    if (field === undefined) throw fault(`no line ${index} in the table`);
    return field;
  }

  // An integer whose first byte shares its place with flags (RFC 7541 §5.1).
  #readInteger(mask: number): number {
    let value = this.#first & mask;
    this.#at += 1;
    if (value < mask) return value;
    for (let shift = 0; shift <= MAX_SHIFT; shift += 7) {
      if (this.#at >= this.#block.length) throw fault('an integer that breaks off');
      const byte = this.#first;
      this.#at += 1;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw fault('an integer out of bounds');
  }

  #readString(): string {
    if (this.#at >= this.#block.length) throw fault('a string that is missing');
    const isCoded = this.#first >= 0x80;
    const length = this.#readInteger(0x7f);
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#block.length) throw fault('a string that breaks off');
    if (!isCoded) return this.#block.toString('latin1', from, this.#at);
    const text = decodeHuffman(this.#block, from, this.#at);
    if (text === undefined) throw fault('a string that is no Huffman coding');
    return text;
  }
}

function fault(message: string): ConnectionError {
  return new ConnectionError(COMPRESSION_ERROR, message);
}
