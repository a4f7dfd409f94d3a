// WebSockets of an API: each message is a turn, which runs as a request of its own and takes the path of every request. The
// connection remembers its last response, so that the next turn sends only what is new.

import type { Dialect, StoredConversation, Turn, Turns } from '../dialects/dialect.ts'
import type { Clock } from '../kernel/clock.ts'
import { assert, Failure } from '../kernel/failure.ts'
import { createId } from '../kernel/ids.ts'
import { type Answer, type AnswerSink, BrokenOff, requestIdHeaders } from '../pipeline/answer.ts'
import { type ClientRequest, madeRequest } from '../pipeline/client-request.ts'
import { Cancellation } from '../pipeline/deadline.ts'
import type { Connection } from '../pipeline/exchange.ts'
import type { RunRequest } from '../pipeline/run.ts'
import { readSseRecord, SseSplitter } from '../wire/sse.ts'
import { type AuthenticateDependencies, identifyCaller } from './request.ts'
import { refuse } from './responses.ts'
import { closeCodes, type MessageHandler, type MessageSink, Upgrade } from './server/web-socket.ts'

export interface ResponsesSocketDependencies extends AuthenticateDependencies {
  readonly generate: RunRequest
  readonly warmUp: RunRequest
  readonly settings: { readonly current: { readonly bodyBytesMax: number } }
  readonly clock: Clock
  /** What all connections together may remember. */
  readonly rememberedMax: number
  addressOf(request: ClientRequest): string | undefined
}

/** What the server says of a connection. */
interface SocketControl {
  /** Why no turn is started now. */
  refusal(): Failure | undefined
  /** Closes the connection of a client that no longer reads. */
  drop(): void
}

export type OpenSocket = (
  request: ClientRequest,
  surface: Dialect,
  path: string,
  control: SocketControl,
) => Promise<Answer>

export function createOpenSocket(deps: ResponsesSocketDependencies): OpenSocket {
  const remembered = new Remembered(deps.rememberedMax)
  return async (request, surface, path, control) => {
    const { turns } = surface
    assert(turns, 'only a dialect with turns is served over WebSockets')
    const refusal = control.refusal() ?? (await identifyCaller(deps, request, deps.addressOf(request)))
    if (refusal instanceof Failure) return refuse(surface, refusal)
    const { bodyBytesMax } = deps.settings.current
    const id = createId('req')
    return new Upgrade(
      requestIdHeaders(id),
      bodyBytesMax,
      (client) => new ResponsesSocket(deps, { request, surface, turns, path, control, client, remembered }),
    )
  }
}

/** OpenAI's limit. Clients connect again, perhaps to another replica. */
const ageMaxMs = 60 * 60_000

interface Opened {
  readonly request: ClientRequest
  readonly surface: Dialect
  readonly turns: Turns
  readonly path: string
  readonly control: SocketControl
  readonly client: MessageSink
  readonly remembered: Remembered
}

class ResponsesSocket implements MessageHandler {
  readonly #openedMs: number
  #turns = 0
  #isGone = false
  /** Of the running turn. */
  #gone = new Cancellation()
  #leave: (() => Promise<void>) | undefined

  constructor(
    private readonly deps: ResponsesSocketDependencies,
    private readonly opened: Opened,
  ) {
    this.#openedMs = deps.clock.monotonicMs()
  }

  async answer(message: string): Promise<void> {
    const { surface, turns, client } = this.opened
    if (this.deps.clock.monotonicMs() - this.#openedMs > ageMaxMs) {
      client.send(turns.tooOld())
      return client.close(closeCodes.normal, 'the connection is an hour old')
    }
    const turn = turns.read(message)
    const answer = turn instanceof Failure ? refuse(surface, turn) : await this.#run(turn)
    await this.#send(answer)
  }

  async clientLeft(): Promise<void> {
    this.#isGone = true
    this.opened.remembered.forget(this)
    this.#gone.abort()
    await this.#leave?.()
  }

