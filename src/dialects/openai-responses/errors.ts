// Reads a provider's errors: error bodies, and errors inside a 200 as an event or a failed reply.

import type { HeaderReader } from '../../wire/http-response.ts'
import { faultFromBody, faultInSuccess, openaiStatuses, type ProviderFault } from '../canonical/faults.ts'

export function readFault(status: number, headers: HeaderReader, body: string): ProviderFault {
  return faultFromBody(status, headers, body)
}

export function readErrorObject(error: unknown): ProviderFault {
  const fault = faultInSuccess(error, openaiStatuses)
  // About a dozen codes concern images, and all are for the caller to fix.
  return fault.code?.includes('image') ? { ...fault, status: 400 } : fault
}
