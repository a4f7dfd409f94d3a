// Signed reasoning of the last hour, for clients that do not send it back. Providers want it back with later turns, and chat
// clients drop it. It is kept in memory (and in Redis, if replicas share one), sealed, per workspace and session, and found
// by the message it belongs to, so that another conversation cannot get it. Never written to disk. Items that clients of
// Responses refer to by id are kept in the same place (kept-items.ts).

import type {
  AssistantBlock,
  Conversation,
  SealedThinkingBlock,
  ThinkingBlock,
  Turn,
} from '../dialects/canonical/conversation.ts'
import type { ReplyBlock, ReplyEvent } from '../dialects/canonical/reply.ts'
import { isDisplayOnly, isOwnSignature, readSignature } from '../dialects/canonical/signature.ts'
import type { DialectId } from '../dialects/dialect.ts'
import { type PlacedReasoning, placeReasoning, reasoningPlaces } from '../dialects/openai-chat/reasoning.ts'
import { isThinking, proofOf } from '../dialects/request/reasoning.ts'
import type { Clock } from '../kernel/clock.ts'
import type { SharedCache } from '../store/shared-cache.ts'
import { open, seal } from '../tenancy/sealing.ts'

type Reasoning = ThinkingBlock | SealedThinkingBlock

/** The reasoning of one reply; none if the model did not reason. */
export interface KeptTurn {
  readonly dialect: DialectId
  readonly blocks: readonly PlacedReasoning<Reasoning>[]
}

export type KeptReasoning = ReturnType<typeof createKeptReasoning>

/** The part of it that one session can reach. */
export interface SessionReasoning {
  readonly store: KeptReasoning
  readonly workspaceId: string
  readonly sessionId: string
}

export interface KeptReasoningOptions {
  readonly clock: Clock
  /** 32 bytes. */
  readonly secret: Uint8Array
  readonly shared?: SharedCache | undefined
  readonly bytesMax?: number
}

/** Since its last use, like the longest prompt cache: without its reasoning a prompt no longer matches its cache. */
const lifetimeMs = 3_600_000
/** The shared copy is renewed after this time, not with every turn. */
const renewMs = 600_000
const entriesMax = 50_000
const bytesMaxUsual = 64 * 1024 * 1024
/** About 100,000 tokens; longer is not kept. */
export const keptBytesMax = 512 * 1024

interface Entry {
  readonly sealed: string
  readonly usedMs: number
  readonly sharedMs: number
}

export function createKeptReasoning(options: KeptReasoningOptions) {
  const { clock, secret, shared, bytesMax = bytesMaxUsual } = options
  /** Ordered by last use. */
  const entries = new Map<string, Entry>()
  let bytes = 0
  const remove = (key: string): void => {
    bytes -= entries.get(key)?.sealed.length ?? 0
    entries.delete(key)
  }
  const put = (key: string, sealed: string, sharedMs: number): void => {
    remove(key)
    entries.set(key, { sealed, usedMs: clock.monotonicMs(), sharedMs })
    bytes += sealed.length
    for (const oldest of entries.keys()) {
      if (bytes <= bytesMax && entries.size <= entriesMax && !isOver(oldest)) break
      remove(oldest)
    }
  }
  const isOver = (key: string): boolean => clock.monotonicMs() - (entries.get(key)?.usedMs ?? 0) >= lifetimeMs
  const share = (key: string, sealed: string): void => shared?.set(key, sealed, lifetimeMs)
  const opened = (key: string, sealed: string | undefined): string | undefined => {
    const plain = sealed === undefined ? undefined : open(secret, sealed, key)
    return plain?.toString()
  }
  const findShared = async (key: string, cache: SharedCache): Promise<string | undefined> => {
    const sealed = await cache.get(key)
    const text = opened(key, sealed)
    if (text !== undefined && sealed !== undefined) put(key, sealed, clock.monotonicMs())
    return text
  }
  return {
    /** A promise only if replicas share. */
    find(key: string): string | undefined | Promise<string | undefined> {
      const entry = isOver(key) ? undefined : entries.get(key)
      if (!entry) return shared && findShared(key, shared)
      const nowMs = clock.monotonicMs()
      const isDue = nowMs - entry.sharedMs >= renewMs
      if (isDue) share(key, entry.sealed)
      put(key, entry.sealed, isDue ? nowMs : entry.sharedMs)
      return opened(key, entry.sealed)
    },
    keep(key: string, text: string): void {
      const sealed = seal(secret, Buffer.from(text), key)
      put(key, sealed, clock.monotonicMs())
      share(key, sealed)
    },
    size: () => ({ entries: entries.size, bytes }),
  }
}

// ── Which message it belongs to ──

/**
 * Names a reply by the ids of its calls, which are unique, or else by its text and the turn it answers. Without white space:
 * clients trim. undefined = it said nothing.
 */
function keyOf(
  { workspaceId, sessionId }: SessionReasoning,
  said: readonly (AssistantBlock | SaidBlock)[],
  answered: string,
): string | undefined {
  const calls = said.flatMap((block) => (block.kind === 'tool-call' ? [block.id] : []))
  const text = calls.length > 0 ? '' : textOf(said)
  if (calls.length === 0 && text === '') return undefined
  const parts = [workspaceId, sessionId, calls, text, calls.length > 0 ? '' : answered]
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(parts)).digest('base64url')
}

type SaidBlock =
  | { readonly kind: 'text' | 'refusal'; readonly text: string }
  | { readonly kind: 'tool-call'; id: string }

