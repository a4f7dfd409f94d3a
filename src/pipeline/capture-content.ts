// Gathers the content of a request and its answer for the collector of the operator, if its project exports content. It
// writes messages as OpenTelemetry's conventions describe them, shortened and redacted, so that nothing else is kept. It must
// neither delay a request nor change or fail one.

import { createHash } from 'node:crypto'
import type { AssistantBlock, ContentBlock, Conversation, Turn } from '../dialects/canonical/conversation.ts'
import { isRecord, parseJson } from '../dialects/canonical/json.ts'
import type { StopReason } from '../dialects/canonical/reply.ts'
import { ReplyBlocks } from '../dialects/reply/blocks.ts'
import type { StreamRelay } from '../dialects/reply/relay.ts'
import type { ContentExportSettings, RedactionRule } from '../kernel/content-export.ts'
import type { Failure } from '../kernel/failure.ts'
import { redact, redactedMax, redactJson } from '../telemetry/redact.ts'
import type { RequestRecord } from '../telemetry/request-record.ts'
import { parserFor, replyJson } from './client-bytes.ts'
import type { Held } from './stages.ts'

/** Call once a request is about to be sent, while its body is there. Embeddings and compactions have no messages. */
export function captureRequest(settings: ContentExportSettings, held: Held): void {
  const { exchange, admitted } = held
  const { envelope, content } = admitted
  const { record } = exchange
  if (settings.url === undefined || envelope.embeddings || envelope.upstreamPath !== undefined) return
  if (!isSampled(record, settings.sampleBasisPoints)) return
  const conversation = content.conversation()
  if (!conversation) return
  const { redact: rules, charactersMax, isAnnounced } = settings
  const system = new MessageWriter(rules, charactersMax / 4)
  const instructions = conversation.system.map(({ text }) => system.text(text))
  const writer = new MessageWriter(rules, charactersMax - system.used)
  const { messages, omitted } = writer.newest(conversation.turns)
  const tools = writer.tools(conversation.tools)
  record.content = {
    system: instructions.length > 0 ? JSON.stringify(instructions) : undefined,
    input: JSON.stringify(messages),
    output: undefined,
    tools: tools.length > 0 ? JSON.stringify(tools) : undefined,
    omitted,
    traceparent: exchange.http.headers.get('traceparent'),
    isAnnounced,
    charactersMax,
    rules,
  }
}

/** All turns of a conversation that the client names, or none. */
function isSampled({ session, id }: RequestRecord, basisPoints: number): boolean {
  if (basisPoints >= 10_000) return true
  const digest = createHash('sha256')
    .update(session ?? id)
    .digest()
  return digest.readUInt32BE() < (basisPoints / 10_000) * 2 ** 32
}

interface CapturedReply {
  /** Of a stream. */
  readonly capture?: StreamCapture | undefined
  readonly bodyToKeep: Uint8Array | undefined
  readonly lastBytes: Uint8Array
}

/** Adds the answer, as far as it was read. One that a policy refused is not in it; the refusal is. */
export function captureReply(
  held: Held,
  failure: Failure | undefined,
  { capture, bodyToKeep, lastBytes }: CapturedReply,
): void {
  const { content } = held.exchange.record
  if (!content) return
  const blocks = capture?.blocks ?? new ReplyBlocks(content.charactersMax + redactedMax)
  const isRefused = failure?.code === 'POLICY_BLOCKED' || failure?.code === 'POLICY_UNAVAILABLE'
  if (!capture && bodyToKeep && !isRefused) {
    ignoringFaults(() => {
      const json = new TextEncoder().encode(replyJson(bodyToKeep))
      for (const event of parserFor(held).whole(json)) blocks.take(event)
    })
  }
  if (!isRefused) capture?.end(lastBytes)
  const said: readonly AssistantBlock[] = isRefused ? [{ kind: 'refusal', text: failure.message }] : blocks.all()
  const parts = new MessageWriter(content.rules, content.charactersMax).parts(said)
  const finish = isRefused ? 'content_filter' : blocks.stop ? finishReasons[blocks.stop.unified] : 'error'
  content.output = JSON.stringify([{ role: 'assistant', parts, finish_reason: finish }])
}

/** Those that the conventions define. */
const finishReasons: Readonly<Record<StopReason, string>> = {
  end: 'stop',
  length: 'length',
  'stop-sequence': 'stop',
  'tool-calls': 'tool_call',
  refusal: 'content_filter',
  pause: 'stop',
}

/**
 * The answer of a stream. The translation lane has its events (`StreamRelay.said`); what the byte lane writes for the client is
 * parsed for this alone.
 */
export class StreamCapture {
  readonly blocks: ReplyBlocks
  #parser: ReturnType<typeof parserFor> | undefined

  constructor(held: Held, { said }: StreamRelay) {
    this.blocks = said ?? replyBlocksFor(held.exchange.record) ?? new ReplyBlocks(0)
    this.#parser = said ? undefined : parserFor(held)
  }

