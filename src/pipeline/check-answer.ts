// Asks the operator's policies about an answer before any of it is sent to the client. The bytes for the client are read
// again, in the client's own dialect, so both lanes are checked in the same way. A blocked answer is replaced by a refusal in
// the form of the surface, which is also what is kept for retries and later requests. It is charged: the provider bills it.

import type { AssistantBlock } from '../dialects/canonical/conversation.ts'
import type { ReplyEvent } from '../dialects/canonical/reply.ts'
import type { Warning } from '../dialects/canonical/translation.ts'
import { ReplyBlocks } from '../dialects/reply/blocks.ts'
import type { Failure } from '../kernel/failure.ts'
import type { Policy } from '../kernel/policy.ts'
import type { Usage } from '../kernel/usage.ts'
import { ByteBuffer } from '../wire/bytes.ts'
import { SseReader } from '../wire/sse.ts'
import type { OpenStream, WholeReply } from './attempt.ts'
import {
  askPolicies,
  type CheckPoliciesDependencies,
  isRefusing,
  type Judged,
  policiesFor,
  recordVerdict,
  refusalBy,
  uncheckedWarnings,
} from './check-policies.ts'
import { parserFor, replyJson } from './client-bytes.ts'
import { answerDocument } from './policy-document.ts'
import type { Held } from './stages.ts'

/** More than any model writes; an answer above it counts as not judged. */
const heldBytesMax = 16 * 1024 * 1024

/** What a blocked answer becomes. */
export interface BlockedAnswer {
  /** For the client. */
  readonly body: Uint8Array
  /** Its last record, in a stream; the same as `body` otherwise. */
  readonly lastBytes: Uint8Array
  /** For the record of the request. */
  readonly failure: Failure
}

export interface CheckedAnswer {
  /** undefined = it may be sent. */
  readonly blocked: BlockedAnswer | undefined
  /** One for each policy that should have judged it and did not. */
  readonly warnings: readonly Warning[]
}

const noPolicies: readonly Policy[] = []

/** The policies that judge the answer of a request. Vectors are no text. */
export function answerPolicies({ settings }: CheckPoliciesDependencies, { admitted }: Held): readonly Policy[] {
  const { policies } = settings.current
  return policies.length === 0 || admitted.envelope.embeddings ? noPolicies : policiesFor(policies, admitted, 'answer')
}

export async function checkWhole(
  deps: CheckPoliciesDependencies,
  held: Held,
  policies: readonly Policy[],
  reply: WholeReply,
): Promise<CheckedAnswer> {
  const json = replyJson(reply.body)
  const events = parserFor(held).whole(new TextEncoder().encode(json))
  const document = answerDocument(blocksOf(events), [json])
  const judged = await judge(deps, held, policies, document)
  const refusing = judged.find(isRefusing)
  const warnings = uncheckedWarnings(judged)
  if (!refusing) return { blocked: undefined, warnings }
  const failure = refusalBy(refusing, 'answer')
  const { surface } = held.exchange
  const { meter, usage } = reply
  const body = new TextEncoder().encode(
    surface.translation.renderReply(refusalEvents(failure, usage), meter.renderContext()),
  )
  return { blocked: { body, lastBytes: body, failure }, warnings }
}

/** A streamed answer, held back until it has been judged. */
export class HeldAnswer {
  readonly #bytes = new ByteBuffer()

  constructor(
    private readonly deps: CheckPoliciesDependencies,
    private readonly held: Held,
    private readonly policies: readonly Policy[],
  ) {}

  push(bytes: Uint8Array): void {
    this.#bytes.append(bytes)
  }

  get isFull(): boolean {
    return this.#bytes.length > heldBytesMax
  }

  /** What was held back, once. */
  take(): Uint8Array {
    return this.#bytes.take()
  }

