// A keep-alive connection that has at most one request under way, for the loads that keep their own time.
import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface LaneAnswer {
  readonly status: number;
  /** `performance.now` when the request was written, and when the last byte of its answer was there. */
  readonly sentAt: number;
  readonly answeredAt: number;
}

export class Lane {
  readonly #socket: Socket;
  #received = '';
  #sentAt = 0;

  constructor(port: number, onAnswer: (lane: Lane, answer: LaneAnswer) => void) {
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket.on('data', (data) => {
      this.#received += data.toString('latin1');
      if (!isComplete(this.#received)) return;
      const status = Number(this.#received.slice(9, 12));
      this.#received = '';
      onAnswer(this, { status, sentAt: this.#sentAt, answeredAt: performance.now() });
    });
  }

  send(request: string): void {
    this.#sentAt = performance.now();
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** A whole request with a key. */
export function requestText(port: number, key: string, path = '/'): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${String(port)}\r\nX-Api-Key: ${key}\r\n\r\n`;
}

function isComplete(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? 0);
  return text.length >= end + 4 + length;
}
