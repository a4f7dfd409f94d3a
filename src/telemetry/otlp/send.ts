// One payload to the collector. Whatever happens is an outcome; nothing is thrown and nothing of the answer is kept.

import type { OtlpSettings } from './settings.ts'

/** Later: the collector, or the way to it, is in trouble. Refused: it would say the same again. */
export type SendOutcome = { readonly kind: 'sent' } | { readonly kind: 'later' | 'refused'; readonly why: string }

export type Send = (signal: 'traces' | 'metrics', payload: unknown) => Promise<SendOutcome>

const sendMs = 10_000
/** As the protocol lists them. */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504])

export function createSend({ endpoint, headers }: OtlpSettings): Send {
  const revealed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()]))
  return async (signal, payload) => {
    try {
      const response = await fetch(`${endpoint}/v1/${signal}`, {
        method: 'POST',
        headers: { ...revealed, 'content-type': 'application/json', 'user-agent': 'tollgate' },
        body: JSON.stringify(payload),
        redirect: 'manual',
        signal: AbortSignal.timeout(sendMs),
      })
      await response.body?.cancel()
      if (response.ok) return { kind: 'sent' }
      return { kind: retryable.has(response.status) ? 'later' : 'refused', why: `status ${response.status}` }
    } catch (error) {
      return { kind: 'later', why: errorName(error) }
    }
  }
}

/** The code or the name: messages of the runtime may quote the address. */
function errorName(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