  /** Judges what is held and the terminal bytes. undefined = it may be sent. Does not throw: the answer is not settled yet. */
  async check(stream: OpenStream): Promise<BlockedAnswer | undefined> {
    const { terminal } = stream.relay
    const whole = Buffer.concat([this.#bytes.take(), terminal])
    this.#bytes.append(whole.subarray(0, whole.length - terminal.length))
    const document = this.#documentOf(whole)
    if (document === undefined) return this.#unjudged('the answer cannot be read', stream)
    const judged = await judge(this.deps, this.held, this.policies, document)
    const refusing = judged.find(isRefusing)
    return refusing && this.#blocked(refusing, stream)
  }

  /** There is more than can be judged. undefined = all policies let it go on. */
  checkFull(stream: OpenStream): BlockedAnswer | undefined {
    return this.#unjudged(`the answer has more than ${heldBytesMax / 2 ** 20} MiB`, stream)
  }

  #documentOf(whole: Uint8Array): object | undefined {
    try {
      const parser = parserFor(this.held)
      const events = [...parser.push(whole), ...parser.end()]
      return answerDocument(blocksOf(events), recordsOf(whole))
    } catch (error) {
      this.deps.log.error('an answer could not be read for its policies', {
        request_id: this.held.exchange.record.id,
        error: String(error),
      })
      return undefined
    }
  }

  #unjudged(why: string, stream: OpenStream): BlockedAnswer | undefined {
    const { record } = this.held.exchange
    const startMs = this.held.exchange.elapsedMs()
    const judged = this.policies.map((policy): Judged => {
      const judgement: Judged = { policy, verdict: { kind: 'failed', why } }
      recordVerdict(this.deps.log, record, { policy: policy.id, moment: 'answer', startMs, ms: 0 }, judgement)
      return judgement
    })
    const refusing = judged.find(isRefusing)
    return refusing && this.#blocked(refusing, stream)
  }

  #blocked(refusing: Judged, { meter, relay }: OpenStream): BlockedAnswer {
    const failure = refusalBy(refusing, 'answer')
    const { surface } = this.held.exchange
    const usage = relay.usage ?? meter.usageOfPart(relay)
    meter.quote(usage)
    const renderer = surface.translation.renderStream(meter.renderContext())
    const text = refusalEvents(failure, usage)
      .map((event) => renderer.render(event))
      .join('')
    const lastBytes = new TextEncoder().encode(renderer.terminal)
    const end = surface.streamEnd ?? new Uint8Array(0)
    return { body: Buffer.concat([new TextEncoder().encode(text), lastBytes, end]), lastBytes, failure }
  }
}

/** The data of all records, and lines that are no data, such as comments: providers can write anything into them. */
function recordsOf(stream: Uint8Array): readonly string[] {
  const reader = new SseReader({ recordBytesMax: Number.POSITIVE_INFINITY })
  const records = [...reader.push(stream), ...reader.end()].map(({ data }) => data).filter((data) => data !== '[DONE]')
  const lines = new TextDecoder().decode(stream).split(/[\r\n]+/)
  return [...records, ...lines.filter((line) => line !== '' && !ordinaryLine.test(line))]
}

const ordinaryLine = /^(?:data:|event: ?[a-z_.]+$)/

function judge(
  deps: CheckPoliciesDependencies,
  { admitted }: Held,
  policies: readonly Policy[],
  document: object,
): Promise<readonly Judged[]> {
  return askPolicies(deps, admitted, { policies, moment: 'answer', dataOf: () => document })
}

function blocksOf(events: readonly ReplyEvent[]): readonly AssistantBlock[] {
  const blocks = new ReplyBlocks()
  for (const event of events) blocks.take(event)
  return blocks.all()
}

/**
 * A reply that is only a refusal, in the words of the policy: as text, because many clients show nothing else, and by its end
 * in the members of the dialect for refusals.
 */
function refusalEvents({ message }: Failure, usage: Usage): readonly ReplyEvent[] {
  return [
    { type: 'reply-start', id: undefined, usage },
    { type: 'block-start', block: { kind: 'text' } },
    { type: 'text-delta', text: message },
    { type: 'block-end' },
    { type: 'reply-end', stop: { unified: 'refusal', raw: '', explanation: message, byPolicy: true }, usage },
  ]
}
