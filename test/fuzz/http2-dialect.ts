// HTTP/2 by prior knowledge for the fuzzer: streams in turns, fields and frames that lie, and mutations of all of it.
import type { Dialect } from './dialect.ts';
import { madeAnswer, plainAnswer } from './http2/answer-maker.ts';
import { madeConnection } from './http2/connection-maker.ts';
import { Http2Application } from './http2-application.ts';
import { readHttp2Strictly } from './http2-reading.ts';

export const http2Dialect: Dialect = {
  name: 'http2',
  echo: plainAnswer(true),
  unmarked: plainAnswer(false),
  connection: madeConnection,
  answer: madeAnswer,
  read: readHttp2Strictly,
  openApplication: () => Http2Application.open(),
};
