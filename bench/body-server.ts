// An application of bodies: GET /BYTES answers with as many bytes, POST takes all it is sent and says how many. A process
// of its own on the load's core, because it is no part of what is measured.
// usage: node bench/body-server.ts PORT
import { createServer } from 'node:http';
import process from 'node:process';
import { Readable } from 'node:stream';

const CHUNK = Buffer.alloc(65_536, 'x');

function* bytes(count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= CHUNK.length) {
    yield left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left);
  }
}

if (import.meta.main) {
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      let count = 0;
      request.on('data', (chunk: Buffer) => {
        count += chunk.length;
      });
      request.on('end', () => response.end(String(count)));
      return;
    }
    const count = Number(request.url?.slice(1));
    response.writeHead(200, { 'content-length': count });
    Readable.from(bytes(count), { objectMode: false, highWaterMark: CHUNK.length }).pipe(response);
  });
  // A slow body takes as long as it takes.
  server.requestTimeout = 0;
  server.listen(Number(process.argv[2]), '127.0.0.1');
}
