// How a request is sent to a candidate and how its reply is read: two lanes, each for a whole or a streamed answer. What
// follows (attempt.ts, stream.ts, settlement.ts) does not know which lane it was.
//
//                bytes                                     translation
//                the endpoint speaks the caller's dialect  it speaks another one, or must stream a long answer
//   request      editRequest: the caller's bytes with a    parseRequest → Conversation → renderRequest
//                few members edited in place
//   whole        relayReply: the provider's bytes with     CollectedReply: parseStream or whole → ReplyEvents →
//                model, usage and cost edited              ReplyMapper, UsageMeter → renderReply at the end
//   streamed     relayStream: the same for each event      TranslatedStream: the same events → renderStream, one by one
//
// A provider that streams although a whole reply was requested, or the other way round, is read by the translation lane's
// relays on either lane.

import { hasRow, hasTiers } from '../catalog/price.ts'
import { type HostedTools, mustStream, type RequestEdits } from '../dialects/byte-lane/edits.ts'
import type { Conversation, Turn } from '../dialects/canonical/conversation.ts'
import { type ProviderFault, replyFault } from '../dialects/canonical/faults.ts'
import type { ReplyEvent, Stop } from '../dialects/canonical/reply.ts'
import { issuerName } from '../dialects/canonical/signature.ts'
import {
  type EventNumbering,
  noHeaders,
  type RenderContext,
  type ReplyMapping,
  type StreamParser,
  type StreamRenderer,
  type Target,
  type Warning,
} from '../dialects/canonical/translation.ts'
import type { Dialect, UpstreamDialect } from '../dialects/dialect.ts'
import type { ReplyBlocks } from '../dialects/reply/blocks.ts'
import type { RelayReply, StreamRelay } from '../dialects/reply/relay.ts'
import { ReplyMapper, UsageMeter } from '../dialects/reply/stages.ts'
import { placeMarks } from '../dialects/request/cache-marks.ts'
import { paramOf, WarningList } from '../dialects/request/fields.ts'
import { assert, Failure, invalidRequest } from '../kernel/failure.ts'
import type { Usage } from '../kernel/usage.ts'
import { wrappings } from '../providers/wrapping/wrappings.ts'
import type { Candidate, OfferedModel } from '../routing/plan.ts'
import { isStrict } from './answer.ts'
import { replyBlocksFor } from './capture-content.ts'
import type { Content } from './content.ts'
import { answeredText, ReplyKeeper, withRecalled } from './kept-reasoning.ts'
import type { Meter } from './meter.ts'
import type { DeriveCacheKey, SessionSettings } from './session.ts'
import type { Admitted, Held } from './stages.ts'

export interface Lane {
  readonly name: 'bytes' | 'translation'
  /** Path, headers and body as the host expects them, without its credential. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  /** Members that were dropped or approximated. */
  readonly warnings: readonly Warning[]
  /** Whether a stream is requested upstream, which can also be so for a caller that wants a whole reply. */
  readonly streamsUpstream: boolean
  /** How long a working provider may take to generate a whole reply: 0 for a stream, infinite if not known. */
  readonly generationMs: number
  /** For a caller that wants a whole reply and a provider that sent one. Reserves the cost (`Meter`) and writes it into the body. */
  relayReply(body: Uint8Array<ArrayBuffer>): ReturnType<RelayReply>
  relayStream(): StreamRelay
  /** Relays a whole reply that was sent in place of a stream. `bytes`: what precedes the terminal bytes. */
  relayWhole(reply: Uint8Array): { readonly relay: StreamRelay; readonly bytes: Uint8Array }
}

export interface LaneDependencies {
  readonly deriveCacheKey: DeriveCacheKey
  readonly settings: { readonly current: { readonly sessions: SessionSettings } }
}

export function openLane(deps: LaneDependencies, held: Held, candidate: Candidate, meter: Meter): Lane | Failure {
  const { surface, http } = held.exchange
  const { envelope, content } = held.admitted
  const { model } = candidate
  if (envelope.embeddings) return embeddingsLane(held, candidate, meter)
  const isPassable = candidate.dialect.id === surface.id && !envelope.isForeign
  // Nothing is streamed in a batch of the provider.
  const mustBeStream = !candidate.inBatch && mustStream(envelope, candidate.rules, model.defaultMaxTokens)
  const isSame = isPassable && !content.lacksPath && !mustBeStream
  const plain = isSame ? byteLane(deps, held, candidate, meter) : translationLane(deps, held, candidate, meter)
  if (plain instanceof Failure) return plain
  const lane = wrapForHost(plain, candidate)
  if (lane instanceof Failure) return lane
  if (lane.warnings.length > 0 && isStrict(http.headers)) return strictRefusal(lane.warnings)
  return lane
}

