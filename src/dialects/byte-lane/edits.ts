// Edits a request on the byte lane so that it costs no more than was priced: the output cap does not exceed the hold, the
// service tier is the one that was priced, and no other models are called. Each dialect supplies its field names.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { JsonEdits, type JsonNode } from '../../wire/json.ts'
import type { TargetRules } from '../canonical/target-rules.ts'
import { type TierWords, tierWordsOf } from '../canonical/tiers.ts'
import type { ContentTags, Envelope, SentRequest, Warning } from '../canonical/translation.ts'
import { routingMembers, shownWord } from '../request/fields.ts'

/** The changes to the caller's body for this provider. */
export interface RequestEdits {
  readonly upstreamModel: string
  /** Sent as the output cap if the caller gave none. */
  readonly defaultOutputCap: number | undefined
  /** Replaces a larger cap, or none: the wallet covers no more. */
  readonly affordableOutputCap?: number | undefined
  /** Replaces a larger cap: the model writes no more, and no more is held. */
  readonly maxOutputTokens?: number | undefined
  /** The workspace's own credential is used, so the provider bills the workspace at its own prices. */
  readonly isOwn?: boolean
  /** Absent = the body has none, or all are paid for. */
  readonly hostedTools?: HostedTools | undefined
  readonly rules: TargetRules
  /** The price has tiers, so the host must not choose one by itself. */
  readonly namesTier?: boolean
  /** The cache key of the caller's session; undefined = it has none. */
  sessionCacheKey?(): string | undefined
  /** Recognises what was issued to the caller's workspace. */
  readonly contentTags?: ContentTags | undefined
}

/** Which tools that the provider runs, and bills separately from tokens, a model's callers may use. */
export interface HostedTools {
  /** Searches have a price. */
  readonly searches: boolean
  /** Types without their date; the operator pays for these. */
  readonly allowed: readonly string[]
}

/** A body for a provider of the caller's own dialect. */
export interface EditedRequest {
  readonly body: Uint8Array<ArrayBuffer>
  readonly warnings: readonly Warning[]
  /** Why it must not be sent, such as a tool without a price. */
  readonly refused?: Failure | undefined
}

/** The names that a dialect's hosts use. */
export interface PaidMembers {
  /** Members in which other models can be named. */
  readonly models: readonly string[]
  /** Types of tools that callers run themselves, or that cost only tokens. */
  readonly freeTools: RegExp
  /** Drop a search without a price instead of refusing the request, because clients offer it by default. */
  readonly dropsSearches?: boolean
}

/** A list of tools elsewhere in the body than in `tools`. */
export interface ToolList {
  readonly list: JsonNode
  /** As in `input[2].tools`. */
  readonly at: string
}

/** The edits of one body, and what they changed for the caller. */
export class BodyEdits extends JsonEdits {
  readonly root: JsonNode
  // Created on first use: most requests need neither.
  #warnings: Warning[] | undefined
  #refused: Failure | undefined

  constructor(
    private readonly sent: SentRequest,
    private readonly edits: RequestEdits,
  ) {
    super(sent.body)
    this.root = sent.members
    this.removeMembers(routingMembers)
  }

  /** For dialects that have the model in the body. */
  nameModel(): void {
    this.put(this.root, 'model', JSON.stringify(this.edits.upstreamModel))
  }

  /** Removes members of the body, if it has them. */
  removeMembers(names: readonly string[]): void {
    for (const name of names) {
      const member = this.root.get(name)
      if (member) this.remove(member)
    }
  }

  warn(code: string, field: string): void {
    this.#warnings ??= []
    this.#warnings.push({ code, field })
  }

  /** The cap that is sent; undefined = none. Warns, like a translation, if it is below the caller's, at `pointer`. */
  cap(pointer: string | undefined): number | undefined {
    const { affordableOutputCap: affordable = Number.POSITIVE_INFINITY, defaultOutputCap } = this.edits
    const { maxOutputTokens = Number.POSITIVE_INFINITY } = this.edits
    const { outputCap } = this.sent.envelope
    const cap = Math.min(outputCap ?? defaultOutputCap ?? affordable, affordable)
    if (pointer !== undefined && outputCap !== undefined && cap > maxOutputTokens) {
      this.warn('max_tokens_clamped', pointer)
    }
    // Do not add a cap only to state the model's maximum: hosts may refuse one that does not fit beside the prompt.
    return cap === Number.POSITIVE_INFINITY ? undefined : Math.min(cap, maxOutputTokens)
  }

  /** Adds the key of the caller's session for hosts that use one, and removes the caller's for hosts that refuse it. */
  editCacheKey(): void {
    const { promptCacheKey } = this.edits.rules
    if (promptCacheKey === undefined) return
    const written = this.root.get('prompt_cache_key')
    const isSet = written !== undefined && written.kind !== 'null'
    if (promptCacheKey === false) {
      if (isSet) this.#drop(written)
      else if (written) this.remove(written)
      return
    }
    const key = isSet ? undefined : this.edits.sessionCacheKey?.()
    if (key !== undefined) this.put(this.root, 'prompt_cache_key', JSON.stringify(key))
  }

  /**
   * Writes the tier in the words of this host. Hosts of which nothing is known get the caller's word. `member`: where the
   * dialect has it.
   */
  editTier(member: string, usual: TierWords): void {
    const { tier } = this.sent.envelope
    const { rules, namesTier } = this.edits
    const words = tierWordsOf(rules, usual)
    if (tier === undefined) {
      if (namesTier && words.unasked !== undefined) this.put(this.root, member, JSON.stringify(words.unasked))
      return
    }
    const written = this.root.get(member)
    const word = words[tier]
    if (!rules.serviceTiers || tier === 'unknown' || written?.string === word) return
    if (word !== undefined) this.put(this.root, member, JSON.stringify(word))
    else if (written) this.remove(written)
  }

