// An entry of the `providers:` list in the configuration file. References to variables and files in the base URL are resolved
// before this schema is applied. No message may repeat a base URL or a key.

import { z } from 'zod'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import { type DialectId, dialectIds } from '../dialects/dialect.ts'
import type { Secret } from '../kernel/secret.ts'
import { identityCredentials } from './cloud-identities.ts'
import { builtInProviders, invokedClaude } from './data/built-in.ts'
import type { AuthScheme, Endpoint } from './provider.ts'
import { sandboxId } from './sandbox/transport.ts'

/**
 * Two values are not wire formats: the sandbox answers inside this process in every dialect except Gemini's, and `bedrock` is
 * anthropic-messages in that host's form.
 */
const providerDialects = [...dialectIds, 'bedrock', sandboxId] as const
type EntryDialect = (typeof providerDialects)[number]

/** How a provider from the file is called in each dialect. */
const endpointOf: Readonly<Record<Exclude<EntryDialect, typeof sandboxId>, Omit<Endpoint, 'baseUrl'>>> = {
  'openai-chat': { dialect: 'openai-chat', auth: 'bearer' },
  'anthropic-messages': { dialect: 'anthropic-messages', auth: 'x-api-key' },
  gemini: { dialect: 'gemini', auth: 'x-goog-api-key' },
  'openai-responses': { dialect: 'openai-responses', auth: 'bearer' },
  bedrock: invokedClaude,
}

/** Dialects whose paths start with the version. */
const versionAppended: readonly unknown[] = ['anthropic-messages'] satisfies EntryDialect[]
/** Dialects whose base URL must end with the version. It is easily forgotten, so a base URL without a path is refused. */
const versionExpected: readonly unknown[] = ['gemini'] satisfies EntryDialect[]

const outputCapNames = ['max_tokens', 'max_completion_tokens'] as const

const idExpected = 'expected lower-case letters, digits and dashes, at most 63, starting with a letter or digit'
const urlExpected = 'expected an address that starts with http:// or https://'
const keyExpected = `expected a string: \${VARIABLE}, file:/path, or the key itself`

/** Addresses that are copied from an example of a call end in one of these, with the dialect that calls it. */
const callPaths: readonly (readonly [RegExp, EntryDialect])[] = [
  [/\/chat\/completions\/?$/, 'openai-chat'],
  [/\/responses\/?$/, 'openai-responses'],
  [/\/messages\/?$/, 'anthropic-messages'],
  [/:(streamGenerateContent|generateContent)\/?$/, 'gemini'],
]

export interface ProviderEntry {
  readonly id: string
  readonly dialect: EntryDialect
  /** Without a trailing slash; undefined for the sandbox. */
  readonly baseUrl: string | undefined
  readonly apiKey: Secret | undefined
  /** undefined = by the model's name, or else the caller's name for it. */
  readonly outputCapName?: TargetRules['outputCapName']
  readonly capExcludesReasoning?: boolean
  /** undefined = the caller's is passed on, and none is added. */
  readonly promptCacheKey?: boolean | undefined
  /** The operator does not call it; workspaces do, with their own keys. */
  readonly ownKeysOnly?: true
  /** `tollgate.yaml:4` */
  readonly source: string
}

