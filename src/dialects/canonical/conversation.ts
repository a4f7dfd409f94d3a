// The canonical request. Every dialect parses into it and renders from it, and no dialect knows another. It is shaped
// like the richest dialect. undefined means that the caller did not set a value; it never stands for a default.

import type { AskedTier } from '../../kernel/usage.ts'

/** JSON exactly as its author wrote it. Key order, number spelling and integers above 2^53 survive only as text. */
export type RawJson = string

/** Asks the provider to cache the prompt up to and including the marked block or tool. */
export interface CacheMark {
  /** short = about five minutes, long = about an hour. */
  readonly life: 'short' | 'long'
  /** The caller asked for a whole hour. */
  readonly isHour?: boolean
  /** Where the caller wrote it, as a JSON pointer into its body. */
  readonly pointer?: string
}

interface Marked {
  readonly cacheMark?: CacheMark | undefined
}

export interface TextBlock extends Marked {
  readonly kind: 'text'
  readonly text: string
}

/** Media by value or by URL. The gateway never fetches a URL. */
export type MediaSource =
  | { readonly kind: 'data'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'url'; readonly url: string }

export interface ImageBlock extends Marked {
  readonly kind: 'image'
  readonly source: MediaSource
}

export interface DocumentBlock extends Marked {
  readonly kind: 'document'
  /** `text` is plain text. */
  readonly source: MediaSource | { readonly kind: 'text'; readonly text: string }
  readonly title?: string | undefined
  /** The author's note about the document, for the model. */
  readonly context?: string | undefined
}

export interface ToolCallBlock extends Marked {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** Usually the text of a JSON object, but models may write anything. For a custom tool, its plain input. */
  readonly arguments: string
  readonly custom: boolean
}

export interface ToolResultBlock extends Marked {
  readonly kind: 'tool-result'
  readonly callId: string
  /** Empty if the tool returned nothing. */
  readonly content: readonly ContentBlock[]
  readonly isError: boolean
}

/** Reasoning in readable form. */
export interface ThinkingBlock {
  readonly kind: 'thinking'
  readonly text: string
  /** The issuer's signature or one of ours (`tg1.…`). undefined where the dialect or host has none. */
  readonly signature?: string | undefined
}

/** Encrypted reasoning that only its issuer can read. */
export interface SealedThinkingBlock {
  readonly kind: 'sealed-thinking'
  readonly data: string
}

/** The assistant declined to answer. Dialects without such a block carry it as text. */
export interface RefusalBlock {
  readonly kind: 'refusal'
  readonly text: string
}

export type MediaBlock = ImageBlock | DocumentBlock
/** What a user message and a tool result can hold. */
export type ContentBlock = TextBlock | MediaBlock
export type UserBlock = ContentBlock | ToolResultBlock
export type ReasoningBlock = ThinkingBlock | SealedThinkingBlock
export type AssistantBlock = TextBlock | ToolCallBlock | ReasoningBlock | RefusalBlock

/**
 * One message as the caller sent it. Consecutive turns of one role are legal. Leading system messages are in `system`;
 * a system turn here comes later in the conversation.
 */
export type Turn =
  | ({ readonly role: 'user'; readonly blocks: readonly UserBlock[] } & Placed)
  | ({ readonly role: 'assistant'; readonly blocks: readonly AssistantBlock[] } & Placed)
  | ({ readonly role: 'system'; readonly blocks: readonly TextBlock[] } & Placed)

/** JSON pointer into the caller's body, used in refusals and warnings. */
interface Placed {
  readonly pointer?: string | undefined
}

export interface FunctionTool extends Marked, Placed {
  readonly kind: 'function'
  readonly name: string
  readonly description?: string | undefined
  /** JSON Schema of the arguments; undefined = takes none. */
  readonly schema?: RawJson | undefined
  readonly strict?: boolean | undefined
}

/** A tool that takes free text instead of JSON. */
export interface CustomTool extends Marked, Placed {
  readonly kind: 'custom'
  readonly name: string
  readonly description?: string | undefined
  /** The grammar of the text in the form of the caller's dialect; undefined = any text. */
  readonly grammar?: RawJson | undefined
  /** The caller checks the text itself, so a target without grammars may get the grammar as text instead. */
  readonly isGrammarAdvice?: boolean
}

export type Tool = FunctionTool | CustomTool

export type ToolChoice =
  | { readonly kind: 'auto' | 'none' | 'required' }
  | { readonly kind: 'named'; readonly name: string }
  /** Restricts the choice to some of the offered tools; `force` requires a call. */
  | { readonly kind: 'allowed'; readonly names: readonly string[]; readonly force: boolean }

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

/**
 * How much the model should reason. Several members may be set; a renderer uses the most specific one its target
 * supports.
 */
