// What a host may do to a dialect: put the request into a form of its own, and the reply. One file per form, and one line
// in wrappings.ts; whoever dials knows no host by name.

import type { Warning } from '../../dialects/canonical/translation.ts'
import type { Endpoint } from '../provider.ts'

export interface WrappedCall {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
}

/** A call in the host's form, and what of the caller's it could not take. */
export interface HostCall extends WrappedCall {
  readonly warnings: readonly Warning[]
}

export interface Wrapping {
  /** undefined = the host has no such call. */
  wrap(call: WrappedCall, endpoint: Endpoint): HostCall | undefined
  /** The dialect's own reply again, as it comes. */
  unwrap(response: Response): Response | Promise<Response>
}