export const providerEntrySchema = z
  .strictObject({
    id: z
      .string({ error: idExpected })
      .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, { error: idExpected })
      .describe('Any name; routes refer to it. The id of a built-in provider replaces that one.'),
    dialect: z
      .enum(providerDialects, {
        error: `expected one of ${providerDialects.join(', ')}`,
      })
      .describe('The wire format the provider speaks; bedrock is Claude by InvokeModel.'),
    base_url: z
      .string({ error: urlExpected })
      .optional()
      .describe(
        `What the dialect's paths are appended to: openai-chat and openai-responses with /v1, gemini with /v1beta, anthropic-messages and bedrock without. May contain \${VARIABLE}. Required except for the sandbox.`,
      ),
    api_key: z
      .string({ error: keyExpected })
      .min(1, { error: keyExpected })
      .refine((text) => !text.startsWith('identity:') || identityCredentials.includes(text), {
        error: `expected ${identityCredentials.join(', ')}, for the identity that this cloud gives the process`,
      })
      .optional()
      .describe(
        `The credential: \${VARIABLE}, file:/path, or the key itself. For bedrock an API key, or ID:SECRET[:SESSION_TOKEN] to sign with. ${identityCredentials.join(', ')}: the identity that the cloud gives this process.`,
      ),
    output_cap: z
      .enum(outputCapNames, { error: `expected ${outputCapNames.join(' or ')}` })
      .optional()
      .describe(
        'What an openai-chat host calls the output cap, where it knows only one name. Default: as the caller calls it, or as a model known by its name wants it.',
      ),
    cap_excludes_reasoning: z
      .boolean({ error: 'expected true or false' })
      .optional()
      .describe(
        'Whether the output cap of this host limits the visible answer alone, so that reasoning tokens come on top. Default: false.',
      ),
    prompt_cache_key: z
      .boolean({ error: 'expected true or false' })
      .optional()
      .describe(
        "true: this host finds its prompt cache by prompt_cache_key, and is sent one for each session. false: it refuses the field. Default: the caller's is passed on; an openai-responses host is sent one.",
      ),
    own_keys_only: z
      .boolean({ error: 'expected true or false' })
      .optional()
      .describe(
        'true: only workspaces that store their own key for this provider can use it; nothing is called without one. Default: false.',
      ),
  })
  .refine(({ own_keys_only, api_key, dialect }) => !(own_keys_only && (api_key || answersInProcess(dialect))), {
    path: ['own_keys_only'],
    error: 'a provider that only own keys open has no api_key, and cannot be the sandbox',
  })
  .refine((entry) => baseUrlFault(entry) === undefined, {
    path: ['base_url'],
    error: ({ input }) => baseUrlFault(input),
    // Also when another field is wrong, so that all faults are reported at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

/** Other fields of the entry may be invalid. Follows what the address is called, and never repeats it. */
export function baseUrlFault(entry: unknown): string | undefined {
  const { dialect, base_url: text } = entry as { readonly dialect?: unknown; readonly base_url?: unknown }
  if (answersInProcess(dialect)) return undefined
  if (text === undefined) return urlExpected
  if (typeof text !== 'string') return undefined
  const url = /\s/.test(text) ? null : URL.parse(text)
  if (url === null || !/^https?:\/\//i.test(text)) return 'must start with http:// or https://, as in https://HOST/v1'
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password; use api_key'
  if (/[?#]/.test(text)) return 'must not contain ? or #: paths are appended to it'
  const whole = callPaths.find(([path]) => path.test(url.pathname))
  if (whole) {
    const [, own] = whole
    const other = own === dialect ? '' : `, and this is the path of dialect ${own}`
    return `must end before the path of a call, which is appended (https://HOST/v1)${other}`
  }
  if (versionAppended.includes(dialect) && withoutTrailingSlash(text).endsWith('/v1')) {
    return `must not end in /v1: the ${dialect} dialect appends it; leave it out`
  }
  if (versionExpected.includes(dialect) && (url.pathname === '/' || url.pathname === '')) {
    return `must contain the version, as in ${url.protocol}//HOST/v1beta`
  }
  return undefined
}

/** Whether a provider of this dialect needs no address. */
export function answersInProcess(dialect: unknown): boolean {
  return dialect === sandboxId
}

function withoutTrailingSlash(url: string): string {
  return url.replace(/\/+$/, '')
}

export function resolveProviderEntry(
  entry: z.infer<typeof providerEntrySchema>,
  resolved: { readonly apiKey: Secret | undefined; readonly source: string },
): ProviderEntry {
  const { id, dialect, base_url: url, output_cap: outputCapName, cap_excludes_reasoning: capExcludesReasoning } = entry
  const { prompt_cache_key: promptCacheKey, own_keys_only: ownKeysOnly } = entry
  return {
    id,
    dialect,
    ...(outputCapName && { outputCapName }),
    ...(capExcludesReasoning && { capExcludesReasoning }),
    ...(promptCacheKey !== undefined && { promptCacheKey }),
    ...(ownKeysOnly && { ownKeysOnly }),
    baseUrl: url === undefined || answersInProcess(dialect) ? undefined : withoutTrailingSlash(url),
    apiKey: resolved.apiKey,
    source: resolved.source,
  }
}

/** The dialect's default authentication scheme. */
export function usualAuth(dialect: DialectId): AuthScheme {
  return endpointOf[dialect].auth
}

/** undefined for the sandbox. */
export function endpointOfEntry(entry: ProviderEntry): Endpoint | undefined {
  const { dialect, baseUrl, apiKey, outputCapName, capExcludesReasoning, promptCacheKey, ownKeysOnly } = entry
  if (baseUrl === undefined || dialect === sandboxId) return undefined
  const { auth, ...known } = endpointOf[dialect]
  // What a host refuses does not depend on whose key is used.
  const sameHost = builtInProviders
    .flatMap(({ endpoints }) => endpoints)
    .find((each) => each.dialect === dialect && each.baseUrl === baseUrl)
  const rules = {
    ...known.rules,
    ...sameHost?.rules,
    ...(outputCapName && { outputCapName }),
    ...(capExcludesReasoning && { capExcludesReasoning }),
    ...(promptCacheKey !== undefined && { promptCacheKey }),
  }
  return {
    ...known,
    ...(Object.keys(rules).length > 0 && { rules }),
    baseUrl,
    auth: apiKey === undefined && !ownKeysOnly ? 'none' : auth,
  }
}
