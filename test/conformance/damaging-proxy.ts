// An endpoint that is good but for one thing: a proxy in front of the gateway that damages what passes.

import type { DialectName } from './checker/probe.ts'

export interface Passing {
  /** The request's path and body. */
  readonly path: string
  readonly asked: string
  readonly status: number
  readonly text: string
}

/** What the client gets instead; undefined = what there was. */
export type Damage = (passing: Passing) => Response | string | Uint8Array<ArrayBuffer> | undefined

export interface DamagingProxy {
  readonly url: string
  damage(damage: Damage): void
  stop(): void
}

export function startProxy(gatewayUrl: string): DamagingProxy {
  let damage: Damage = () => undefined
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const asked = await request.text()
      const headers = new Headers(request.headers)
      headers.delete('host')
      const init = { method: request.method, headers, ...(asked === '' ? {} : { body: asked }) }
      const response = await fetch(gatewayUrl + pathname, init)
      const text = await response.text()
      const damaged = damage({ path: pathname, asked, status: response.status, text })
      if (damaged instanceof Response) return damaged
      const type = response.headers.get('content-type') ?? ''
      return new Response(damaged ?? text, { status: response.status, headers: { 'content-type': type } })
    },
  })
  return {
    url: server.url.origin,
    damage(next) {
      damage = next
    },
    stop: () => void server.stop(true),
  }
}

const isStream = ({ text }: Passing): boolean => /^(?:data|event):/.test(text)

/** Replaces in streams, in whole replies, or in both. */
export const inStreams =
  (from: string | RegExp, to: string): Damage =>
  (passing) =>
    isStream(passing) ? passing.text.replaceAll(from, to) : undefined
export const inReplies =
  (from: string | RegExp, to: string): Damage =>
  (passing) =>
    passing.status === 200 && !isStream(passing) ? passing.text.replaceAll(from, to) : undefined
export const inAll =
  (from: string | RegExp, to: string): Damage =>
  ({ status, text }) =>
    status === 200 ? text.replaceAll(from, to) : undefined
/** Errors of this status get another body, status or type. */
export const errors =
  (status: number, instead: { readonly status?: number; readonly body?: string; readonly type?: string }): Damage =>
  (passing) => {
    if (passing.status !== status) return undefined
    const headers = { 'content-type': instead.type ?? 'application/json' }
    return new Response(instead.body ?? passing.text, { status: instead.status ?? status, headers })
  }
/** Requests whose body says this are refused. */
export const refusing =
  (said: string): Damage =>
  ({ asked }) =>
    asked.includes(said)
      ? Response.json({ type: 'error', error: { type: 't', message: 'no', param: null, code: null } }, { status: 400 })
      : undefined
/** Characters as one byte each, which is no UTF-8. */
export const inLatin1: Damage = ({ status, text }) =>
  status === 200 ? new Uint8Array(Buffer.from(text.replaceAll(/[^\0-\xff]/g, '?'), 'latin1')) : undefined

export interface BrokenThing {
  readonly dialect: DialectName
  readonly what: string
  readonly damage: Damage
  /** The checks that fail, and a word of the reason each gives. */
  readonly fails: Readonly<Record<string, string>>
}
