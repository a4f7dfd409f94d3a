// The canonical request: what every dialect parses into and renders from, shaped like the richest of them. No dialect
// knows another; they meet here. Absent is not a default: undefined means the caller did not say.

/** JSON exactly as its author wrote it. Key order, number spelling and integers above 2^53 survive only as text. */
export type RawJson = string

/** Ask the provider to cache the prompt up to and including the marked block or tool. */
export interface CacheMark {
  /** short = about five minutes, long = about an hour. */
  readonly life: 'short' | 'long'
  /** Where the caller wrote it, as a JSON pointer into its body. */
  readonly place?: string
}

interface Marked {
  readonly cacheMark?: CacheMark
}

export interface TextBlock extends Marked {
  readonly kind: 'text'
  readonly text: string
}

/** A medium by value or by address; the gateway never fetches one. */
export type MediaSource =
  | { readonly kind: 'data'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'url'; readonly url: string }

export interface ImageBlock extends Marked {
  readonly kind: 'image'
  readonly source: MediaSource
}

export interface DocumentBlock extends Marked {
  readonly kind: 'document'
  /** `text`: plain text, as it is. */
  readonly source: MediaSource | { readonly kind: 'text'; readonly text: string }
  readonly title?: string
  /** What the author said about the document, for the model. */
  readonly context?: string
}

export interface ToolCallBlock extends Marked {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** Usually the text of a JSON object, but a model may have written anything; of a custom tool, its bare input. */
  readonly arguments: string
  readonly custom: boolean
}

export interface ToolResultBlock extends Marked {
  readonly kind: 'tool-result'
  /** The id of the call it answers. */
  readonly callId: string
  /** In order; empty = the tool returned nothing. */
  readonly content: readonly (TextBlock | ImageBlock | DocumentBlock)[]
  readonly isError: boolean
}

/** Reasoning in readable form. */
export interface ThinkingBlock {
  readonly kind: 'thinking'
  readonly text: string
  /** The issuer's proof, or one of ours (`tg1.…`); undefined where the dialect or the host has none. */
  readonly signature: string | undefined
}

/** Reasoning that only its issuer can read. */
export interface SealedThinkingBlock {
  readonly kind: 'sealed-thinking'
  readonly data: string
}

/** The assistant declined; dialects without such a block carry it as text. */
export interface RefusalBlock {
  readonly kind: 'refusal'
  readonly text: string
}

export type UserBlock = TextBlock | ImageBlock | DocumentBlock | ToolResultBlock
export type AssistantBlock = TextBlock | ToolCallBlock | ThinkingBlock | SealedThinkingBlock | RefusalBlock

/**
 * One message as the caller sent it; consecutive turns of one role are legal. A system turn here is one that does not
 * lead the conversation: leading ones are in `system`.
 */
export type Turn =
  | ({ readonly role: 'user'; readonly blocks: readonly UserBlock[] } & Placed)
  | ({ readonly role: 'assistant'; readonly blocks: readonly AssistantBlock[] } & Placed)
  | ({ readonly role: 'system'; readonly blocks: readonly TextBlock[] } & Placed)

/** Where the caller wrote it, as a JSON pointer into its body: for naming what is refused or left out. */
interface Placed {
  readonly place?: string
}

export interface FunctionTool extends Marked, Placed {
  readonly kind: 'function'
  readonly name: string
  readonly description: string | undefined
  /** JSON Schema of the arguments; undefined = takes none. */
  readonly schema: RawJson | undefined
  readonly strict: boolean | undefined
}

/** Takes free text instead of JSON. */
export interface CustomTool extends Marked, Placed {
  readonly kind: 'custom'
  readonly name: string
  readonly description: string | undefined
  /** The grammar the text must follow, as its dialect wrote it; undefined = any text. */
  readonly grammar: RawJson | undefined
}

export type Tool = FunctionTool | CustomTool

export type ToolChoice =
  | { readonly kind: 'auto' | 'none' | 'required' }
  | { readonly kind: 'named'; readonly name: string }
  /** Only these of the offered tools, freely or by force. */
  | { readonly kind: 'allowed'; readonly names: readonly string[]; readonly force: boolean }

export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

/** How much the model should reason. Several may be given; a renderer takes the most telling its target knows. */
export interface ReasoningWish {
  readonly effort?: Effort
  readonly budgetTokens?: number
  /** off = do not reason; adaptive = as the model sees fit; on = reason, by effort or budget; between-tools = only there. */
  readonly mode?: 'off' | 'adaptive' | 'on' | 'between-tools'
  /** Whether readable reasoning was asked for or declined; undefined = the provider's default. */
  readonly visible?: boolean
}

export type OutputFormat =
  | { readonly kind: 'json-object' }
  | {
      readonly kind: 'json-schema'
      /** Absent where the dialect has no name for it. */
      readonly name: string | undefined
      readonly description: string | undefined
      readonly schema: RawJson
      readonly strict: boolean | undefined
    }

export interface Sampling {
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  readonly seed?: number
  /** Token id → bias, as written. */
  readonly logitBias?: RawJson
}

export interface Conversation {
  readonly system: readonly TextBlock[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly toolChoice: ToolChoice | undefined
  /** Whether the model may call several tools at once. */
  readonly parallelTools: boolean | undefined
  /** It may not, since the caller's form of an answer has room for one call; nobody said so in words. */
  readonly oneCallByForm?: boolean
  readonly sampling: Sampling
  readonly outputCap: number | undefined
  readonly stop: readonly string[]
  readonly reasoning: ReasoningWish | undefined
  readonly outputFormat: OutputFormat | undefined
  readonly endUserId: string | undefined
  /** fast and economy cost more and less than standard. */
  readonly serviceTier: 'auto' | 'standard' | 'fast' | 'economy' | undefined
  readonly verbosity: 'low' | 'medium' | 'high' | undefined
  /** Groups requests for a provider's implicit prompt cache. */
  readonly promptCacheKey: string | undefined
  /** How the provider's prompt cache is to be used, where the caller said so. */
  readonly promptCacheOptions?: PromptCacheOptions
  /** The whole request is to be cached where possible, without marks. */
  readonly automaticCache: CacheMark | undefined
  readonly stream: boolean
  readonly wantsStreamUsage: boolean
  /** What was asked for and has no place above. */
  readonly leftovers: readonly Leftover[]
  /** Where the caller wrote some of the above, as JSON pointers into its body. */
  readonly places?: Places
}

export interface PromptCacheOptions {
  /** As the caller's dialect wrote them. */
  readonly written: RawJson
  /** Nothing is to be cached but what is marked. */
  readonly onlyMarked: boolean
}

/** The names of things whose field is called differently from dialect to dialect. */
export type Places = {
  readonly [Name in
    | 'system'
    | 'outputCap'
    | 'stop'
    | 'reasoning'
    | 'outputFormat'
    | 'endUserId'
    | 'serviceTier'
    | 'parallelTools'
    | 'automaticCache']?: string
}

/** A field that only its own dialect knows. */
export interface Leftover {
  /** JSON pointer into the caller's body. */
  readonly field: string
  /** Refused, because the caller would parse another shape or lose a guarantee; otherwise left out with a warning. */
  readonly refuse: boolean
  /** For the message of a refusal: what to do instead. */
  readonly reason?: string
  /** The provider fetches or adds something for it, and nobody else can say how much. */
  readonly addsInput?: true
  /** The most searches of the web that the provider runs for it, one by one on its bill. */
  readonly searchesMost?: number
  /** The answer, or a part of it, is to be sound. */
  readonly speaks?: true
}
