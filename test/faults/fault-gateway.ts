// A gateway for one row of the fault matrix: a model for each cell and each question, each with separate providers, so
// that what one learns of its routes touches no other.

import { type Gateway, startGateway } from '../parts/gateway.ts'
import { createJumpClock, type JumpClock } from '../parts/jump-clock.ts'
import { startUpstream, type Upstream, type UpstreamCall } from '../parts/upstream.ts'
import { answerHello, wantsStream } from '../parts/upstream-words.ts'
import { addressFaults, clockFaults, misbehaviours } from './misbehave.ts'

const dialectNames = ['chat', 'messages'] as const
export type DialectName = (typeof dialectNames)[number] | 'responses' | 'gemini'

/** Which routes of a model are bad; `alone` has one route. */
export type Setting = 'first' | 'all' | 'alone'

export interface Cell {
  readonly upstream: DialectName
  readonly surface: DialectName
  readonly stream: boolean
}

const pairs: readonly (readonly [upstream: DialectName, surface: DialectName])[] = [
  ...dialectNames.flatMap((upstream) => dialectNames.map((surface) => [upstream, surface] as const)),
  // Their bytes, and one translation each: the others differ by the provider's dialect only.
  ['responses', 'responses'],
  ['chat', 'responses'],
  ['gemini', 'gemini'],
  ['chat', 'gemini'],
]

export const cells: readonly Cell[] = pairs.flatMap(([upstream, surface]) =>
  [true, false].map((stream) => ({ upstream, surface, stream })),
)

const providers: Readonly<Record<DialectName, { readonly dialect: string; readonly version: string }>> = {
  chat: { dialect: 'openai-chat', version: '/v1' },
  messages: { dialect: 'anthropic-messages', version: '' },
  responses: { dialect: 'openai-responses', version: '/v1' },
  gemini: { dialect: 'gemini', version: '/v1beta' },
}

/** `chat-messages-stream-first`: the model's name and the first part of its providers' names and paths. */
export function cellName({ upstream, surface, stream }: Cell, setting: Setting): string {
  return `${upstream}-${surface}-${stream ? 'stream' : 'whole'}-${setting}`
}

export interface FaultGateway {
  readonly gateway: Gateway
  readonly clock: JumpClock
  /** Calls that a route of a model got. */
  calls(model: string, place: 0 | 1): readonly UpstreamCall[]
  /** How a model's first route stands, as the catalog tells everybody. */
  health(model: string): Promise<string>
  /** A client has seen the first of its content. */
  noteSeen(): void
  /** Time passes as soon as a bad route has been called this often. */
  hangsUntil(calls: number): void
  stop(): Promise<void>
}

/** Many times what a gateway takes to see that time is up. */
const againMs = 5_000

export async function startFaultGateway(fault: string): Promise<FaultGateway> {
  const clock = createJumpClock()
  const misbehave = misbehaviours[fault]
  const passes = clockFaults[fault]
  let waitedFor = 1
  let hanging: UpstreamCall[] = []
  const content = { begun: 0, seen: 0 }
  const untilSeen = async (): Promise<void> => {
    content.begun++
    while (content.seen < content.begun) await Bun.sleep(1)
  }
  const upstream = startUpstream(async (call, reply) => {
    const streams = wantsStream(call)
    const isBad = call.path.startsWith('/bad/')
    const turn = { call, reply, streams, ...(call.path.includes('-stream-') && { untilSeen }) }
    if (!isBad || !misbehave) return answerHello(call, reply)
    await misbehave(turn)
    if (!passes) return
    hanging.push(call)
    if (hanging.length < waitedFor) return
    let open = hanging
    hanging = []
    // On a busy machine the gateway may not have read what came when its time passed, and needs some more.
    const isLast = /-(alone-0|all-1)\//.test(call.path)
    while (open.length > 0) {
      // A translated call for a whole reply has the limit of a stream and a moment for its few tokens.
      const isTranslated = /chat-messages|messages-chat|chat-responses|chat-gemini/.test(call.path)
      clock.jump(passes(streams || isTranslated, isLast))
      await Promise.race([Promise.all(open.map(({ closed }) => closed)), Bun.sleep(againMs)])
      open = open.filter((each) => !each.isClosed())
    }
  })
  const dead = addressFaults.has(fault) ? startDeadAddress(fault) : undefined
  const gateway = await startGateway({ config: configFor(upstream, dead?.url ?? upstream.url), clock })
  return {
    gateway,
    clock,
    calls: (model, place) => upstream.calls.filter(({ path }) => path.includes(`/${model}-${place}/`)),
    async health(model) {
      const answer = await fetch(`${gateway.url}/api/catalog`)
      const { data } = (await answer.json()) as { data: { id: string; routes: { health: string }[] }[] }
      return data.find(({ id }) => id === `test/${model}`)?.routes[0]?.health ?? 'unknown'
    },
    noteSeen: () => void content.seen++,
    hangsUntil(calls) {
      waitedFor = calls
    },
    async stop() {
      await gateway.stop()
      upstream.stop()
      dead?.stop()
    },
  }
}

interface DeadAddress {
  readonly url: string
  stop(): void
}

/** An address where no connection comes about. */
function startDeadAddress(fault: string): DeadAddress {
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket) {
        // To a client that wants TLS this is no handshake.
        socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')
      },
    },
  })
  if (fault === 'TLS failure') return { url: `https://127.0.0.1:${server.port}`, stop: () => server.stop(true) }
  server.stop(true)
  return { url: `http://127.0.0.1:${server.port}`, stop: () => {} }
}

const settings: Readonly<Record<Setting, readonly ('bad' | 'good')[]>> = {
  first: ['bad', 'good'],
  all: ['bad', 'bad'],
  alone: ['bad'],
}

function configFor(upstream: Upstream, badUrl: string): string {
  const entries: string[] = []
  const models: string[] = []
  for (const cell of cells) {
    for (const [setting, kinds] of Object.entries(settings)) {
      const name = cellName(cell, setting as Setting)
      const { dialect, version } = providers[cell.upstream]
      kinds.forEach((kind, place) => {
        const base = `${kind === 'bad' ? badUrl : upstream.url}/${kind}/${name}-${place}${version}`
        entries.push(`{ id: ${name}-${place}, dialect: ${dialect}, base_url: "${base}", api_key: upstream-secret }`)
      })
      const routes = kinds.map((_, place) => `{ provider: ${name}-${place}, model: up, priority: ${place} }`)
      models.push(`{ id: test/${name}, price: free, routes: [${routes.join(', ')}] }`)
    }
  }
  return `providers:\n  - ${entries.join('\n  - ')}\nmodels:\n  - ${models.join('\n  - ')}\n`
}
