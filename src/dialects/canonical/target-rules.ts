// What a model at a host accepts, as facts that renderers ask for. Which model has which facts is data elsewhere; no
// renderer knows a model by name. A rule that is not set means the dialect's usual behaviour.

import type { Effort } from './conversation.ts'

export type ThinkingMode = 'adaptive' | 'enabled' | 'disabled' | 'between-tools'

export interface TargetRules {
  /** Which sampling settings are accepted: all, none, or all while reasoning is off. */
  readonly sampling?: 'all' | 'none' | 'without-reasoning'
  /** Highest temperature accepted. */
  readonly temperatureMax?: number
  /** temperature and top_p may not be sent together. */
  readonly temperatureOrTopP?: boolean
  readonly topK?: boolean
  readonly penalties?: boolean
  readonly seed?: boolean
  readonly logitBias?: boolean
  /** Efforts accepted, ascending; empty = no such dial. */
  readonly efforts?: readonly Effort[]
  readonly thinking?: readonly ThinkingMode[]
  /** Whether the model reasons when nothing is said. */
  readonly thinksByDefault?: boolean
  /** Thinking that no longer fits its conversation can be asked to be dropped instead of refused. */
  readonly thinkingBindingControls?: boolean
  /** Efforts above high are refused together with these modes. */
  readonly effortHighAtMostWith?: readonly ThinkingMode[]
  /** false = function tools are refused while the model reasons; one that reasons by default must be sent `none`. */
  readonly toolsWithReasoning?: boolean
  /** `any`, `required` or a named tool may be demanded. */
  readonly forcedToolChoice?: boolean
  /** A system message may stand inside the conversation; where nobody says so, that is only so in Responses. */
  readonly midSystem?: boolean
  /** The conversation may end with an assistant turn that the model continues. */
  readonly prefill?: boolean
  /** How JSON output is had: natively by schema, as any object, or only by a hidden tool. */
  readonly jsonOutput?: 'schema' | 'object' | 'emulated'
  readonly strictTools?: boolean
  readonly customTools?: boolean
  readonly images?: boolean
  /** Documents by value (PDF). */
  readonly documents?: boolean
  /** false = media by address are refused: the host fetches nothing. */
  readonly mediaUrls?: boolean
  /** How many stop sequences; 0 = none, the gateway matches them itself. */
  readonly stopMax?: number
  readonly toolsMax?: number
  readonly toolNameMax?: number
  readonly toolIdMax?: number
  /** What tool ids must match as a whole. */
  readonly toolIdPattern?: RegExp
  /** The output cap limits the visible answer alone: reasoning comes on top, up to what the model can write. */
  readonly capExcludesReasoning?: boolean
  readonly outputCapName?: 'max_tokens' | 'max_completion_tokens'
  readonly systemRole?: 'system' | 'developer'
  /** How system text of several blocks goes out. */
  readonly systemAsParts?: boolean
  /** Whether assistant reasoning text is sent back, and under which name. */
  readonly reasoningEcho?: { readonly field: string; readonly when: 'always' | 'tool-turns' }
  /** false = a member of a message that holds reasoning is refused, whoever wrote it. */
  readonly reasoningMembers?: boolean
  /** How prompt caching is asked for. */
  readonly cacheStyle?: 'cache-control' | 'breakpoint' | 'implicit'
  /** false = a member for the end user's id is refused. */
  readonly endUserId?: boolean
  readonly endUserIdMax?: number
  /** The member that carries the end user's id, where the dialect has had several. */
  readonly endUserIdName?: 'user' | 'safety_identifier'
  /** false = asking for usage in a stream is refused; such a host counts without being asked, or not at all. */
  readonly streamUsage?: boolean
  /** A longer answer than this many tokens is only given as a stream. */
  readonly unstreamedOutputMax?: number
  readonly parallelFlag?: boolean
  /** A choice may be narrowed to some of the tools without leaving the others out. */
  readonly allowedTools?: boolean
  /** What an assistant message that only calls tools has as its content. */
  readonly emptyContent?: 'null' | 'string'
  /** A short assistant turn must stand between a tool result and a user message. */
  readonly assistantAfterTool?: boolean
  /** false = the line for billing that Claude Code puts before the prompt is not for this host, and spoils its cache. */
  readonly attributionLine?: boolean
  /** Values of the dialect's version header to send. */
  readonly dialectVersion?: string
  /** Reasoning is written as <think>…</think> inside the text. */
  readonly thinkTags?: boolean
  /** Serves fast processing for money, at a price that is billed. */
  readonly fastTier?: boolean
  /** Serves slow processing for less money. */
  readonly economyTier?: boolean
  /** Media may stand inside tool results. */
  readonly mediaInToolResults?: boolean
}
