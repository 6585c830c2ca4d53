/** A connection error by RFC 9113: whoever reads these bytes has to end the connection. */
export class Http2Fault extends Error {}