/** Vectors: the same two ways, without a stream. */
function embeddingsLane({ exchange, admitted }: Held, candidate: Candidate, meter: Meter): Lane | Failure {
  const { surface, http } = exchange
  const { envelope, content } = admitted
  const { dialect, route, rules, isOwn, provider } = candidate
  const asked = surface.embeddings
  const upstream = dialect.embeddings
  assert(asked, 'only a surface with embeddings has their paths')
  if (!upstream) {
    return new Failure(
      'NOT_FOUND',
      `Provider ${provider.id} is called through an API that has no embeddings. Use another model.`,
    )
  }
  const isSame = dialect.id === surface.id
  const parsed = isSame ? undefined : asked.parseRequest(content.sent)
  if (parsed instanceof Failure) return parsed
  const sent = parsed
    ? upstream.renderRequest(parsed, targetsOf(candidate).streamed)
    : asked.editRequest(content.sent, { upstreamModel: route.upstreamModel, defaultOutputCap: undefined, isOwn, rules })
  if (sent instanceof Failure) return sent
  const relayReply: Lane['relayReply'] = isSame
    ? (reply) => asked.relayReply(envelope)(reply, meter)
    : (body) => {
        const reply = upstream.parseReply(body)
        if ('fault' in reply) return reply
        if (reply.vectors.length !== parsed?.inputs.length) return { fault: replyFault('another number of vectors') }
        const usage = meter.quoteUsage(reply.usage, undefined, () => 0)
        return {
          body: encoder.encode(asked.renderReply({ ...reply, usage }, envelope, meter.renderContext())),
          usage,
        }
      }
  const lane = wrapForHost(
    {
      name: isSame ? 'bytes' : 'translation',
      path: pathOf(candidate, sent.path, false),
      headers: isSame ? surface.forwardedHeaders(http.headers) : noHeaders,
      body: sent.body,
      warnings: sent.warnings,
      streamsUpstream: false,
      generationMs: Number.POSITIVE_INFINITY,
      relayReply,
      relayStream: notStreamed,
      relayWhole: notStreamed,
    },
    candidate,
  )
  if (lane instanceof Failure) return lane
  return lane.warnings.length > 0 && isStrict(http.headers) ? strictRefusal(lane.warnings) : lane
}

function notStreamed(): never {
  throw new Error('embeddings are not streamed')
}

function byteLane(deps: LaneDependencies, held: Held, candidate: Candidate, meter: Meter): Lane | Failure {
  const { exchange, admitted, hold } = held
  const { surface, http } = exchange
  const { content } = admitted
  const { model, route, rules, isOwn } = candidate
  const edits: RequestEdits = {
    upstreamModel: route.upstreamModel,
    defaultOutputCap: model.defaultMaxTokens,
    affordableOutputCap: hold.loweredCap,
    maxOutputTokens: model.maxOutputTokens,
    isOwn,
    hostedTools: isOwn ? undefined : hostedToolsOf(model, content),
    rules,
    namesTier: namesTier(candidate),
    contentTags: content.tags,
    sessionCacheKey: () => sessionCacheKey(deps, admitted),
  }
  const { body, warnings, refused } = surface.editRequest(content.sent, edits)
  return refused ?? new ByteLane(held, candidate, meter, surface.forwardedHeaders(http.headers), body, warnings)
}

/** A class: an object with a closure for each member costs four times as much, for every request. */
class ByteLane implements Lane {
  readonly name = 'bytes'
  readonly path: string
  readonly streamsUpstream: boolean
  readonly generationMs: number

  constructor(
    private readonly held: Held,
    private readonly candidate: Candidate,
    private readonly meter: Meter,
    readonly headers: Lane['headers'],
    readonly body: Lane['body'],
    readonly warnings: Lane['warnings'],
  ) {
    const { stream, upstreamPath } = held.admitted.envelope
    this.path = pathOf(candidate, upstreamPath, stream)
    this.streamsUpstream = stream
    this.generationMs = stream ? 0 : Number.POSITIVE_INFINITY
  }