  /** Bytes for the client. */
  push(bytes: Uint8Array): void {
    const isRead = ignoringFaults(() => {
      for (const event of this.#parser?.push(bytes) ?? []) this.blocks.take(event)
    })
    if (!isRead) this.#parser = undefined
  }

  /** `last`: the end of the reply, which is sent apart. */
  end(last: Uint8Array): void {
    this.push(last)
    ignoringFaults(() => {
      for (const event of this.#parser?.end() ?? []) this.blocks.take(event)
    })
  }
}

/** undefined = the content of this request is not exported. */
export function replyBlocksFor({ content }: RequestRecord): ReplyBlocks | undefined {
  return content && new ReplyBlocks(content.charactersMax + redactedMax)
}

/** A reply that cannot be read is exported as far as it could be. */
function ignoringFaults(read: () => void): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}

interface Message {
  readonly role: Turn['role'] | 'tool'
  readonly parts: readonly object[]
}

/** Writes parts of messages until it has written as much as it may. */
class MessageWriter {
  used = 0

  constructor(
    private readonly rules: readonly RedactionRule[],
    private readonly charactersMax: number,
  ) {}

  /** The newest turns, in their order. `omitted`: how many before them are left out. */
  newest(turns: readonly Turn[]): { readonly messages: readonly Message[]; readonly omitted: number } {
    const newestFirst: (readonly Message[])[] = []
    for (const turn of turns.toReversed()) {
      if (this.used >= this.charactersMax) break
      newestFirst.push(this.#messages(turn))
    }
    return { messages: newestFirst.reverse().flat(), omitted: turns.length - newestFirst.length }
  }

  /** The results of tools are messages of their own. */
  #messages({ role, blocks }: Turn): readonly Message[] {
    const messages: { role: Message['role']; parts: object[] }[] = []
    for (const block of blocks) {
      const isResult = block.kind === 'tool-result'
      const parts = isResult ? [this.#toolResult(block)] : this.parts([block])
      const last = messages.at(-1)
      if (last && !isResult && last.role === role) last.parts.push(...parts)
      else messages.push({ role: isResult ? 'tool' : role, parts })
    }
    return messages
  }

  #toolResult({ callId, content }: { readonly callId: string; readonly content: readonly ContentBlock[] }): object {
    const response = content.map((block) => this.#shown(block)).join('\n')
    return { type: 'tool_call_response', id: callId, response }
  }

  parts(blocks: readonly (AssistantBlock | ContentBlock)[]): object[] {
    return blocks.flatMap((block): object[] => {
      switch (block.kind) {
        case 'tool-call':
          return [{ type: 'tool_call', id: block.id, name: block.name, arguments: this.#arguments(block.arguments) }]
        case 'thinking':
          return block.text === '' ? [] : [{ type: 'reasoning', content: this.#cut(block.text) }]
        // Only its issuer can read it.
        case 'sealed-thinking':
          return []
        default:
          return [{ type: 'text', content: this.#shown(block) }]
      }
    })
  }

  text(text: string): object {
    return { type: 'text', content: this.#cut(text) }
  }

  #shown(block: ContentBlock | Extract<AssistantBlock, { kind: 'refusal' }>): string {
    if (block.kind === 'text' || block.kind === 'refusal') return this.#cut(block.text)
    const { source } = block
    if (source.kind === 'text') return this.#cut(source.text)
    if (source.kind === 'url') return this.#cut(`[${block.kind} ${source.url}]`)
    return `[${block.kind} ${source.mediaType}, ${Math.floor(source.base64.length * 0.75)} bytes, not exported]`
  }

  /** The object, where a model wrote one. */
  #arguments(text: string): unknown {
    const shown = this.#cut(text)
    const parsed = parseJson(shown)
    return isRecord(parsed) ? redactJson(parsed, this.rules) : shown
  }

  /** Whole, if there is room for all of them; otherwise their names. */
  tools(tools: Conversation['tools']): readonly object[] {
    const described = tools.map((tool) => {
      const { name, description } = tool
      const parameters = tool.kind === 'function' && tool.schema !== undefined ? parseJson(tool.schema) : undefined
      return { type: 'function', name, description, parameters }
    })
    const room = this.charactersMax - this.used
    const size = tools.reduce((sum, tool) => sum + sizeOf(tool), 0)
    if (size <= room) return redactJson(described, this.rules) as readonly object[]
    return tools.slice(0, toolNamesMax).map(({ name }) => ({ type: 'function', name }))
  }

  /** Redacts before it cuts, so that no part of a secret is left at the cut. */
  #cut(text: string): string {
    const room = Math.max(0, Math.floor(this.charactersMax - this.used))
    const isLong = text.length > room + redactedMax
    const shown = redact(isLong ? text.slice(0, room + redactedMax) : text, this.rules)
    const isCut = isLong || shown.length > room
    this.used += Math.min(shown.length, room) + partSize
    return isCut ? `${shown.slice(0, room).toWellFormed()}… [cut]` : shown
  }
}

/** What the JSON around a part has, so that many empty parts have an end too. */
const partSize = 40
const toolNamesMax = 200

function sizeOf(tool: Conversation['tools'][number]): number {
  const schema = tool.kind === 'function' ? tool.schema : undefined
  return tool.name.length + (tool.description?.length ?? 0) + (schema?.length ?? 0)
}
