// What a request of HTTP/2 waits for, by its two streams.
import type { Stream } from '../../http2/stream.ts';
import type { Wait } from '../waits.ts';

/** Before the response: `client` has not sent everything, or the application has not taken it, or has not answered. */
export function requestWait(client: Stream, application: Stream | undefined): Wait {
  const isSent = client.remoteEnded || (application?.queuedBytes ?? 0) > 0;
  return isSent ? 'response' : 'client-stall';
}

/** Behind the head of the response. */
export function responseWait(client: Stream): Wait {
  return client.queuedBytes > 0 ? 'client-stall' : 'upstream-stall';
}
