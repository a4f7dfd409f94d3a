// The part of `websocket-driver` that web-socket.ts uses; the package has no types.

declare module 'websocket-driver' {
  interface DriverEvents {
    message: { readonly data: string | Buffer }
    ping: { readonly data: string }
    pong: { readonly data: string }
    /** Both sides have said that they close, or what was received is against the protocol. */
    close: { readonly code: number; readonly reason: string }
    error: Error
  }

  interface Driver {
    /** What is to be sent. */
    readonly io: { on(event: 'data', listener: (bytes: Buffer) => void): void }
    /** Tests whether a text, each byte a character, is UTF-8. */
    UTF8_MATCH: Pick<RegExp, 'test'>
    on<Name extends keyof DriverEvents>(event: Name, listener: (event: DriverEvents[Name]) => void): void
    setHeader(name: string, value: string): boolean
    /** Answers the handshake. */
    start(): boolean
    parse(bytes: Buffer): void
    text(message: string): boolean
    ping(): boolean
    close(reason: string, code: number): boolean
  }

  interface Handshake {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
  }

  const websocket: {
    http(request: Handshake, options: { readonly maxLength: number }): Driver
  }
  export = websocket
}