export interface ReasoningSettings {
  readonly effort?: Effort | undefined
  readonly budgetTokens?: number | undefined
  /**
   * off = do not reason; adaptive = the model decides; on = reason, by effort or budget; between-tools = only between
   * tool calls.
   */
  readonly mode?: 'off' | 'adaptive' | 'on' | 'between-tools' | undefined
  /** Whether readable reasoning was requested or declined; undefined = the provider's default. */
  readonly visible?: boolean | undefined
  /** How detailed the readable reasoning should be, in the words of Responses. */
  readonly summary?: Summary | undefined
}

const summaries = ['auto', 'concise', 'detailed'] as const
type Summary = (typeof summaries)[number]

export function summaryWord(text: string | undefined): Summary | undefined {
  return summaries.find((word) => word === text)
}

export type OutputFormat =
  | { readonly kind: 'json-object' }
  | {
      readonly kind: 'json-schema'
      /** undefined where the dialect has no name for a format. */
      readonly name?: string | undefined
      readonly description?: string | undefined
      readonly schema: RawJson
      readonly strict?: boolean | undefined
    }

export interface Sampling {
  readonly temperature?: number | undefined
  readonly topP?: number | undefined
  readonly topK?: number | undefined
  readonly frequencyPenalty?: number | undefined
  readonly presencePenalty?: number | undefined
  readonly seed?: number | undefined
  /** Token id → bias, as written. */
  readonly logitBias?: RawJson | undefined
}

export interface Conversation {
  readonly system: readonly TextBlock[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly toolChoice?: ToolChoice | undefined
  readonly parallelTools?: boolean | undefined
  /** Set if the caller's response format has room for only one call, although the caller did not ask for this. */
  readonly oneCallByForm?: boolean
  readonly sampling: Sampling
  readonly outputCap: number | undefined
  readonly stop: readonly string[]
  readonly reasoning?: ReasoningSettings | undefined
  readonly outputFormat?: OutputFormat | undefined
  readonly endUserId?: string | undefined
  readonly serviceTier?: AskedTier | undefined
  readonly verbosity?: 'low' | 'medium' | 'high' | undefined
  /** Groups requests for a provider's implicit prompt cache. */
  readonly promptCacheKey?: string | undefined
  readonly promptCacheOptions?: PromptCacheOptions | undefined
  /** Cache the whole request where possible, without individual marks. */
  readonly automaticCache?: CacheMark | undefined
  /** Requested features that have no place above. */
  readonly unsupported: readonly UnsupportedField[]
  /** JSON pointers to where the caller wrote some of the above, if not under the most common name. */
  readonly pointers?: Pointers
}

export interface PromptCacheOptions {
  /** In the form of the caller's dialect. */
  readonly written: RawJson
  /** Cache only what is marked. */
  readonly onlyMarked: boolean
  /** undefined = not requested. */
  readonly life?: CacheMark['life'] | undefined
}

/** The settings whose field name differs between dialects. */
export type Pointers = {
  readonly [Name in
    | 'system'
    | 'turns'
    | 'outputCap'
    | 'stop'
    | 'reasoning'
    | 'outputFormat'
    | 'endUserId'
    | 'serviceTier'
    | 'parallelTools'
    | 'automaticCache']?: string | undefined
}

/** A field that only the caller's dialect has. */
export interface UnsupportedField {
  /** JSON pointer into the caller's body. */
  readonly field: string
  /**
   * true = refuse the request, because the caller would parse a different shape or lose a guarantee. false = omit the
   * field with a warning.
   */
  readonly refuse: boolean
  /** Added to the refusal: what to do instead. */
  readonly reason?: string | undefined
  /** The provider adds input for this field, and only the provider knows how much. */
  readonly addsInput?: boolean | undefined
  /** The maximum number of web searches that the provider runs, and bills, for this field. */
  readonly maxSearches?: number | undefined
  /** The caller wants audio in the response. */
  readonly wantsAudio?: boolean | undefined
}

// JSON pointers for refusals and warnings: the one recorded by the caller's parser, or the most common field name.

const usual: Readonly<Record<keyof Pointers, string>> = {
  system: '/messages',
  turns: '/messages',
  outputCap: '/max_tokens',
  stop: '/stop',
  reasoning: '/reasoning_effort',
  outputFormat: '/response_format',
  endUserId: '/user',
  serviceTier: '/service_tier',
  parallelTools: '/parallel_tool_calls',
  automaticCache: '/cache_control',
}

/** The message of a turn. */
export function turnPointer(turn: Turn | undefined): string {
  return turn?.pointer ?? '/messages'
}

/** Adds a turn. Adjacent assistant turns are one turn to the model. */
export function addTurn(turns: Turn[], turn: Turn): void {
  const last = turns.at(-1)
  if (turn.role === 'assistant' && last?.role === 'assistant') {
    turns.splice(-1, 1, { ...last, blocks: [...last.blocks, ...turn.blocks] })
  } else turns.push(turn)
}

export function pointerTo({ pointers }: Conversation, name: keyof Pointers): string {
  return pointers?.[name] ?? usual[name]
}