  relayReply(reply: Uint8Array<ArrayBuffer>): ReturnType<RelayReply> {
    return this.held.exchange.surface.relayReply(reply, this.meter)
  }

  // A provider that streams without being asked to, or does not although it was, is read as on the other lane.

  relayStream(): StreamRelay {
    const { surface } = this.held.exchange
    return this.streamsUpstream ? surface.relayStream(this.meter) : this.#translated()
  }

  relayWhole(reply: Uint8Array): ReturnType<Lane['relayWhole']> {
    return wholeThrough(this.#translated(), reply)
  }

  #translated(): TranslatedStream | CollectedReply {
    return relayTranslated(this.held, this.candidate, this.meter, targetsOf(this.candidate).streamed, noMapping)
  }
}

function pathOf({ dialect, route }: Candidate, upstreamPath: string | undefined, isStreamed: boolean): string {
  return upstreamPath ?? dialect.generationPath(route.upstreamModel, isStreamed)
}

/** undefined = the body cannot offer any, or the whole model is free on purpose. */
function hostedToolsOf(model: OfferedModel, content: Content): HostedTools | undefined {
  if (model.price.free || !content.mayHaveMoreThanText) return undefined
  return { searches: hasRow(model.price, 'web_search'), allowed: model.hostedTools }
}

/** The caller's bytes were sent unchanged. */
const noMapping: ReplyMapping = {
  toolNames: new Map(),
  customTools: new Set(),
  stop: [],
}

function translationLane(deps: LaneDependencies, held: Held, candidate: Candidate, meter: Meter): Lane | Failure {
  const { content, envelope } = held.admitted
  const parsed = content.parsed()
  if (parsed instanceof Failure) return parsed
  const { streamed, whole } = targetsOf(candidate)
  const { issuer } = streamed
  const recalled = withRecalled(parsed.conversation, content.recalled, { dialect: candidate.dialect.id, issuer })
  const keyed = withCacheKey(deps, affordable(recalled, held, candidate), held, candidate)
  const marked = withMarks(deps, keyed, held, candidate)
  const conversation = envelope.upstreamPath === undefined ? marked : askForSummary(marked)
  const wholeTokens = envelope.stream ? undefined : candidate.inBatch ? 0 : wholeReplyTokens(conversation, streamed)
  const target = wholeTokens === undefined ? streamed : whole
  const rendered = candidate.dialect.translation.renderRequest(conversation, target)
  if (rendered instanceof Failure) return rendered
  const { headers, body, mapping } = rendered
  const warnings = new WarningList()
  warnings.addAll(parsed.warnings)
  warnings.addAll(rendered.warnings)
  return new TranslationLane(held, candidate, meter, target, mapping, headers, body, warnings.list, wholeTokens)
}

class TranslationLane implements Lane {
  readonly name = 'translation'
  readonly path: string
  readonly streamsUpstream: boolean
  readonly generationMs: number

  constructor(
    private readonly held: Held,
    private readonly candidate: Candidate,
    private readonly meter: Meter,
    private readonly target: Target,
    private readonly mapping: ReplyMapping,
    readonly headers: Lane['headers'],
    readonly body: Lane['body'],
    readonly warnings: Lane['warnings'],
    wholeTokens: number | undefined,
  ) {
    this.streamsUpstream = wholeTokens === undefined
    this.path = pathOf(candidate, undefined, this.streamsUpstream)
    this.generationMs = (wholeTokens ?? 0) * tokenMs
  }

  relayReply(reply: Uint8Array): ReturnType<RelayReply> {
    return collectedReply(this.relayWhole(reply).relay)
  }

  relayStream(): TranslatedStream | CollectedReply {
    return relayTranslated(this.held, this.candidate, this.meter, this.target, this.mapping)
  }

  relayWhole(reply: Uint8Array): ReturnType<Lane['relayWhole']> {
    return wholeThrough(this.relayStream(), reply)
  }
}

/** The whole reply of a relay that collects one. */
export function collectedReply({ finished, usage, terminal, fault }: StreamRelay): ReturnType<RelayReply> {
  return finished && usage ? { body: terminal, usage } : { fault: fault ?? replyFault('an empty answer') }
}

