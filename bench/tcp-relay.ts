// The floor in Node: bytes from one socket to another, nothing read, nothing decided.
// usage: node bench/tcp-relay.ts LISTEN_PORT UPSTREAM_PORT
import { connect, createServer } from 'node:net';
import process from 'node:process';

const [listen, upstream] = process.argv.slice(2).map(Number);

createServer({ noDelay: true }, (client) => {
  const server = connect({ port: upstream ?? 0, host: '127.0.0.1', noDelay: true });
  client.on('data', (data) => server.write(data));
  server.on('data', (data) => client.write(data));
  client.on('close', () => server.destroy());
  server.on('close', () => client.destroy());
  client.on('error', () => undefined);
  server.on('error', () => undefined);
}).listen(listen, '127.0.0.1');
