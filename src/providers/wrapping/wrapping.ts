// What a host may do to a dialect: put the request into a form of its own, and the reply. One file per form, and one line
// in wrappings.ts; whoever dials knows no host by name.

import type { Endpoint } from '../provider.ts'

export interface WrappedCall {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
}

export interface Wrapping {
  /** undefined = the host has no such call. */
  wrap(call: WrappedCall, endpoint: Endpoint): WrappedCall | undefined
  /** The dialect's own reply again, as it comes. */
  unwrap(response: Response): Response | Promise<Response>
}