/** The most output tokens of a whole reply. Longer answers are streamed, because proxies close idle connections. */
const wholeOutputMax = 8_000

/** For each token of a whole reply: providers generate at least 25 per second. */
const tokenMs = 40

/**
 * The maximum tokens of a whole reply that the caller wants, if one is requested upstream: it cannot be long.
 * Stop sequences need a stream: if the gateway matches them itself, it ends the call there.
 */
function wholeReplyTokens({ stop, outputCap }: Conversation, target: Target): number | undefined {
  const { defaultOutputCap, maxOutputTokens = Number.POSITIVE_INFINITY, rules } = target
  if (stop.length > 0 || rules.capExcludesReasoning) return undefined
  const cap = Math.min(outputCap ?? defaultOutputCap ?? maxOutputTokens, maxOutputTokens)
  return cap <= Math.min(wholeOutputMax, rules.unstreamedOutputMax ?? wholeOutputMax) ? cap : undefined
}

const summaryRequest = `Summarize our conversation so far, for yourself: your summary will take its place, and you will continue from it without seeing anything else. Include what I asked for and every rule that I gave, in my words where the wording matters; decisions and their reasons; facts, names, paths, identifiers, figures and code that are still needed; what was done and how it ended; and what is left to do. Do not continue the task, do not call tools, and write only the summary.`

/** A compaction for providers without one: the model writes a summary of the conversation. */
function askForSummary(conversation: Conversation): Conversation {
  const asked: Turn = { role: 'user', blocks: [{ kind: 'text', text: summaryRequest }], pointer: '/input' }
  // Tools stay, because the calls of the history are invalid without them.
  const toolChoice = conversation.tools.length > 0 ? ({ kind: 'none' } as const) : undefined
  return { ...conversation, turns: [...conversation.turns, asked], toolChoice, outputFormat: undefined }
}

/** Caps the output at what the wallet can pay for. */
function affordable(conversation: Conversation, { hold }: Held, { model }: Candidate): Conversation {
  const { loweredCap } = hold
  if (loweredCap === undefined) return conversation
  const asked = conversation.outputCap ?? model.defaultMaxTokens ?? loweredCap
  return { ...conversation, outputCap: Math.min(asked, loweredCap) }
}

/** The key under which a provider may cache the session; undefined = there is no session. */
function sessionCacheKey({ deriveCacheKey }: LaneDependencies, { session, caller }: Admitted): string | undefined {
  return session && deriveCacheKey(caller.workspaceId, session)
}

/** The cache key of the session, for a host that uses one and a caller that sent none. */
function withCacheKey(
  deps: LaneDependencies,
  conversation: Conversation,
  { admitted }: Held,
  { rules }: Candidate,
): Conversation {
  if (!rules.promptCacheKey || conversation.promptCacheKey !== undefined) return conversation
  return { ...conversation, promptCacheKey: sessionCacheKey(deps, admitted) }
}

/** Marks for the prompt cache, unless the model, the installation or the caller turns them off. */
function withMarks(
  { settings }: LaneDependencies,
  conversation: Conversation,
  { exchange, admitted }: Held,
  { model, rules, dialect }: Candidate,
): Conversation {
  const { surface, http } = exchange
  // A caller of the provider's own dialect sets them itself.
  if (
    !rules.cachesOnlyMarked ||
    dialect.id === surface.id ||
    !(model.cacheMarks ?? settings.current.sessions.cacheMarks)
  )
    return conversation
  if (http.headers.get('x-tollgate-cache-marks')?.toLowerCase() === 'off') return conversation
  return placeMarks(conversation, rules, admitted.session?.isNamed ?? false)
}

/** A host may accept less than its dialect; what is not sent is one more warning. */
function wrapForHost(plain: Lane, { endpoint }: Candidate): Lane | Failure {
  const wrapping = endpoint.wrapping && wrappings[endpoint.wrapping]
  if (!wrapping) return plain
  const { path, name, headers, body, streamsUpstream, generationMs } = plain
  const wrapped = wrapping.wrap({ path, headers, body }, endpoint)
  assert(wrapped, 'every host generates')
  if (wrapped.refused) return wrapped.refused
  const warnings = new WarningList()
  warnings.addAll(plain.warnings)
  warnings.addAll(wrapped.warnings)
  return {
    ...{ name, streamsUpstream, generationMs, ...wrapped, warnings: warnings.list },
    relayReply: (reply) => plain.relayReply(reply),
    relayStream: () => plain.relayStream(),
    relayWhole: (reply) => plain.relayWhole(reply),
  }
}

