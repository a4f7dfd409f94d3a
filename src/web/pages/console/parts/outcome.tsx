/** @jsxImportSource preact */
// How a request ended, as a lamp and a word: the code says it, also of a stream that began with a 200.

import { Lamp } from '../../shell/lamp.tsx'
import type { RequestItem } from './api-answers.ts'

export function Outcome({ request }: { readonly request: Pick<RequestItem, 'status' | 'code' | 'reason'> }) {
  const { status, code, reason } = request
  if (code === null) {
    const signal = status < 400 ? 'go' : 'off'
    return <Lamp signal={signal} word={status === 499 ? '499 client left' : String(status)} detail="" />
  }
  const signal = status >= 500 || status === 200 ? 'stop' : 'caution'
  return <Lamp signal={signal} word={`${status} ${words(code)}`} detail={reason ?? ''} />
}

/** `LIMIT_EXCEEDED` → `limit exceeded` */
function words(code: string): string {
  return code.toLowerCase().replaceAll('_', ' ')
}
