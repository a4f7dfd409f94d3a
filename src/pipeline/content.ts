// The body of a request and what is read from it, each once: the conversation and its tokens. Nothing else keeps the
// body. It changes a few times at most: kept reasoning is recalled before the hold, what a provider refused or lacks is
// noted for the next attempt, and a large body is released once a reply has begun.

import { hasRow } from '../catalog/price.ts'
import type { Conversation } from '../dialects/canonical/conversation.ts'
import type { ContentTags, ParsedRequest, SentRequest } from '../dialects/canonical/translation.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { forgetReasoning } from '../dialects/request/reasoning.ts'
import { Failure } from '../kernel/failure.ts'
import type { Candidate } from '../routing/plan.ts'
import { hasBytes } from '../wire/bytes.ts'
import { JsonNode } from '../wire/json.ts'
import { bytesPerToken, countTokens, mayHaveMoreThanText, tokensOfBytes } from './estimate.ts'
import { type Recalled, recallTurns, type SessionReasoning } from './kept-reasoning.ts'

/** A request keeps at most this much of its body while it is answered. */
const keptBodyBytesMax = 64 * 1024
const releasedBody = new Uint8Array(0)
const releasedMembers = JsonNode.of('{}')
const assistantWord = Buffer.from('"assistant"')

export class Content {
  /** Of the body as it came, also once it is released. */
  readonly bodyBytes: number
  /** A provider has no path for this kind of call (`Envelope.upstreamPath`), so the call is translated. */
  lacksPath = false
  #sent: SentRequest
  #parsed: ParsedRequest | Failure | undefined
  #mayHaveMoreThanText: boolean | undefined
  #inputTokens: number | undefined
  #recalled: Recalled | undefined
  #recalledBytes = 0

  constructor(
    sent: SentRequest,
    private readonly surface: Dialect,
    /** All that may be tried: they decide which part of the content is sent. */
    private readonly candidates: readonly Candidate[],
    readonly tags: ContentTags,
  ) {
    this.#sent = sent
    this.bodyBytes = sent.body.length
  }

  /** What the caller sent, for the lanes. Its body is empty once it is released. */
  get sent(): SentRequest {
    return this.#sent
  }

  get body(): Uint8Array {
    return this.#sent.body
  }

  /** The canonical form, parsed once. */
  parsed(): ParsedRequest | Failure {
    this.#parsed ??= this.surface.translation.parseRequest(this.#sent, this.tags)
    return this.#parsed
  }

  /** undefined if it was not needed so far, or cannot be parsed. */
  get parsedSoFar(): ParsedRequest | undefined {
    return this.#parsed instanceof Failure ? undefined : this.#parsed
  }

  /** undefined if the body cannot be parsed. */
  conversation(): Conversation | undefined {
    if (this.#sent.envelope.embeddings) return undefined
    const parsed = this.parsed()
    return parsed instanceof Failure ? undefined : parsed.conversation
  }

  /** The part of it that providers get: without their own tools where no route passes them on. */
  sentConversation(): Conversation | undefined {
    const conversation = this.conversation()
    if (!conversation || conversation.unsupported.length === 0) return conversation
    const passing = this.candidates.filter(
      ({ dialect }) => dialect.id === this.surface.id && !this.#sent.envelope.isForeign,
    )
    const maySearch = passing.some(({ isOwn, model: { price, hostedTools } }) => {
      const isListed = hostedTools.some((type) => type.startsWith('web_search'))
      return isOwn || price.free || hasRow(price, 'web_search') || isListed
    })
    // Other tools are passed on or refused; a search may also be left out.
    const unsupported = conversation.unsupported.filter(({ refuse, maxSearches }) =>
      maxSearches !== undefined && !refuse ? maySearch : passing.length > 0,
    )
    return unsupported.length === conversation.unsupported.length ? conversation : { ...conversation, unsupported }
  }

  /** The most web searches that the request asks the provider to run. */
  requestedSearches(): number {
    const unsupported = this.sentConversation()?.unsupported ?? []
    return unsupported.reduce((sum, { maxSearches = 0 }) => sum + maxSearches, 0)
  }

  /** Whether the body may contain more than text, so that its size says little about its tokens. */
  get mayHaveMoreThanText(): boolean {
    // OpenAI's clients ask for vectors as `base64`, one of the words that mean media in other requests.
    this.#mayHaveMoreThanText ??= !this.#sent.envelope.embeddings && mayHaveMoreThanText(this.#sent.body)
    return this.#mayHaveMoreThanText
  }

  /** Counts the parsed content, because an image is a megabyte of body and a thousand tokens. */
  inputTokens(): number {
    if (this.#inputTokens === undefined) {
      const conversation = this.conversation()
      const inBody = conversation ? countTokens(conversation) : tokensOfBytes(this.#sent.body)
      this.#inputTokens = inBody + Math.ceil(this.#recalledBytes / bytesPerToken)
    }
    return this.#inputTokens
  }

  /** undefined = they were not counted. */
  get countedTokens(): number | undefined {
    return this.#inputTokens
  }

  // ── Reasoning ──

  /** Kept reasoning of the history, for the routes that want it back. */
  get recalled(): Recalled | undefined {
    return this.#recalled
  }

  /** Its size: input that is not in the body. */
  get recalledBytes(): number {
    return this.#recalledBytes
  }

  /** The size of the prompt: the body, and what was added to it. */
  get promptBytes(): number {
    return this.bodyBytes + this.#recalledBytes
  }

  /** Finds the kept reasoning of the history, before the hold. */
  async recallReasoning(kept: SessionReasoning): Promise<void> {
    if (!hasBytes(this.#sent.body, assistantWord)) return
    const { recalled, bytes } = await recallTurns(kept, this.conversation()?.turns ?? [])
    if (bytes === 0) return
    this.#recalled = recalled
    this.#recalledBytes = bytes
  }

  /** Removes reasoning that a provider rejected, for the next attempt. False if there is none. */
  forgetReasoning(): boolean {
    const parsed = this.parsed()
    const forgotten = parsed instanceof Failure ? undefined : forgetReasoning(parsed)
    const isForgotten = forgotten !== undefined || this.#recalled !== undefined
    if (forgotten) this.#parsed = forgotten
    if (isForgotten) this.#inputTokens = undefined
    this.#recalled = undefined
    this.#recalledBytes = 0
    return isForgotten
  }

  // ── Releasing ──

  get isLarge(): boolean {
    return this.bodyBytes > keptBodyBytesMax
  }

  /** Drops the body, so that megabytes are not kept for minutes. `tokens`: its input, as counted or reported. */
  release(tokens: number): void {
    this.#inputTokens = tokens
    this.#mayHaveMoreThanText = this.mayHaveMoreThanText
    this.#parsed = undefined
    this.#recalled = undefined
    this.#sent = { ...this.#sent, body: releasedBody, members: releasedMembers }
  }
}

/** A body that is only text is estimated by its size, without parsing it. */
const unparsed = () => undefined

/** For estimates that parse the body only if its size does not tell. */
export function parserOf(content: Content): () => Conversation | undefined {
  return content.mayHaveMoreThanText ? () => content.sentConversation() : unparsed
}