/** Whether the provider is told that the standard tier is wanted, where it might choose another one. A batch has its own. */
function namesTier({ isOwn, inBatch, model }: Candidate): boolean {
  return !isOwn && !inBatch && hasTiers(model.price)
}

interface Targets {
  readonly streamed: Target
  readonly whole: Target
}

const knownTargets = new WeakMap<Candidate, Targets>()

function targetsOf(candidate: Candidate): Targets {
  const known = knownTargets.get(candidate)
  if (known) return known
  const { model, provider, endpoint, route, rules } = candidate
  const streamed: Target = {
    upstreamModel: route.upstreamModel,
    issuer: issuerName(provider.id, endpoint.dialect, route.upstreamModel),
    rules,
    defaultOutputCap: model.defaultMaxTokens,
    maxOutputTokens: model.maxOutputTokens,
    namesTier: namesTier(candidate),
  }
  const targets = { streamed, whole: { ...streamed, wantsWhole: true } }
  knownTargets.set(candidate, targets)
  return targets
}

const strictMessageMax = 2000

export function strictRefusal(lost: readonly Warning[]): Failure {
  const list = lost.map(({ code, field }) => `${code} (${paramOf(field)})`).join(', ')
  const message = `x-tollgate-strict: this request cannot be translated without loss. It would drop ${list}.`
  return invalidRequest(message.slice(0, strictMessageMax), lost[0] && paramOf(lost[0].field))
}

// ── Replies of the translation lane ──

/** A separate function: the relay lives as long as the answer, and must not keep the rendered request alive. */
function relayTranslated(
  held: Held,
  { dialect }: Candidate,
  meter: Meter,
  target: Target,
  mapping: ReplyMapping,
): TranslatedStream | CollectedReply {
  const { surface, record } = held.exchange
  const note = (text: string) => void record.notes.push(text)
  const keeper = keeperFor(held, dialect)
  const translated = { from: dialect, to: surface, target, mapping, context: meter.renderContext(), note, keeper }
  if (!held.admitted.envelope.stream) return new CollectedReply(translated)
  return new TranslatedStream({ ...translated, said: replyBlocksFor(record) })
}

/** undefined = the caller sends reasoning back itself, or none is kept. */
function keeperFor({ exchange, admitted }: Held, dialect: UpstreamDialect): ReplyKeeper | undefined {
  const { keptReasoning, content } = admitted
  if (!keptReasoning || dialect.id === exchange.surface.id) return undefined
  return new ReplyKeeper(keptReasoning, dialect.id, answeredText(content.conversation()?.turns ?? []))
}

function wholeThrough(relay: TranslatedRelay, reply: Uint8Array): ReturnType<Lane['relayWhole']> {
  const bytes = relay.whole(reply)
  return { relay, bytes }
}

export interface Translated {
  readonly from: UpstreamDialect
  readonly to: Dialect
  readonly target: Target
  readonly mapping: ReplyMapping
  readonly context: RenderContext
  /** Adds a note about an oddity of the reply to the request's record. */
  note(text: string): void
  readonly keeper?: ReplyKeeper | undefined
  /** Where the blocks of a stream are gathered, if its content is exported. */
  readonly said?: ReplyBlocks | undefined
}

/** Characters of a provider's stop reason that are recorded. */
const stopReasonMax = 64

const nothing = new Uint8Array(0)
const encoder = new TextEncoder()

/** Parses the provider's stream into canonical events and applies the mapping; subclasses render them. */
abstract class TranslatedRelay implements StreamRelay {
  meaningful = false
  finished = false
  terminal: Uint8Array = nothing
  fault: ProviderFault | undefined
  bytesAtReport: number | undefined
  readonly said: ReplyBlocks | undefined
  /** The last usage that counted output. */
  #counted: Usage | undefined
  readonly #parser: StreamParser
  readonly #mapper: ReplyMapper
  readonly #usageMeter: UsageMeter
  readonly #note: Translated['note']
  readonly #keeper: ReplyKeeper | undefined
  readonly #isSameDialect: boolean

