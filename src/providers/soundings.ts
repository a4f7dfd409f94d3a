// Whether anybody is there. The runtime's fetch does not tell when a connection was made, so a provider behind a dead
// line looks like one that thinks. A call that hears nothing for long therefore has its address dialled, once for all
// calls to it: who neither takes nor refuses a connection in time is not thinking.

import { connect, type Socket } from 'node:net'
import type { Provider } from './provider.ts'

export interface Soundings {
  /** Whether a connection has been waiting for longer than `limitMs`; the first to ask has it dialled. */
  isSilent(address: SoundedAddress, limitMs: number, monotonicMs: number): boolean
  /** Something has come from there. */
  heard(address: SoundedAddress): void
  close(): void
}

/** Of an endpoint that is called over the network. */
export interface SoundedAddress {
  readonly provider: Pick<Provider, 'transport'>
  readonly endpoint: { readonly baseUrl: string }
}

interface Sounding {
  readonly startedMs: number
  readonly socket: Socket
  /** A connection or a refusal: either is a word. */
  isAnswered: boolean
}

/** A word holds for this long; then those who still wait have it dialled again. */
const holdsMs = 15_000

/** `isProxied`: calls go through a proxy, and an address that they reach may be out of our own. */
export function createSoundings({ isProxied }: { readonly isProxied: boolean }): Soundings {
  const soundings = new Map<string, Sounding>()

  function dial(baseUrl: string, startedMs: number): void {
    soundings.get(baseUrl)?.socket.destroy()
    const sounding: Sounding = { startedMs, isAnswered: false, socket: openSocket(baseUrl, () => answer(sounding)) }
    soundings.set(baseUrl, sounding)
  }

  function answer(sounding: Sounding): void {
    sounding.isAnswered = true
    sounding.socket.destroy()
  }

  return {
    isSilent({ provider, endpoint: { baseUrl } }, limitMs, monotonicMs) {
      // What has a transport of its own is in this process, or guarded: no address of a tenant's is dialled unguarded.
      if (isProxied || provider.transport !== undefined) return false
      const sounding = soundings.get(baseUrl)
      const agedMs = sounding === undefined ? Number.POSITIVE_INFINITY : monotonicMs - sounding.startedMs
      if (sounding === undefined || agedMs > holdsMs + limitMs) {
        dial(baseUrl, monotonicMs)
        return false
      }
      return !sounding.isAnswered && agedMs >= limitMs
    },
    heard({ endpoint: { baseUrl } }) {
      const sounding = soundings.size > 0 ? soundings.get(baseUrl) : undefined
      if (sounding?.isAnswered === false) answer(sounding)
    },
    close() {
      for (const { socket } of soundings.values()) socket.destroy()
      soundings.clear()
    },
  }
}

/** `onWord`: it was connected or refused. Without TLS: that is the program's to answer, which may be busy thinking. */
function openSocket(baseUrl: string, onWord: () => void): Socket {
  const { protocol, hostname, port } = new URL(baseUrl)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const usualPort = protocol === 'https:' ? 443 : 80
  return connect({ host, port: Number(port) || usualPort })
    .once('connect', onWord)
    .on('error', onWord)
    .unref()
}