  #run(turn: Turn): Answer | Promise<Answer> {
    const { surface, path, control } = this.opened
    const refusal = control.refusal()
    if (refusal) return refuse(surface, refusal)
    this.#gone = new Cancellation()
    const { generate, warmUp } = this.deps
    return (turn.isWarmUp ? warmUp : generate)(this.#requestOf(turn), surface, path, this.#connectionOf(turn))
  }

  /** The handshake's request with this body. An idempotency key names the connection, so each turn has its own. */
  #requestOf({ body }: Turn): ClientRequest {
    const { request } = this.opened
    const headers = new Headers([...request.headers, ['content-type', 'application/json']])
    const key = headers.get('idempotency-key')
    if (key !== null) headers.set('idempotency-key', `${key}/${++this.#turns}`)
    const { url, connection } = request
    return madeRequest({ url, headers, signal: this.#gone, connection }, body)
  }

  #connectionOf({ previousId }: Turn): Connection {
    const { request, control, remembered } = this.opened
    // A turn that fails leaves nothing to continue: its client sends the whole conversation again.
    const last = previousId === undefined ? undefined : remembered.take(this, previousId)
    return {
      // The server sends pings, and closes a connection that does not answer them.
      keepOpen() {},
      rearm() {},
      drop: () => control.drop(),
      address: () => this.deps.addressOf(request),
      memory: {
        find: (id) => (id === previousId ? last : undefined),
        keep: (id, conversation) => {
          if (!this.#isGone) remembered.keep(this, id, conversation)
        },
      },
    }
  }

  async #send({ status, headers, body }: Answer): Promise<void> {
    const { turns, client } = this.opened
    const events = new EventSink(turns, client)
    if (!(body instanceof Uint8Array)) {
      this.#leave = () => body.clientLeft()
      if (this.#isGone) return await body.clientLeft()
      await body.run(events).catch((error) => {
        if (!(error instanceof BrokenOff)) throw error
        client.close(closeCodes.defect, 'the answer broke off')
      })
      this.#leave = undefined
    } else if (status === 200) events.end(body)
    else {
      const shown = Object.entries(headers).filter(([name]) => !name.startsWith('content-') && name !== 'connection')
      client.send(turns.renderError(status, Object.fromEntries(shown) as Record<string, string>, body))
      // No turn after this one can be served either.
      if (status === 401) client.close(closeCodes.policy, 'the credential is not accepted any more')
    }
  }
}

/** Sends each event of a stream as a message. */
class EventSink implements AnswerSink {
  readonly #records = new SseSplitter({ recordBytesMax: Number.POSITIVE_INFINITY })

  constructor(
    private readonly turns: Turns,
    private readonly client: MessageSink,
  ) {}

  write(bytes: Uint8Array): Promise<void> | undefined {
    this.#records.push(bytes, (record) => {
      const { data } = readSseRecord(record)
      // A comment, which keeps a stream open.
      if (data === undefined) return this.client.ping()
      const message = this.turns.eventIn(data)
      if (message !== undefined) this.client.send(message)
    })
    return this.client.taken()
  }

  end(last?: Uint8Array): void {
    if (last) void this.write(last)
  }
}

/** The last response of each connection. Those that are longest unused give way. */
class Remembered {
  readonly #last = new Map<object, { readonly id: string; readonly conversation: StoredConversation }>()
  #size = 0

  constructor(private readonly sizeMax: number) {}

  keep(connection: object, id: string, conversation: StoredConversation): void {
    this.forget(connection)
    this.#last.set(connection, { id, conversation })
    this.#size += sizeOf(conversation)
    for (const each of this.#last.keys()) {
      if (this.#size <= this.sizeMax) return
      this.forget(each)
    }
  }

  take(connection: object, id: string): StoredConversation | undefined {
    const last = this.#last.get(connection)
    if (last?.id !== id) return undefined
    this.forget(connection)
    return last.conversation
  }

  forget(connection: object): void {
    const last = this.#last.get(connection)
    if (!last) return
    this.#last.delete(connection)
    this.#size -= sizeOf(last.conversation)
  }
}

const sizeOf = ({ input, response }: StoredConversation): number => input.length + response.length
