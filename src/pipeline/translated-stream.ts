// The translation lane's reply: the provider's stream read into canonical events, put right, and written in the caller's
// dialect, event by event or as one whole. Seen from outside it is a relay like that of the byte lane.

import type { StreamRelay } from '../dialects/byte-lane/relay.ts'
import type { ProviderFault } from '../dialects/canonical/faults.ts'
import type { ReplyEvent, Stop } from '../dialects/canonical/reply.ts'
import type {
  RenderContext,
  ReplyMapping,
  StreamParser,
  StreamRenderer,
  Target,
} from '../dialects/canonical/translation.ts'
import type { Dialect, UpstreamDialect } from '../dialects/dialect.ts'
import { ReplyMapper, UsageMeter } from '../dialects/reply/stages.ts'
import type { Usage } from '../kernel/usage.ts'

export interface Translated {
  readonly from: UpstreamDialect
  readonly to: Dialect
  readonly target: Target
  readonly mapping: ReplyMapping
  readonly context: RenderContext
  /** For the record of the request: something about the reply was odd, and what became of it. */
  note(text: string): void
}

/** Characters of a provider's word that go into a record. */
const wordMax = 64

const nothing = new Uint8Array(0)
const encoder = new TextEncoder()

/** Reads the provider's side; what becomes of an event is for the two below to say. */
abstract class TranslatedRelay implements StreamRelay {
  meaningful = false
  finished = false
  terminal: Uint8Array = nothing
  fault: ProviderFault | undefined
  countedBytes: number | undefined
  /** The last that counted output. */
  #counted: Usage | undefined
  readonly #parser: StreamParser
  readonly #mapper: ReplyMapper
  readonly #meter: UsageMeter
  readonly #note: Translated['note']

  constructor({ from, target, mapping, context, note }: Translated) {
    this.#note = note
    this.#parser = from.translation.parseStream(target)
    this.#mapper = new ReplyMapper(mapping)
    this.#meter = new UsageMeter(context)
  }

  get isCut(): boolean {
    return this.#mapper.isCut
  }

  get usage(): Usage | undefined {
    return this.#meter.usage
  }

  get usageSoFar(): Usage | undefined {
    return this.#parser.usageSoFar ?? this.#meter.usageSoFar
  }

  get outputBytes(): number {
    return this.#meter.outputBytes
  }

  push(chunk: Uint8Array): Uint8Array {
    return this.#write(this.#parser.push(chunk))
  }

  end(): Uint8Array {
    return this.#write(this.#parser.end())
  }

  abstract keepAlive(): Uint8Array

  /** What the client gets for an event, as text. */
  protected abstract take(event: ReplyEvent): string

  #write(events: readonly ReplyEvent[]): Uint8Array {
    let text = ''
    for (const parsed of events) {
      for (const mapped of this.#mapper.push(parsed)) {
        for (const event of this.#meter.push(mapped)) {
          // After the end or an error nothing more counts, whatever a provider still sends.
          if (this.finished || this.fault !== undefined) break
          if (event.type === 'reply-failure') this.fault = event.fault
          else text += this.take(event)
          if (event.type === 'reply-end') this.#noteOddities(event.stop)
        }
      }
    }
    this.#noteCount()
    return text === '' ? nothing : encoder.encode(text)
  }

  /** A count is for all that came with it: those that count on the way do so in every record. */
  #noteCount(): void {
    const { usageSoFar, isOutputUncounted } = this.#parser
    if (usageSoFar === this.#counted || isOutputUncounted) return
    this.#counted = usageSoFar
    this.countedBytes = this.outputBytes
  }

  #noteOddities({ unified, raw, isUnknown }: Stop): void {
    const { skipped } = this.#parser
    const word = JSON.stringify(raw.slice(0, wordMax))
    if (skipped > 0) this.#note(`${skipped} unreadable records left out`)
    if (isUnknown) this.#note(`ended with ${word}, taken for an ordinary end`)
    // Only tools that a provider runs itself make it pause, and none can be asked for on this lane (docs/decisions/0009).
    if (unified === 'pause') this.#note(`paused with ${word}, not continued`)
  }
}

export class TranslatedStream extends TranslatedRelay {
  readonly #renderer: StreamRenderer

  constructor(translated: Translated) {
    super(translated)
    this.#renderer = translated.to.translation.renderStream(translated.context)
  }

  keepAlive(): Uint8Array {
    return encoder.encode(this.#renderer.render({ type: 'keep-alive' }))
  }

  protected take(event: ReplyEvent): string {
    this.meaningful ||= isMeaningful(event)
    const text = this.#renderer.render(event)
    if (event.type === 'reply-end') {
      this.finished = true
      this.terminal = encoder.encode(this.#renderer.terminal)
    }
    return text
  }
}

/** Gathers all events; until the last one nothing is committed, so every failure before it can move on unseen. */
export class CollectedReply extends TranslatedRelay {
  readonly isWhole = true
  readonly #translated: Translated
  readonly #events: ReplyEvent[] = []

  constructor(translated: Translated) {
    super(translated)
    this.#translated = translated
  }

  keepAlive(): Uint8Array {
    return nothing
  }

  protected take(event: ReplyEvent): string {
    if (event.type !== 'keep-alive') this.#events.push(event)
    if (event.type !== 'reply-end') return ''
    const { to, context } = this.#translated
    this.meaningful = true
    this.finished = true
    this.terminal = encoder.encode(to.translation.renderReply(this.#events, context))
    return ''
  }
}

/** Something a client would show: a start of text or thinking alone is not. */
function isMeaningful(event: ReplyEvent): boolean {
  switch (event.type) {
    case 'text-delta':
    case 'thinking-delta':
    case 'arguments-delta':
      return event.text !== ''
    case 'block-start':
      return event.block.kind === 'tool-call' || event.block.kind === 'sealed-thinking'
    case 'reply-end':
      return true
    default:
      return false
  }
}
