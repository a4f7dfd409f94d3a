// The rules of a model at a host. Renderers only read these facts; they never check for a model by name. The values
// are data in `providers/`. A rule that is not set means the dialect's usual behaviour.

import type { Effort } from './conversation.ts'
import type { TierWords } from './tiers.ts'

export type ThinkingMode = 'adaptive' | 'enabled' | 'disabled' | 'between-tools'

export interface TargetRules {
  /** `without-reasoning`: sampling settings are only accepted while reasoning is off. */
  readonly sampling?: 'all' | 'none' | 'without-reasoning'
  /** Highest temperature accepted. */
  readonly temperatureMax?: number
  /** temperature and top_p are refused together. */
  readonly temperatureOrTopP?: boolean
  readonly topK?: boolean
  readonly penalties?: boolean
  readonly seed?: boolean
  readonly logitBias?: boolean
  /** Accepted efforts, ascending; empty = the model has no effort setting. */
  readonly efforts?: readonly Effort[]
  readonly thinking?: readonly ThinkingMode[]
  /** Whether the model reasons if the request does not say. */
  readonly thinksByDefault?: boolean
  /** The provider can drop thinking that no longer fits its conversation, instead of refusing it. */
  readonly thinkingBindingControls?: boolean
  /** Efforts above high are refused in these modes. */
  readonly effortHighAtMostWith?: readonly ThinkingMode[]
  /**
   * false = function tools are refused while the model reasons. A model that reasons by default must then be sent
   * `none`.
   */
  readonly toolsWithReasoning?: boolean
  /** Tool choice may be `any`, `required` or a named tool. */
  readonly forcedToolChoice?: boolean
  /** System messages are accepted inside the conversation. Default: only in Responses. */
  readonly midSystem?: boolean
  /** The conversation may end with an assistant turn, which the model continues. */
  readonly prefill?: boolean
  /** How JSON output is requested. `object`: in OpenAI's dialects, by instruction. `emulated`: in Messages, with a hidden tool. */
  readonly jsonOutput?: 'schema' | 'object' | 'emulated'
  readonly strictTools?: boolean
  readonly customTools?: boolean
  readonly images?: boolean
  /** Documents by value (PDF). */
  readonly documents?: boolean
  /** false = media by URL are refused: the host does not fetch. */
  readonly mediaUrls?: boolean
  /** Number of stop sequences accepted; 0 = none, the gateway matches them itself. */
  readonly stopMax?: number
  readonly toolsMax?: number
  readonly toolNameMax?: number
  readonly toolIdMax?: number
  /** A tool id must match this as a whole. */
  readonly toolIdPattern?: RegExp
  /** The output cap limits the visible answer alone: reasoning comes on top, up to what the model can write. */
  readonly capExcludesReasoning?: boolean
  readonly outputCapName?: 'max_tokens' | 'max_completion_tokens'
  readonly systemRole?: 'system' | 'developer'
  /** Send system text of several blocks as parts. */
  readonly systemAsParts?: boolean
  /** Reasoning text of assistant turns is sent back in this field. */
  readonly reasoningEcho?: { readonly field: string; readonly when: 'always' | 'tool-turns' }
  /** false = any message member that holds reasoning is refused. */
  readonly reasoningMembers?: boolean
  /**
   * true = the host finds its prompt cache by a key, and is sent one for the caller's session if the caller sent none.
   * false = it refuses the key.
   */
  readonly promptCacheKey?: boolean
  /** Caches only what is marked, so callers whose dialect caches by itself get marks. */
  readonly cachesOnlyMarked?: boolean
  /** In OpenAI's dialects: prompts are cached at marked places, or only by the provider's own choice. */
  readonly cacheStyle?: 'breakpoint' | 'implicit'
  /** false = an end-user id is refused. */
  readonly endUserId?: boolean
  readonly endUserIdMax?: number
  /** The member for the end-user id, where the dialect has had several. */
  readonly endUserIdName?: 'user' | 'safety_identifier'
  /** false = requesting usage in a stream is refused. Such a host reports usage without being asked, or never. */
  readonly streamUsage?: boolean
  /** Longer outputs, in tokens, are only available as a stream. */
  readonly unstreamedOutputMax?: number
  readonly parallelFlag?: boolean
  /** The choice can be restricted to some tools while all are still sent. */
  readonly allowedTools?: boolean
  /** The content of an assistant message that only calls tools. */
  readonly emptyContent?: 'null' | 'string'
  /** A short assistant turn is required between a tool result and a user message. */
  readonly assistantAfterTool?: boolean
  /**
   * false = remove the billing line that Claude Code puts before the prompt: this host does not use it, and it defeats
   * its cache.
   */
  readonly attributionLine?: boolean
  /** The model writes reasoning as <think>…</think> inside the text. */
  readonly thinkTags?: boolean
  /** The host's words for service tiers; empty = it has none. Default: those that hosts of its dialect usually know. */
  readonly serviceTiers?: TierWords
}
