// The only place that speaks to Redis (or Valkey). Nothing that must not be lost may live there: a command fails at once
// while the server is away, and the connection comes back by itself.

import { createHash } from 'node:crypto'
import { RedisClient } from 'bun'
import { causeText } from './start-refusal.ts'

export interface Redis {
  readonly connected: boolean
  /** Runs a script in one step; rejects while there is no connection, or when no answer comes. */
  run(script: RedisScript, keys: readonly string[], values: readonly string[]): Promise<unknown>
  publish(channel: string, message: string): Promise<void>
  /** Subscribes on a separate connection until closed. `onBegin` is called whenever the subscription is active, also after a reconnect. */
  subscribe(channel: string, listener: RedisListener): { close(): void }
  close(): void
}

export interface RedisListener {
  onMessage(message: string): void
  onBegin(): void
}

export interface RedisScript {
  readonly text: string
  readonly sha1: string
}

export interface RedisOptions {
  readonly url: string
  /** Gets a line without the address when the connection is lost or cannot be made, and one when it is there again. */
  readonly report?: (line: string) => void
}

const connectTimeoutMs = 1000
const firstRetryMs = 100
const retryMaxMs = 1000
/** A server that is silent for this long counts as unreachable. */
const hangMs = 2000

/**
 * A server that became a replica, is still loading, or lost its primary rejects every write on existing connections. The
 * address may lead to another server by now, so reconnect. Redis before 7 has the code in the middle of the message.
 */
const notServing = /\b(READONLY|LOADING|MASTERDOWN)\b/

/** Only a server that takes writes answers it. */
const probe = redisScript("return redis.call('SET', KEYS[1], '1', 'PX', '1')")

export function redisScript(text: string): RedisScript {
  return { text, sha1: createHash('sha1').update(text).digest('hex') }
}

/** Never fails: keeps reconnecting until the server is reachable. */
export function openRedis({ url, report = () => {} }: RedisOptions): Redis {
  const commands = keepConnected(url, {
    report,
    async onConnect(client) {
      await client.send('EVAL', [probe.text, '1', 'tollgate:probe'])
    },
  })
  const send = async (command: string, args: readonly string[]): Promise<unknown> => {
    const client = commands.client()
    if (!client) throw new Error('Redis is not connected')
    // Ends every command that waits on this connection, and makes a new one.
    const timer = setTimeout(() => client.close(), hangMs)
    try {
      return await client.send(command, [...args])
    } catch (thrown) {
      if (notServing.test(causeText(thrown))) commands.drop(client, causeText(thrown))
      throw thrown
    } finally {
      clearTimeout(timer)
    }
  }
  return {
    get connected() {
      return commands.client() !== undefined
    },
    async run({ text, sha1 }, keys, values) {
      const rest = [String(keys.length), ...keys, ...values]
      try {
        return await send('EVALSHA', [sha1, ...rest])
      } catch (thrown) {
        // A server that was restarted does not know it any more.
        if (!causeText(thrown).startsWith('NOSCRIPT')) throw thrown
        return await send('EVAL', [text, ...rest])
      }
    },
    async publish(channel, message) {
      await send('PUBLISH', [channel, message])
    },
    subscribe(channel, { onMessage, onBegin }) {
      return keepConnected(url, {
        report: () => {},
        async onConnect(client) {
          await client.subscribe(channel, onMessage)
          onBegin()
        },
      })
    },
    close: () => commands.close(),
  }
}

interface Line {
  /** undefined = not connected now. */
  client(): RedisClient | undefined
  /** Drops the connection and opens another. */
  drop(client: RedisClient, why: string): void
  close(): void
}

interface LineOptions {
  readonly report: (line: string) => void
  onConnect(client: RedisClient): void | Promise<void>
}

/** Bun's own reconnection gives up after some attempts, and queues commands meanwhile; both are wrong here. */
const clientOptions = { autoReconnect: false, enableOfflineQueue: false, connectionTimeout: connectTimeoutMs }

function keepConnected(url: string, { report, onConnect }: LineOptions): Line {
  let current: RedisClient | undefined
  let closed = false
  let away = false
  let retryMs = firstRetryMs
  let timer: ReturnType<typeof setTimeout> | undefined

  const lost = (why: string): void => {
    current = undefined
    if (closed) return
    // Reported once, not for every attempt.
    if (!away) report(`Redis is away: ${why}`)
    away = true
    timer = setTimeout(() => void dial(), retryMs)
    timer.unref()
    retryMs = Math.min(2 * retryMs, retryMaxMs)
  }
  const dial = async (): Promise<void> => {
    const client = new RedisClient(url, clientOptions)
    // A server may accept the connection and never answer.
    const hanging = setTimeout(() => client.close(), connectTimeoutMs + hangMs)
    try {
      await client.connect()
      await onConnect(client)
    } catch (thrown) {
      client.close()
      return lost(causeText(thrown))
    } finally {
      clearTimeout(hanging)
    }
    if (closed || !client.connected) {
      client.close()
      return lost('the connection was closed')
    }
    client.onclose = () => {
      if (current === client) lost('the connection was closed')
    }
    current = client
    retryMs = firstRetryMs
    if (away) report('Redis is there again')
    away = false
  }
  void dial()
  return {
    client: () => current,
    drop(client, why) {
      if (current !== client) return
      lost(why)
      client.close()
    },
    close() {
      closed = true
      clearTimeout(timer)
      current?.close()
      current = undefined
    },
  }
}