function textOf(blocks: readonly (Turn['blocks'][number] | SaidBlock)[]): string {
  let text = ''
  for (const block of blocks) {
    if (block.kind === 'text' || block.kind === 'refusal') text += block.text
    else if (block.kind === 'tool-result') text += block.callId
    if (text.length > comparedMax) break
  }
  return text.slice(0, comparedMax).replaceAll(/\s+/g, '')
}

/** Characters that distinguish one message of a session from another. */
const comparedMax = 4096

/** The text that identifies the turn that a reply answers. */
export function answeredText(turns: readonly Turn[]): string {
  return textOf(turns.at(-1)?.blocks ?? [])
}

// ── Keeping a reply ──

/** Collects the reasoning of a reply from its events, and keeps it at the end. */
export class ReplyKeeper {
  readonly #kinds: ReplyBlock['kind'][] = []
  readonly #reasoning: Reasoning[] = []
  readonly #said: SaidBlock[] = []
  #open: ReplyBlock | undefined
  #text = ''
  #signature: string | undefined
  #bytes = 0

  constructor(
    private readonly session: SessionReasoning,
    private readonly dialect: DialectId,
    /** From `answeredText`. */
    private readonly answered: string,
  ) {}

  take(event: ReplyEvent): void {
    switch (event.type) {
      case 'block-start':
        this.#open = event.block
        this.#text = ''
        this.#signature = undefined
        break
      case 'text-delta':
      case 'thinking-delta':
        this.#bytes += event.text.length
        if (this.#bytes <= keptBytesMax) this.#text += event.text
        break
      case 'signature':
        this.#bytes += event.signature.length
        this.#signature = event.signature
        break
      case 'block-end':
        this.#end()
        break
      case 'reply-end':
        this.#keep()
        break
    }
  }

  #end(): void {
    const block = this.#open
    if (!block) return
    const isSaid = block.kind === 'text' || block.kind === 'refusal'
    if (isSaid && this.#text === '') return
    this.#kinds.push(block.kind)
    if (isSaid) this.#said.push({ kind: block.kind, text: this.#text })
    else if (block.kind === 'tool-call') this.#said.push({ kind: block.kind, id: block.id })
    else if (block.kind === 'sealed-thinking') this.#reasoning.push({ kind: block.kind, data: block.data })
    else this.#reasoning.push({ kind: 'thinking', text: this.#text, signature: this.#signature })
  }

  #keep(): void {
    const key = keyOf(this.session, this.#said, this.answered)
    if (key === undefined || this.#bytes > keptBytesMax) return
    const places = reasoningPlaces(this.#kinds)
    const blocks = this.#reasoning
      .map((block, i) => ({ block, place: places[i] }))
      .filter(({ block }) => isSigned(block))
    const turn: KeptTurn = { dialect: this.dialect, blocks }
    this.session.store.keep(key, JSON.stringify(turn))
  }
}

/** Its issuer wants it back. */
function isSigned(block: Reasoning): boolean {
  const proof = proofOf(block)
  return proof !== undefined && proof !== '' && !isDisplayOnly(proof)
}

// ── Sending it back ──

/** Reasoning for the turns of a history that came back without theirs. */
export type Recalled = ReadonlyMap<Turn, KeptTurn>

/**
 * From the last turn back, up to one whose reasoning is lost: providers accept an unbroken run of reasoning up to the end,
 * but no gap in it. `bytes`: input that is not in the body.
 */
export async function recallTurns(
  session: SessionReasoning,
  turns: readonly Turn[],
): Promise<{ readonly recalled: Recalled; readonly bytes: number }> {
  const recalled = new Map<Turn, KeptTurn>()
  let bytes = 0
  for (const [at, turn] of [...turns.entries()].reverse()) {
    if (turn.role !== 'assistant' || turn.blocks.some((block) => isThinking(block) && isSigned(block))) continue
    const key = keyOf(session, turn.blocks, answeredText(turns.slice(0, at)))
    if (key === undefined) continue
    const text = await session.store.find(key)
    if (text === undefined) break
    const kept = JSON.parse(text) as KeptTurn
    recalled.set(turn, kept)
    for (const { block } of kept.blocks) bytes += bytesOf(block)
  }
  return { recalled, bytes }
}

function bytesOf(block: Reasoning): number {
  return (block.kind === 'thinking' ? block.text.length : 0) + (proofOf(block)?.length ?? 0)
}

/** The conversation with the recalled reasoning that `issuer`, of this dialect, accepts. */
export function withRecalled(
  conversation: Conversation,
  recalled: Recalled | undefined,
  { dialect, issuer }: { readonly dialect: DialectId; readonly issuer: string },
): Conversation {
  if (!recalled) return conversation
  let isUnbroken = true
  const turns = conversation.turns.toReversed().map((turn): Turn => {
    const kept = recalled.get(turn)
    if (turn.role !== 'assistant' || !kept || !isUnbroken) return turn
    isUnbroken = kept.blocks.every(({ block }) => isAcceptable(block, kept.dialect === dialect, issuer))
    if (!isUnbroken || kept.blocks.length === 0) return turn
    // Without a signature it is only the text of the same reasoning.
    const said = turn.blocks.filter((block) => !isThinking(block))
    return { ...turn, blocks: placeReasoning(kept.blocks, said) }
  })
  return { ...conversation, turns: turns.reverse() }
}

function isAcceptable(block: Reasoning, isSameDialect: boolean, issuer: string): boolean {
  const proof = proofOf(block) ?? ''
  return isOwnSignature(proof) ? readSignature(proof)?.issuer === issuer : isSameDialect
}