  constructor({ from, to, target, mapping, context, note, keeper, said }: Translated) {
    this.said = said
    this.#note = note
    this.#keeper = keeper
    this.#isSameDialect = from.id === to.id
    this.#parser = from.translation.parseStream(target, context.requestId)
    this.#mapper = new ReplyMapper(mapping)
    this.#usageMeter = new UsageMeter(context)
  }

  get isStoppedEarly(): boolean {
    return this.#mapper.isStoppedEarly
  }

  get usage(): Usage | undefined {
    return this.#usageMeter.usage
  }

  get usageSoFar(): Usage | undefined {
    return this.#parser.usageSoFar ?? this.#usageMeter.usageAtStart
  }

  get usageAtStart(): Usage | undefined {
    return this.#parser.usageAtStart
  }

  get outputBytes(): number {
    return this.#usageMeter.outputBytes + this.#mapper.heldBytes
  }

  push(chunk: Uint8Array): Uint8Array {
    return this.#write(this.#parser.push(chunk))
  }

  end(): Uint8Array {
    return this.#write(this.#parser.end())
  }

  /** Reads a whole reply, instead of `push` and `end`. */
  whole(reply: Uint8Array): Uint8Array {
    return this.#write(this.#parser.whole(reply))
  }

  abstract keepAlive(): Uint8Array

  /** The client's text for an event. */
  protected abstract take(event: ReplyEvent): string

  #write(events: readonly ReplyEvent[]): Uint8Array {
    let text = ''
    for (const parsed of events) {
      for (const mapped of this.#mapper.push(parsed)) {
        // Ignore everything after the end or an error.
        if (this.finished || this.fault !== undefined) break
        if (mapped.type === 'reply-end') this.#usageMeter.usageAtStart ??= this.usageAtStart
        // The end of a reply is quoted here, by the Meter behind the context.
        const event = this.#usageMeter.measure(mapped)
        if (event.type === 'reply-failure') this.fault = event.fault
        else text += this.take(event.type === 'reply-start' && !this.#isSameDialect ? withoutId(event) : event)
        this.#keeper?.take(event)
        this.said?.take(event)
        if (event.type === 'reply-end') this.#noteOddities(event.stop)
      }
    }
    this.#noteCount()
    return text === '' ? nothing : encoder.encode(text)
  }

  /** A count covers everything that arrived with it: hosts that count on the way do so in every record. */
  #noteCount(): void {
    const { usageSoFar, isOutputUncounted } = this.#parser
    if (usageSoFar === this.#counted || isOutputUncounted) return
    this.#counted = usageSoFar
    this.bytesAtReport = this.outputBytes
  }

  #noteOddities({ unified, raw, isUnknown }: Stop): void {
    const { skipped } = this.#parser
    const word = JSON.stringify(raw.slice(0, stopReasonMax))
    if (skipped > 0) this.#note(`${skipped} unreadable records left out`)
    if (isUnknown) this.#note(`ended with ${word}, taken for an ordinary end`)
    // Only hosted tools pause, and this lane cannot request any (docs/decisions/0009).
    if (unified === 'pause') this.#note(`paused with ${word}, not continued`)
  }
}

/**
 * The reply then gets an id of ours. Hosts may repeat theirs, as Gemini hosts with a constant `responseId` do, and Claude
 * Code joins answers that share one (https://github.com/Accio-Lab/Dressage/issues/39, 2026-08).
 */
function withoutId(start: Extract<ReplyEvent, { type: 'reply-start' }>): ReplyEvent {
  return { ...start, id: undefined }
}

export class TranslatedStream extends TranslatedRelay {
  readonly #renderer: StreamRenderer

  constructor(translated: Translated) {
    super(translated)
    this.#renderer = translated.to.translation.renderStream(translated.context)
  }

  get numbering(): EventNumbering | undefined {
    return this.#renderer.numbering
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

/** Collects all events into a whole reply. Nothing is sent before the last, so any failure can move to another route. */
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
    const reply = to.translation.renderReply(this.#events, context)
    if (reply === '') {
      this.fault = replyFault('an empty summary')
      return ''
    }
    this.meaningful = true
    this.finished = true
    this.terminal = encoder.encode(reply)
    return ''
  }
}

/** Whether a client would display it: the start of a text or thinking block alone is not displayed. */
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