  /**
   * Removes everything that would make the provider call other models than the one that is paid for: members that name
   * models, tools that are models themselves, and plugins that call several. They would not be charged, and allowlists
   * would not apply to them. Refuses tools that the provider runs and that have no price. Requests with the workspace's own
   * credential keep all of these.
   */
  removeUnpaid(paid: PaidMembers, moreTools: readonly ToolList[] = none): void {
    if (this.edits.isOwn) return
    const { hostedTools } = this.edits
    for (const member of this.root.members() ?? []) if (paid.models.includes(member.name)) this.#drop(member)
    const tools = this.root.get('tools')
    const lists = tools ? [{ list: tools, at: 'tools' }, ...moreTools] : moreTools
    for (const { list, at } of lists) {
      if (!hostedTools && !toolWords.some((word) => list.includes(word))) continue
      this.#removeElements(list, at, (tool, i) => isModelTool(tool) || this.#isUnpaid(tool, `${at}[${i}]`, paid))
    }
    const plugins = this.root.get('plugins')
    if (plugins) this.#removeElements(plugins, 'plugins', (plugin) => !isPaidPlugin(plugin, hostedTools))
  }

  /** Refuses the request, unless the tool can be left out. */
  #isUnpaid(tool: JsonNode, at: string, { freeTools, dropsSearches = false }: PaidMembers): boolean {
    const { hostedTools } = this.edits
    const type = textIn(tool, 'type')
    const environment = tool.get('environment')
    const isHosted = !freeTools.test(type) || containerWords.some((word) => environment?.includes(word))
    if (!hostedTools || !isHosted) return false
    if (hostedTools.allowed.some((name) => type === name || type.startsWith(`${name}_`))) return false
    const isSearch = /^(openrouter:)?web_search/.test(type)
    if (isSearch && (hostedTools.searches || dropsSearches)) return !hostedTools.searches
    const what = `The provider runs the tool ${shownWord(type.slice(type.indexOf(':') + 1))} and bills it apart from tokens, but this model has no price for it.`
    const remedy = isSearch ? 'set `price.web_search`' : 'list it in `hosted_tools`'
    this.refuse(`${what} Remove it, use a provider key of your own, or ask the operator to ${remedy}.`, at)
    return false
  }

  refuse(message: string, param: string): void {
    this.#refused ??= invalidRequest(message, param)
  }

  #drop(member: JsonNode): void {
    this.remove(member)
    this.warn(`${member.name}_dropped`, `/${member.name}`)
  }

  /** Parsers disagree about duplicate names, so an element with any may be anything and is removed. */
  #removeElements(list: JsonNode, at: string, isUnpaid: (element: JsonNode, index: number) => boolean): void {
    const elements = list.elements() ?? []
    const removed = elements.map((element, i) => !element.members() || isUnpaid(element, i))
    if (list.parent === this.root && removed.length > 0 && !removed.includes(false)) {
      this.#drop(list)
      // A tool choice is invalid without tools.
      if (list.name === 'tools') this.removeMembers(['tool_choice'])
      return
    }
    const pointer = `/${at.replaceAll(/\[(\d+)\]\./g, '/$1/')}`
    for (const [i, element] of elements.entries()) {
      if (!removed[i]) continue
      this.remove(element)
      this.warn(`${list.name.slice(0, -1)}_dropped`, `${pointer}/${i}`)
    }
  }

  finish(): EditedRequest {
    return { body: this.apply(), warnings: this.#warnings ?? none, refused: this.#refused }
  }
}

const none: readonly never[] = []

/** The text of a member; '' if there is none, or it is not a string. */
export function textIn(object: JsonNode, name: string): string {
  return object.get(name)?.string ?? ''
}

/**
 * Whether a request must be translated instead of passed on, because its host returns long outputs only as a stream.
 * The translation lane then streams. `usualOutputCap` is sent if the caller gave no cap.
 */
export function mustStream(
  { stream, outputCap }: Envelope,
  { unstreamedOutputMax }: TargetRules,
  usualOutputCap: number | undefined,
): boolean {
  if (stream || unstreamedOutputMax === undefined) return false
  return (outputCap ?? usualOutputCap ?? 0) > unstreamedOutputMax
}

// Members that call other models.

/** OpenRouter plugins that call no other model. */
const plainPlugins: ReadonlySet<string> = new Set(['web', 'file-parser', 'response-healing'])
/** OpenRouter tools that are not models. */
const plainTools = /^openrouter:(web_search|web_fetch|datetime)$/

/** Only a list that contains one of these is parsed. `\u00` is included because any letter of a name may be escaped. */
const toolWords = ['"model"', 'openrouter:', '\\u00'].map((word) => Buffer.from(word))
/** A shell in a container runs at the provider. */
const containerWords = ['container', '\\u00'].map((word) => Buffer.from(word))

/** A caller's tool may use any name inside its schema, but has no `model` member itself. */
function isModelTool(tool: JsonNode): boolean {
  const type = textIn(tool, 'type')
  return tool.get('model') !== undefined || (type.startsWith('openrouter:') && !plainTools.test(type))
}

function isPaidPlugin(plugin: JsonNode, hosted: HostedTools | undefined): boolean {
  const id = textIn(plugin, 'id')
  return plainPlugins.has(id) && (id !== 'web' || !hosted || hosted.searches)
}
