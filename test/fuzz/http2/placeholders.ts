/** Stands in an answer for the id of its stream: four bytes. */
export const STREAM_ID = '@id@';
/** Stands in an answer behind a mark for what the request calls itself: four characters. */
export const TAG = '@tg@';
